"""Show what a command writes, or would write: as a tree, as a diff, as JSON."""

from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from typing import Any

import typer

from tilewright.cli import console
from tilewright.cli.exits import Exit
from tilewright.model.change import ChangeSet
from tilewright.model.change import FileChange

DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="Write nothing; show what would be written.")]
Diff = Annotated[bool, typer.Option("--diff", help="Write nothing; show the changes as a diff.")]
Check = Annotated[bool, typer.Option("--check", help="Write nothing; exit with 1 if there would be changes.")]


@dataclass(frozen=True, kw_only=True)
class Mode:
    """Whether a command writes, and how it shows what it does."""

    dry_run: bool
    diff: bool
    check: bool
    json: bool

    @property
    def writes(self) -> bool:
        """Whether changes are made."""
        return not (self.dry_run or self.diff or self.check)

    def carry_out(self, root: Path, plan: Callable[[], ChangeSet]) -> ChangeSet:
        """Plan and write, or only plan."""
        from tilewright.changes import apply_planned

        return apply_planned(root, plan) if self.writes else plan()

    def report(self, changes: ChangeSet, *, operator: str, following: Sequence[str] = ()) -> None:
        """Show the changes; exits with 1 if asked to and there are some that were not written."""
        if self.json:
            console.document(
                {
                    "operator": operator,
                    "root": str(changes.root),
                    "written": self.writes,
                    "files": [described(change) for change in changes.changes],
                    "next": list(following),
                    **({"diff": changes.diff()} if self.diff else {}),
                }
            )
        elif not changes:
            console.message(f"Nothing to do for {operator}: everything is in place.")
        elif self.writes:
            show(changes)
            if following:
                console.message("Next: " + "\n      ".join(following))
        else:
            show_pending(changes, diff=self.diff)
        if self.check and changes:
            raise typer.Exit(Exit.FINDINGS)


def show(changes: ChangeSet) -> None:
    """The files as a tree below the root, each with what happens to it."""
    from rich.console import Console
    from rich.tree import Tree

    tree = Tree(str(changes.root), highlight=False)
    folders: dict[tuple[str, ...], Tree] = {(): tree}
    width = max((len(change.path.name) + 4 * len(change.path.parts) for change in changes.changes), default=0)
    for change in sorted(changes.changes, key=lambda change: (change.path.parts[:-1], change.path.name)):
        parts = change.path.parts
        for depth in range(1, len(parts)):
            if parts[:depth] not in folders:
                folders[parts[:depth]] = folders[parts[: depth - 1]].add(f"{parts[depth - 1]}/")
        space = width - 4 * len(parts)
        folders[parts[:-1]].add(f"{parts[-1]:<{space}}  {_summary(change)}")
    Console(highlight=False, soft_wrap=True).print(tree)


def show_pending(changes: ChangeSet, *, diff: bool) -> None:
    """What would be written."""
    if diff:
        console.result(changes.diff().rstrip("\n"))
    else:
        show(changes)
    count = len(changes.changes)
    console.message(f"{count} file{'s' * (count != 1)} would be written, changed or removed; nothing was.")


def described(change: FileChange) -> dict[str, Any]:
    """A change for a machine."""
    return {"path": str(change.path), "kind": change.kind, "lines": _lines(change.after)}


def _summary(change: FileChange) -> str:
    match change.kind:
        case "create":
            return f"new      {_lines(change.after):>4} lines"
        case "remove":
            return "removed"
    more = _lines(change.after) - _lines(change.before)
    return f"changed  {more:+4} lines"


def _lines(content: bytes | None) -> int:
    return len((content or b"").splitlines())
