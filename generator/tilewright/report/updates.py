"""What an update does, for a person and for a machine."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import PurePosixPath
from typing import Any

from tilewright.config.versions import is_same
from tilewright.config.versions import tag
from tilewright.model.change import ChangeSet
from tilewright.model.host import Host
from tilewright.update import Behind
from tilewright.update import Plan
from tilewright.update.hunks import Hunk

Document = dict[str, Any]

_SHOWN = 4  # lines of each side of a conflict


def document(host: Host, plan: Plan, *, written: bool, diff: bool) -> Document:
    """Operators, files and conflicts of one update."""
    return {
        "root": str(host.root),
        "target": plan.target,
        "written": written,
        "operators": [
            {
                "name": each.name,
                "from": each.old,
                "to": each.new,
                "answers": dict(each.answers),
                "detached": list(each.detached),
            }
            for each in plan.operators
        ],
        "current": list(plan.current),
        "files": _files(plan.changes),
        "conflicts": [
            {"path": str(conflict.path), "hunks": [_hunk(hunk) for hunk in conflict.hunks]}
            for conflict in plan.conflicts
        ],
        "notes": list(plan.notes),
        "next": following(plan) if written else [],
        **({"diff": plan.changes.diff()} if diff else {}),
    }


def behind_document(host: Host, behind: Iterable[Behind], target: str) -> Document:
    """The operators that are behind, and what changed since."""
    return {"root": str(host.root), "target": target, "behind": [asdict(each) for each in behind]}


def ended_document(
    host: Host, changes: ChangeSet, *, open_: Sequence[PurePosixPath] = (), kept: Sequence[PurePosixPath] = ()
) -> Document:
    """An update that was finished or taken back."""
    return {
        "root": str(host.root),
        "files": _files(changes),
        "unsettled": list(map(str, open_)),
        "kept": list(map(str, kept)),
    }


def following(plan: Plan) -> list[str]:
    """The commands that a person wants to run now."""
    if not plan.operators:
        return []
    if not plan.is_settled:
        return ["tilewright update --continue", "tilewright update --abort"]
    names = " ".join(each.name for each in plan.operators[:3]) if len(plan.operators) <= 3 else ""
    return [f"tilewright verify {names}".rstrip(), f'git commit -m "{plan.title}"']


def operator_lines(plan: Plan) -> Iterator[str]:
    """Which operators go from where to where."""
    moves: dict[tuple[str, str], list[str]] = {}
    for each in plan.operators:
        if not is_same(each.old, each.new):
            moves.setdefault((tag(each.old), tag(each.new)), []).append(each.name)
    for (old, new), names in moves.items():
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        yield f"{', '.join(names[:5])}{more}: {old} -> {new}"
    for each in plan.operators:
        if each.answers:
            yield f"{each.name}: {', '.join(f'{key}={value}' for key, value in each.answers.items())}"
        if each.detached:
            yield f"{each.name}: left alone, since it is yours: {', '.join(each.detached)}"


def conflict_lines(plan: Plan) -> Iterator[str]:
    """Each file and hunk, with what the owner has and what the template has."""
    for conflict in plan.conflicts:
        for hunk in conflict.hunks:
            yield f"conflict: {conflict.path}:{hunk.line}"
            if hunk.template is None:
                yield "  owner:    edited it"
                yield "  template: no longer has it"
            else:
                yield from _side("owner", hunk.owner)
                yield from _side("template", hunk.template)


def behind_lines(behind: Sequence[Behind], count: int, target: str) -> Iterator[str]:
    """Which operators are behind, then what changed since the oldest of them."""
    if not behind:
        yield f"{count} operator{'s' * (count != 1)} up to date"
        return
    for each in behind:
        yield f"{each.name}: {each.version}{how_far(each, target.removeprefix('v'))}"
    yield from change_lines(behind)


def change_lines(behind: Sequence[Behind]) -> Iterator[str]:
    """What changed since the oldest of them."""
    for release in max((each.releases for each in behind), key=len, default=()):
        yield f"changed in {release.version}:"
        yield from (f"  - {entry}" for entry in release.entries)


def how_far(behind: Behind, target: str) -> str:
    """By how many versions, as far as the changelog tells."""
    count = len(behind.releases)
    how = f"{count} version{'s' * (count != 1)} behind" if count else "behind"
    return f" ({how} {target})"


def _side(name: str, text: bytes) -> Iterator[str]:
    lines = text.decode(errors="replace").splitlines()
    label = f"{name}:"
    for line in lines[:_SHOWN] or ["(nothing)"]:
        yield f"  {label:<10}{line}"
        label = ""
    if len(lines) > _SHOWN:
        yield f"  {'':<10}... {len(lines) - _SHOWN} more lines"


def _hunk(hunk: Hunk) -> dict[str, Any]:
    return {
        "line": hunk.line,
        "owner": hunk.owner.decode(errors="replace"),
        "template": None if hunk.template is None else hunk.template.decode(errors="replace"),
    }


def _files(changes: ChangeSet) -> list[dict[str, str]]:
    return [{"path": str(change.path), "kind": change.kind} for change in changes.changes]
