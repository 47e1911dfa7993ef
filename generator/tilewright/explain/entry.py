"""What is known of one error: how to recognise it, what causes it, and wrong and right code."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One cause, and how to tell that it is this one."""

    what: str
    tell: str


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One error; its causes come in the order of their likelihood."""

    name: str
    title: str
    pattern: str  # regular expression that is searched for in the text of an exception
    causes: tuple[Cause, ...]
    wrong: str
    right: str
    rules: tuple[str, ...] = ()  # codes of `tilewright check` that find it before anything runs
    samples: tuple[str, ...] = ()  # texts that its wrong example does not produce
    general: bool = False  # said only where nothing more particular is known of the text


@dataclass(frozen=True, kw_only=True)
class Topic:
    """Errors of one origin."""

    title: str
    about: str
    entries: tuple[Entry, ...]
