"""What `new`, `remove` and `register` change: what is rendered and, in TileGym, what is registered."""

from collections.abc import Mapping
from pathlib import Path
from pathlib import PurePosixPath
from typing import Any
from typing import Literal

from tilewright.catalogue.names import check_operator_is_free
from tilewright.config import ANSWERS
from tilewright.config import read_answers
from tilewright.errors import OperatorExistsError
from tilewright.errors import UsageError
from tilewright.model.change import ChangeSet
from tilewright.model.change import FileChange
from tilewright.model.host import Host
from tilewright.render import Source
from tilewright.render import render
from tilewright.render import scaffold
from tilewright.render.answers import refuse_unused
from tilewright.update.detached import DETACHED

OPS = PurePosixPath("src/tilegym/ops/ops.py")
KERNELS: dict[Literal["main", "experimental"], PurePosixPath] = {
    "main": PurePosixPath("src/tilegym/ops/cutile"),
    "experimental": PurePosixPath("src/tilegym/ops/cutile/experimental"),
}


def plan_new(source: Source, answers: Mapping[str, Any], root: Path) -> ChangeSet:
    """The files of a new operator and, in TileGym, its registration."""
    rendering = render(source, answers, root, overwrite=True)
    refuse_unused(answers, rendering.answers)
    op, layout = rendering.answers["op"], rendering.answers["layout"]
    if layout != "single_file":
        package = rendering.answers.get("package", "src/tilegym")
        check_operator_is_free(op, Host(root=root, layout=layout, package=package))
    changes = scaffold(rendering, root)
    if layout == "tilegym":
        registration = _registration(source, rendering.answers, root)
        if OPS not in {change.path for change in registration.changes}:
            raise OperatorExistsError(
                f"{OPS} already dispatches {op}",
                expected="expected a name that no operator of TileGym has",
                hint="use another name; tilewright status shows what is there",
            )
        changes = changes.merged(registration)
    return changes


def plan_register(source: Source, op: str, host: Host) -> ChangeSet:
    """What is missing of an operator's registration in TileGym."""
    if host.layout != "tilegym":
        raise UsageError(
            f"{host.root} is not a TileGym checkout",
            expected="expected a checkout with src/tilegym/ops/ops.py; elsewhere an operator registers itself",
        )
    if not (host.root / ANSWERS / f"{op}.yml").exists():
        return _registration_by_hand(op, host.root)
    answers = _answers(op, host)
    kernel = KERNELS[answers.get("placement", "main")] / f"{op}.py"
    if not (host.root / kernel).exists():
        raise UsageError(
            f"{kernel} does not exist, so there is nothing to register",
            expected=f"expected the files that {ANSWERS / op}.yml records",
            hint=f"write them again: copier recopy -a {ANSWERS / op}.yml",
        )
    return _registration(source, answers, host.root)


def plan_remove(source: Source, op: str, host: Host) -> tuple[ChangeSet, tuple[PurePosixPath, ...]]:
    """The removal of everything that belongs to the operator alone, and which of these files were edited."""
    answers = _answers(op, host)
    rendering = render(source, answers, host.root, overwrite=True)
    own = {file.path: file.content for file in rendering.files if not file.shared}
    if host.layout == "tilegym" and _is_last(op, host.root):
        # A checkout of somebody else's keeps no trace of the generator.
        own |= {file.path: file.content for file in rendering.files if file.shared}
    changes, edited = [], []
    for path, content in own.items():
        if (host.root / path).is_file():
            before = (host.root / path).read_bytes()
            changes.append(FileChange(path=path, before=before, after=None))
            if before != content:
                edited.append(path)
    detached = DETACHED / f"{op}.yml"
    if (host.root / detached).is_file():
        changes.append(FileChange(path=detached, before=(host.root / detached).read_bytes(), after=None))
    removal = ChangeSet(root=host.root, changes=tuple(changes))
    if host.layout == "tilegym":
        from tilewright.codemod import unregister

        removal = removal.merged(unregister(host.root, op))
    return removal, tuple(path for path in edited if path.parent != PurePosixPath(ANSWERS))


def _answers(op: str, host: Host) -> dict[str, Any]:
    """The answers that an operator was made from, without copier's own."""
    answers = {key: value for key, value in read_answers(op, host.root).items() if not key.startswith("_")}
    if answers.get("layout", host.layout) != host.layout:
        raise UsageError(
            f"{ANSWERS / op}.yml has the layout {answers['layout']}",
            expected=f"expected {host.layout}, the layout of {host.root}",
            hint="take it from the history of the repository",
        )
    return answers


def _registration(source: Source, answers: Mapping[str, Any], root: Path) -> ChangeSet:
    from tilewright.codemod import register

    stub = render(source, {**answers, "layout": "stub"}, root, overwrite=True).files[0].content.decode()
    return register(root, answers["op"], stub=stub, placement=answers["placement"])


def _registration_by_hand(op: str, root: Path) -> ChangeSet:
    """The missing imports of an operator that has a kernel and a stub of its own."""
    import ast

    from tilewright.codemod import register

    text = (root / OPS).read_text(encoding="utf-8")
    functions = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == op)
    stub = next(functions, None)
    placement = next((name for name, folder in KERNELS.items() if (root / folder / f"{op}.py").exists()), None)
    if stub is None or placement is None:
        missing = "no stub in ops.py" if stub is None else "no kernel"
        raise UsageError(
            f"{op} was not made by tilewright and has {missing}",
            expected=f"expected both {OPS} and {KERNELS['main']}/{op}.py to have it",
            hint="write what is missing, or have all of it made under another name: tilewright new OP",
        )
    stub.decorator_list.clear()
    return register(root, op, stub=f'@dispatch("{op}")\n{ast.unparse(stub)}\n', placement=placement)


def _is_last(op: str, root: Path) -> bool:
    return [path.stem for path in (root / ANSWERS).glob("*.yml")] == [op]
