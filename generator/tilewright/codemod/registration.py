"""Register an operator in a TileGym checkout, and take the registration out again byte for byte."""

import ast
from pathlib import Path
from pathlib import PurePosixPath
from typing import Literal

from tilewright.codemod.names import refuse_taken
from tilewright.codemod.package import Package
from tilewright.errors import RegistrationError
from tilewright.model.change import ChangeSet

Placement = Literal["main", "experimental"]

PACKAGE = PurePosixPath("src/tilegym")
OPS = PACKAGE / "ops/ops.py"
CUTILE_INIT = PACKAGE / "ops/cutile/__init__.py"


def register(root: Path, op: str, *, stub: str, placement: Placement = "main") -> ChangeSet:
    """What is missing of the dispatch stub, the two imports and the `__all__` entry; empty if nothing is.

    Raises:
        RegistrationError: A file does not have the shape that is known, or the name means something else there.
    """
    from tilewright.codemod import backend_init
    from tilewright.codemod import ops_file
    from tilewright.codemod.source import Source  # LibCST takes longer to import than `tilewright --help` may take

    _check_stub(op, stub)
    ops, init = Source.read(root, OPS), Source.read(root, CUTILE_INIT)
    package = Package(root, PACKAGE)
    folder = "tilegym.ops.cutile" if placement == "main" else "tilegym.ops.cutile.experimental"
    if folder not in package.modules:
        raise RegistrationError(
            f"{CUTILE_INIT.parent}/experimental is not a package",
            expected="expected a TileGym checkout that has experimental operators",
            hint="use the placement main, or add `__init__.py` there",
        )
    refuse_taken(package, op, stubs=OPS, kernel=f"{folder}.{op}")
    changes = (
        ops.edited(ops_file.additions(ops, op, stub)),
        init.edited(backend_init.additions(init, op, placement)),
    )
    return ChangeSet(root=root, changes=tuple(change for change in changes if change))


def unregister(root: Path, op: str) -> ChangeSet:
    """The inverse of `register`, whatever else was registered in between; empty if there is nothing to take out.

    Raises:
        RegistrationError: A file does not have the shape that is known.
    """
    from tilewright.codemod import backend_init
    from tilewright.codemod import ops_file
    from tilewright.codemod.source import Source

    ops, init = Source.read(root, OPS), Source.read(root, CUTILE_INIT)
    changes = (ops.edited(ops_file.removals(ops, op)), init.edited(backend_init.removals(init, op)))
    return ChangeSet(root=root, changes=tuple(change for change in changes if change))


def _check_stub(op: str, stub: str) -> None:
    try:
        match ast.parse(stub).body:
            case [ast.FunctionDef(name=name)] if name == op and stub.startswith(f'@dispatch("{op}"'):
                return
        what = "is something else"
    except SyntaxError as error:
        what = f"does not parse: {error.msg} (line {error.lineno})"
    raise RegistrationError(
        f"the stub of {op} {what}",
        expected=f'expected one function {op}, decorated with `@dispatch("{op}")`',
        hint="render it again, or mend the template",
    )
