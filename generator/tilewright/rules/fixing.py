"""Mend the files of a report, as changes that are written together."""

import os
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from pathlib import PurePosixPath

from tilewright.errors import UsageError
from tilewright.model.change import ChangeSet
from tilewright.model.change import FileChange
from tilewright.rules.edits import fix
from tilewright.rules.engine import Report
from tilewright.rules.engine import check_sources
from tilewright.rules.finding import Finding
from tilewright.rules.reading import encoding_of
from tilewright.rules.rule import Rule


@dataclass(frozen=True, kw_only=True)
class Mended:
    """The changes, and what they mend."""

    changes: ChangeSet
    findings: tuple[Finding, ...]


def mend(report: Report, rules: Sequence[Rule], *, context: Mapping[Path, str]) -> Mended:
    """Apply the fixes of a report, file by file; nothing is written.

    Raises UsageError where a file is no longer what the report is about.
    """
    texts: dict[Path, str] = dict(report.texts)
    mended: list[Finding] = []
    changes: list[FileChange] = []
    root = _root(report.files)
    linked: set[Path] = set()
    for path in dict.fromkeys(finding.path for finding in report.findings if finding.fix):
        before = texts[path]
        if path.resolve() in linked:  # mended under its other name
            continue
        linked.add(path.resolve())

        def check(text: str, path: Path = path) -> list[Finding]:
            found = check_sources({path: text}, rules, context={**context, **texts})
            return list(found.findings)

        result = fix(before, check)
        if result.text != before:
            texts[path] = result.text
            mended += result.mended
            changes.append(_change(path, before, result.text, root))
    return Mended(changes=ChangeSet(root=root, changes=tuple(changes)), findings=tuple(mended))


def _root(files: Sequence[Path]) -> Path:
    """The current folder where all files are below it, else the innermost folder around them; links are followed."""
    here = Path.cwd().resolve()
    if all(path.resolve().is_relative_to(here) for path in files):
        return here
    return Path(os.path.commonpath([path.resolve().parent for path in files]))


def _change(path: Path, before: str, after: str, root: Path) -> FileChange:
    """Raises UsageError where the file is no longer what was checked."""
    try:
        content = path.read_bytes()
        encoding = encoding_of(content)
        unchanged = content.decode(encoding) == before
    except (OSError, SyntaxError, UnicodeDecodeError):
        unchanged = False
    if not unchanged:
        raise UsageError(f"{path} changed while it was checked", hint="run the command again; nothing was written")
    relative = path.resolve().relative_to(root)  # a link stays one
    return FileChange(path=PurePosixPath(relative), before=content, after=after.encode(encoding))
