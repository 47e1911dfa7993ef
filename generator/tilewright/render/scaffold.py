"""Render the template into a temporary folder, and compare the result with what the host already has."""

import os
import re
import tempfile
import textwrap
import warnings
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pathlib import PurePosixPath
from typing import Any

from tilewright.errors import RenderError
from tilewright.errors import UsageError
from tilewright.model.change import ChangeSet
from tilewright.model.change import FileChange
from tilewright.render.source import Source


@dataclass(frozen=True, kw_only=True)
class RenderedFile:
    """One file as the template makes it."""

    path: PurePosixPath
    content: bytes
    shared: bool  # belongs to the host rather than to the operator: written once, then its owner's


@dataclass(frozen=True, kw_only=True)
class Rendering:
    """What the template makes of some answers."""

    files: tuple[RenderedFile, ...]
    answers: Mapping[str, Any]  # including defaults


def render(
    source: Source,
    answers: Mapping[str, Any],
    destination: Path,
    *,
    ask: Sequence[str] = (),
    overwrite: bool = False,
) -> Rendering:
    """Run copier as if in the destination, without writing there; `ask` names questions to put to the user.

    Raises:
        UsageError: The template does not accept an answer.
        RenderError: The template fails.
    """
    data = {**answers, "destination": str(destination.resolve())}
    if source.recorded:
        data["source"] = source.recorded
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        worker = _copy(source, Path(folder), data, ask=ask, overwrite=overwrite)
        shared = matcher(worker.template.skip_if_exists)
        paths = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        files = tuple(_read(path, PurePosixPath(path.relative_to(folder)), shared) for path in paths)
    hidden = worker.answers.hidden
    recorded = {key: value for key, value in worker.answers.user.items() if key not in hidden}
    return Rendering(files=files, answers=recorded)


def scaffold(rendering: Rendering, root: Path) -> ChangeSet:
    """The files that the host does not have yet.

    Raises:
        UsageError: A file of the operator is there already, with other content.
    """
    changes = []
    for file in rendering.files:
        target = root / file.path
        if not os.path.lexists(target):  # a link that leads nowhere is there, too
            changes.append(FileChange(path=file.path, before=None, after=file.content))
        elif not file.shared and not (target.is_file() and target.read_bytes() == file.content):
            raise UsageError(
                f"{target} already exists",
                expected="expected no file there, since it would be overwritten",
                hint="move it away, or give the operator another name",
            )
    return ChangeSet(root=root, changes=tuple(changes))


def _copy(source: Source, folder: Path, data: dict[str, Any], *, ask: Sequence[str], overwrite: bool) -> Any:
    import copier

    with errors_of_copier():
        return copier.run_copy(
            str(source.template), folder, data=data, quiet=True, overwrite=overwrite, defaults=not ask, ask=ask
        )


@contextmanager
def errors_of_copier() -> Iterator[None]:
    """Turn what copier raises into errors of ours, and say nothing of what it warns about."""
    import jinja2
    import yaml
    from copier.errors import CopierAnswersInterrupt
    from copier.errors import CopierError
    from copier.errors import InteractiveSessionError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except CopierAnswersInterrupt as error:
        raise KeyboardInterrupt from error
    except InteractiveSessionError as error:
        raise UsageError(
            "there is no terminal to ask questions on",
            expected="expected options or --data for everything that has no default",
        ) from error
    except (ValueError, TypeError) as error:
        refused = re.match(r"(?:Validation error for question '\w+': )?(.*)", str(error), re.DOTALL)
        if refused is None or not re.match(
            "Validation error|Invalid choice|Could not convert|Not a YAML list", str(error)
        ):
            raise _failed(error) from error
        what, _, hint = " ".join(refused[1].split()).partition("; ")
        raise UsageError(what, hint=hint) from error
    except (CopierError, jinja2.TemplateError, yaml.YAMLError) as error:
        raise _failed(error) from error


def _failed(error: Exception) -> RenderError:
    text = textwrap.shorten(f"{type(error).__name__}: {error}", 300)
    return RenderError(
        f"the template failed: {text}",
        hint="run again with --debug and report it with the answers you gave",
    )


def matcher(patterns: Sequence[str]) -> Callable[[PurePosixPath], bool]:
    """Whether a path matches one of the patterns of a template."""
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(patterns).match_file


def _read(path: Path, relative: PurePosixPath, shared: Callable[[PurePosixPath], bool]) -> RenderedFile:
    return RenderedFile(path=relative, content=path.read_bytes(), shared=shared(relative))
