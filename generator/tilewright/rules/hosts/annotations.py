"""Rules about names and annotations of host functions."""

import ast
import builtins
import symtable
from collections.abc import Iterator

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.hosts.examples import WITH_LAUNCHER
from tilewright.rules.hosts.walking import walk
from tilewright.rules.rule import Rule
from tilewright.rules.source import Function
from tilewright.rules.source import Module

# Bound in every module or method
_MODULE = frozenset({"__all__", "__class__", "__doc__", "__file__", "__name__", "__package__", "__path__", "__spec__"})
_MODULE |= {"__annotations__", "__builtins__", "__cached__", "__dict__", "__module__", "__qualname__"}
_ELSEWHERE = ("_", "WindowsError")  # `gettext.install` and Windows make them builtins
# With these a module may give itself names that its text does not show
_DYNAMIC = ("globals", "vars", "exec", "global_enum", "_convert_")


class UndefinedName(Rule):
    """Name that nothing defines."""

    code = "TW324"
    severity = Severity.ERROR
    why = (
        "Python looks names up when a line runs: a `stream` or `kernel` that was never assigned fails at the "
        "first call only."
    )
    advice = "Assign, import or spell the name."
    VALID = (
        WITH_LAUNCHER + "def double(x):\n    y = torch.empty_like(x)\n    _launch(x, y)\n    return y\n",
        WITH_LAUNCHER + "globals().update(FACTOR=2)\n\n\ndef factor():\n    return FACTOR\n",
        WITH_LAUNCHER + "import pytest\n\n\ndef test_it():\n    with pytest.raises(NameError):\n        undefined\n",
    )
    INVALID = (
        WITH_LAUNCHER + "def double(x):\n    y = torch.empty_like(x)\n    _lunch(x, y)\n    return y\n",
        WITH_LAUNCHER + "def double(x, y):\n    ct.launch(stream, (1,), _double_kernel, (x, y, 1024))\n",
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if not (module.kernels or module.launches or module.is_test or module.is_benchmark):
            return  # other linters look at the rest of a package
        if any(alias.name == "*" for node in module.nodes(ast.ImportFrom) for alias in node.names):
            return
        used = {node.id for node in module.nodes(ast.Name)} | {node.attr for node in module.nodes(ast.Attribute)}
        if not used.isdisjoint(_DYNAMIC):
            return
        undefined = _undefined(module)
        seen: set[tuple[str, Function | None]] = set()
        for name in module.nodes(ast.Name) if undefined else ():
            function = module.function_of(name)
            if name.id not in undefined or not isinstance(name.ctx, ast.Load) or (name.id, function) in seen:
                continue
            if not _is_local(module, name) and not _is_caught(module, name):
                seen.add((name.id, function))
                yield self.finding(module, name, f"{name.id} is not defined: assign, import or spell it")


def _undefined(module: Module) -> set[str]:
    """Names that some scope takes from the module, which has none of them."""
    top = symtable.symtable(module.text, str(module.path), "exec")
    defined = {each.get_name() for each in top.get_symbols() if each.is_assigned() or each.is_imported()}
    defined |= {child.get_name() for child in top.get_children()}
    taken: set[str] = set()
    pending = [top]
    while pending:
        table = pending.pop()
        pending += table.get_children()
        for each in table.get_symbols():
            if each.is_declared_global() and each.is_assigned():
                defined.add(each.get_name())
            elif each.is_referenced() and (each.is_global() or table is top):
                taken.add(each.get_name())
    return taken - defined - {*dir(builtins), *_MODULE, *_ELSEWHERE}


def _is_local(module: Module, name: ast.Name) -> bool:
    """Whether a scope around a use binds the name, which another scope takes from the module."""
    for scope in module.ancestors(name):
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            arguments = scope.args
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
            if any(each is not None and each.arg == name.id for each in every):
                return True
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and name.id in module.bindings(
            scope
        ):
            return True
        if isinstance(scope, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            targets = [each.target for each in scope.generators]
            if any(isinstance(each, ast.Name) and each.id == name.id for t in targets for each in ast.walk(t)):
                return True
    return False


def _is_caught(module: Module, name: ast.Name) -> bool:
    """Whether a missing name is expected: `except NameError`, `pytest.raises(NameError)`."""
    expected: list[ast.AST | None] = []
    for each in module.ancestors(name):
        if isinstance(each, ast.Try):
            expected += (handler.type for handler in each.handlers)
        elif isinstance(each, ast.With):
            expected += each.items
        elif isinstance(each, ast.Call):
            expected += each.args[:1]
    return any("NameError" in ast.unparse(each) for each in expected if each is not None)


class ReturnArity(Rule):
    """Return annotation that promises another number of results."""

    code = "TW325"
    severity = Severity.WARNING
    why = "Callers unpack what the annotation says: `a, b = f(x)` of a function that returns three is a ValueError."
    advice = "Make the annotation say what every return statement gives."
    VALID = (
        "import torch\n\n\ndef split(x) -> tuple[torch.Tensor, torch.Tensor]:\n    return x[0], x[1]\n",
        "import torch\n\n\ndef split(x) -> tuple[torch.Tensor, ...]:\n    return x[0], x[1], x[2]\n",
        "import torch\n\n\ndef split(x, pair) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:\n"
        "    if pair:\n        return x[0], x[1]\n    return x\n",
    )
    INVALID = (
        "import torch\n\n\ndef split(x) -> tuple[torch.Tensor, torch.Tensor]:\n    return x[0], x[1], x[2]\n",
        "import torch\n\n\ndef split(x) -> torch.Tensor:\n    return x[0], x[1]\n",
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for function in module.nodes(ast.FunctionDef):
            promised = _promised(module, function.returns)
            if promised is None:
                continue
            for node in walk(function):
                if isinstance(node, ast.Return) and module.function_of(node) is function:
                    given = _given(node.value)
                    if given is not None and given != promised:
                        yield self.finding(
                            module,
                            node,
                            f"{function.name} returns {_said(given)} here, but its annotation says {_said(promised)}: "
                            "make them agree",
                        )


def _promised(module: Module, annotation: ast.expr | None) -> int | None:
    """Number of results that an annotation promises, 1 for a tensor, or None where it leaves that open."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return None
    match annotation:
        case ast.Subscript(value=ast.Name(id="tuple" | "Tuple") | ast.Attribute(attr="Tuple"), slice=inside):
            parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
            return None if any(isinstance(each, ast.Constant) and each.value is ... for each in parts) else len(parts)
        case ast.Attribute() if module.names.torch(annotation) == "Tensor":
            return 1
    return None


def _given(value: ast.expr | None) -> int | None:
    if isinstance(value, ast.Tuple):
        return None if any(isinstance(each, ast.Starred) for each in value.elts) else len(value.elts)
    return None


def _said(count: int) -> str:
    return "one" if count == 1 else f"{count} results"
