"""Refuse a name that means something else in the checkout already."""

import ast
from pathlib import PurePosixPath

from tilewright.codemod.declarations import declarations
from tilewright.codemod.package import Package
from tilewright.codemod.package import executed
from tilewright.errors import RegistrationError


def refuse_taken(package: Package, op: str, *, stubs: PurePosixPath, kernel: str) -> None:
    """Raise if any file but `stubs` dispatches it, or any module but `kernel` implements it or has its name."""
    registers = False
    for found in declarations(package, op):
        path = package.modules[found.module]
        if found.backend is None and (path, found.function) != (stubs, op):
            raise _taken(op, f"is dispatched in {path}, line {found.line}")
        if found.backend == "cutile" and found.module != kernel:
            raise _taken(op, f"has a cuTile implementation in {path}, line {found.line}")
        registers = registers or found.backend == "cutile"
    if "tilegym.ops" in package.modules and op in _imported(package.tree("tilegym.ops")):
        raise _taken(op, f"is imported in {package.modules['tilegym.ops']}, where the stub would hide it")
    # A function of that name would hide a module in one of these packages.
    for parent in ("tilegym.ops", "tilegym.ops.cutile", "tilegym.ops.cutile.experimental"):
        module = f"{parent}.{op}"
        if module in package.modules and not (module == kernel and registers):
            raise _taken(op, f"is the name of {package.modules[module]}, which registers no such operator for cuTile")


def _imported(tree: ast.Module) -> set[str]:
    imports = [node for node in executed(tree.body) if isinstance(node, ast.Import | ast.ImportFrom)]
    return {alias.asname or alias.name for node in imports for alias in node.names}


def _taken(op: str, what: str) -> RegistrationError:
    return RegistrationError(
        f"{op} {what}",
        expected="expected a name that no other operator or module of TileGym's has",
        hint="choose another name; `tilewright status` lists the operators",
    )
