"""Explain a code of a rule, the name of an error, or a text with messages of errors."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from tilewright.errors import UsageError
from tilewright.explain.matching import Match
from tilewright.explain.matching import codes
from tilewright.explain.matching import matches
from tilewright.explain.registry import all_entries
from tilewright.rules.registry import all_rules
from tilewright.rules.rule import Rule

_NAME = re.compile(r"[A-Za-z0-9-]+")


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The rules and the errors that something speaks of; neither, where nothing is known of it."""

    rules: tuple[Rule, ...] = ()
    errors: tuple[Match, ...] = ()

    @property
    def known(self) -> bool:
        """Whether there is anything to say."""
        return bool(self.rules or self.errors)


def explain(what: str) -> Explanation:
    """Explain a code, a name or a text; raises UsageError for a single word that is close to a code or a name."""
    word = what.strip()
    rules = {rule.code: rule for rule in all_rules()}
    if word.upper() in rules:
        return Explanation(rules=(rules[word.upper()],))
    entries = all_entries()
    if word.lower() in entries:
        return Explanation(errors=(Match(entry=entries[word.lower()], message=""),))
    found = explain_text(what)
    if not found.known and _NAME.fullmatch(word):
        raise _unknown(word, [*rules, *entries])
    return found


def explain_text(text: str) -> Explanation:
    """Explain the messages and the codes in a text."""
    named = set(codes(text))
    return Explanation(rules=tuple(rule for rule in all_rules() if rule.code in named), errors=matches(text))


def together(found: Collection[Explanation]) -> Explanation:
    """The likeliest error of each, and all rules, each once."""
    errors = {match.entry.name: match for each in found for match in each.errors[:1]}
    rules = {rule.code: rule for each in found for rule in each.rules}
    return Explanation(rules=tuple(rules.values()), errors=tuple(errors.values()))


def _unknown(word: str, known: list[str]) -> UsageError:
    from difflib import get_close_matches

    kind = "code of a rule" if word.upper().startswith("TW") else "code of a rule or name of an error"
    nearest = [code for code in known if code.startswith(word.upper())]
    nearest = nearest or get_close_matches(word.upper(), known, n=1) or get_close_matches(word.lower(), known, n=1)
    return UsageError(
        f"{word!r} is no {kind}",
        expected="expected a code as TW203, a name as size-not-constant, or the text of an error",
        hint=f"did you mean {nearest[0]}?" if nearest else "docs/reference/rules.md and errors.md list them",
    )
