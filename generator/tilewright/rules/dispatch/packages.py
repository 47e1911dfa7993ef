"""What the `__init__` of a package imports and exports."""

import ast
from collections.abc import Iterator
from itertools import pairwise

from tilewright.rules.dispatch.snippets import package
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.project import Project
from tilewright.rules.rule import Rule
from tilewright.rules.source import Module

_STUB_ONLY = "from .interface import scale\n"


class UnboundExport(Rule):
    """`__all__` names something that the module does not have."""

    code = "TW114"
    severity = Severity.ERROR
    why = "`from package import *` fails with AttributeError."
    advice = "Import or define the name, or take it out of `__all__`."
    VALID = (package(),)
    INVALID = (package(changed={"__init__.py": 'from .interface import scale\n\n__all__ = ["scale", "scaled"]\n'}),)

    def check_project(self, project: Project) -> Iterator[Finding]:
        """Strings in `__all__` that no statement of the module binds."""
        for module in project.checked:
            exported = _exported(module)
            if not exported or _binds_anything(module):
                continue
            name = project.name(module)
            if module.path.name == "__init__.py" and not any(each.startswith(f"{name}.") for each in project.paths):
                continue  # its modules, which may be meant, are not known
            bound = {*module.bindings(module.tree), *(each for node in module.nodes(ast.Global) for each in node.names)}
            for node, exported_name in exported:
                if exported_name not in bound and f"{name}.{exported_name}" not in project.paths:
                    yield self.finding(
                        module, node, f"{exported_name!r} is in __all__ and bound nowhere in {name}: import it"
                    )


class UnguardedImport(Rule):
    """A module that needs cuda.tile is imported where cuTile may be missing."""

    code = "TW116"
    severity = Severity.WARNING
    why = "The whole package cannot be imported on a machine without cuda-tile, also for its other backends."
    advice = 'Import it inside of `if is_backend_available("cutile"):`.'
    VALID = (package(),)
    INVALID = (
        package(
            changed={
                "__init__.py": _STUB_ONLY + "from . import cutile\n",
                "cutile.py": "import cuda.tile as ct\n\nfrom .backend import register_impl\n",
            }
        ),
    )

    def check_project(self, project: Project) -> Iterator[Finding]:
        """Imports that no `if` or `try` guards, of modules that import `cuda.tile` likewise."""
        for module in project.checked:
            if module.path.name != "__init__.py" or not _asks_for_backends(project, module):
                continue
            for statement, name in project.imports(module):
                imported = project.module(name)
                if imported is None or _guarded(module, statement) or not _needs_tile(project, imported):
                    continue
                if _loaded_unguarded(project, project.name(module)):
                    yield self.finding(
                        module,
                        statement,
                        f"{name} imports cuda.tile, and nothing guards this import: ask is_backend_available",
                    )
                    break


class UnsortedImports(Rule):
    """The imports that register operators are not in order."""

    code = "TW117"
    severity = Severity.INFO
    why = "Two branches that each add an operator conflict more often, and a missing one is hard to see."
    advice = "Sort the lines `from . import module` of a block by name."
    VALID = ("from . import a\nfrom . import b\nfrom . import c\n",)
    INVALID = ("from . import a\nfrom . import c\nfrom . import b\n",)
    snippet_path = "my_ops/__init__.py"

    def check(self, module: Module) -> Iterator[Finding]:
        """The first name of a block that comes after a greater one."""
        if module.path.name != "__init__.py":
            return
        for block in (module.tree.body, *(node.body for node in module.nodes(ast.If))):
            for (_, before), (statement, name) in pairwise(_own_modules(block)):
                if name.lower() < before.lower():
                    yield self.finding(module, statement, f"{name} comes after {before}: sort the imports by name")
                    break


def _own_modules(block: list[ast.stmt]) -> Iterator[tuple[ast.stmt, str]]:
    for statement in block:
        match statement:
            case ast.ImportFrom(module=None, level=1, names=[ast.alias(name=name)]):
                yield statement, name


def _exported(module: Module) -> list[tuple[ast.Constant, str]]:
    statements: list[ast.Assign | ast.AugAssign] = [*module.nodes(ast.Assign), *module.nodes(ast.AugAssign)]
    found = []
    for statement in statements:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        if (
            _is_all(target)
            and module.function_of(statement) is None
            and isinstance(statement.value, ast.List | ast.Tuple)
        ):
            for each in statement.value.elts:
                match each:
                    case ast.Constant(value=str(name)):
                        found.append((each, name))
    return found


def _is_all(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and target.id == "__all__"


def _binds_anything(module: Module) -> bool:
    """Whether names come in that cannot be seen: by a star, `__getattr__`, `globals()`, or an enumeration."""
    stars = any(alias.name == "*" for node in module.nodes(ast.ImportFrom) for alias in node.names)
    calls = (node.func for node in module.nodes(ast.Call))
    decorators = (module.names.resolve(each) for node in module.nodes(ast.ClassDef) for each in node.decorator_list)
    return (
        stars
        or "__getattr__" in module.bindings(module.tree)
        or any(_is_globals(call) for call in calls)
        or "enum.global_enum" in decorators
    )


def _is_globals(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("globals", "vars", "setattr")


def _asks_for_backends(project: Project, module: Module) -> bool:
    """Whether the package has a way to ask for backends, so that it means to work without cuTile."""
    backend = project.module(f"{project.name(module).partition('.')[0]}.backend")
    return backend is not None and "is_backend_available" in backend.text


def _guarded(module: Module, statement: ast.stmt) -> bool:
    return any(isinstance(each, ast.If | ast.Try) for each in module.ancestors(statement))


def _needs_tile(project: Project, module: Module) -> bool:
    return any(
        name.startswith("cuda.tile") and not _guarded(module, statement) for statement, name in project.imports(module)
    )


def _loaded_unguarded(project: Project, package: str) -> bool:
    """Whether importing the outermost package imports this one without a guard on the way."""
    while "." in package:
        parent = package.rpartition(".")[0]
        module = project.module(parent)
        if module is None:
            return False
        written = [statement for statement, name in project.imports(module) if name == package]
        unguarded = any(not _guarded(module, statement) for statement in written)
        if not unguarded and (written or not project.loads(parent, package)):  # it may be found by pkgutil
            return False
        package = parent
    return True
