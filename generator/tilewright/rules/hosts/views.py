"""Rules about tensors that are not contiguous, and results that are written to a copy."""

import ast
from collections.abc import Iterator

from tilewright.rules.definitions import definitions
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.hosts.calls import calls
from tilewright.rules.hosts.examples import WITH_LAUNCHER
from tilewright.rules.hosts.touched import targets
from tilewright.rules.hosts.values import is_argument
from tilewright.rules.hosts.walking import walk
from tilewright.rules.launches import Launch
from tilewright.rules.rule import Rule
from tilewright.rules.source import Function
from tilewright.rules.source import Module


class ViewOfStrided(Rule):
    """View of an argument that need not be contiguous."""

    code = "TW310"
    severity = Severity.WARNING
    why = (
        "`view(-1)` merges dimensions, which only works where their strides allow it: a transposed or sliced "
        "argument raises `view size is not compatible with input tensor's size and stride`, where PyTorch's "
        "operators just work."
    )
    advice = "Call x.contiguous() before, or use x.reshape(...) where the tensor is only read."
    VALID = (
        WITH_LAUNCHER + "def double(x):\n    x = x.contiguous()\n    y = torch.empty_like(x)\n"
        "    _launch(x.view(-1), y.view(-1))\n    return y\n",
        WITH_LAUNCHER + "def double(x):\n    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)\n"
        "    _launch(x.reshape(-1), y.view(-1))\n    return y\n",
        WITH_LAUNCHER
        + "def double(x):\n    if not x.is_contiguous():\n        raise ValueError('x must be contiguous')\n"
        "    y = torch.empty_like(x)\n    _launch(x.view(-1), y.view(-1))\n    return y\n",
    )
    INVALID = (
        WITH_LAUNCHER + "def double(x):\n    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)\n"
        "    _launch(x.view(-1), y.view(-1))\n    return y\n",
        WITH_LAUNCHER + "def double(x):\n    flat = x.view(-1, x.shape[-1])\n    y = torch.empty_like(flat)\n"
        "    _launch(flat, y)\n    return y.view(x.shape)\n",
        WITH_LAUNCHER + "def double(x):\n    y = torch.empty_like(x, memory_format=torch.contiguous_format)\n"
        "    _launch(*(t.view(-1, x.shape[-1]) for t in (x, y)))\n    return y\n",
        "import math\n"
        + WITH_LAUNCHER
        + "def double(x):\n    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)\n"
        "    _launch(*(t.view(math.prod(x.shape[:-1]), -1) for t in (x, y)))\n    return y\n",
    )

    def check(self, module: Module) -> Iterator[Finding]:
        launching = {
            each
            for launch in module.launches
            if launch.function
            for each in (*calls(module).callers(launch.function), *calls(module).callees(launch.function))
        }
        for call in module.nodes(ast.Call):
            match call.func:
                case ast.Attribute(value=ast.Name() as tensor, attr="view"):
                    function = module.function_of(call)
                    if function not in launching or function is None or not _merges(module, call):
                        continue
                    arguments = [each for each in _meant(module, tensor) if is_argument(module, each)]
                    if not arguments or _cares(module, function):
                        continue
                    if len(call.args) == 1 and not any(_has_dimensions(function, each.id) for each in arguments):
                        continue
                    yield self.finding(
                        module,
                        call,
                        f"{module.source(call)} fails where {arguments[0].id} is not contiguous: use reshape",
                        fix=self._fix(module, call.func, tensor),
                    )

    def _fix(self, module: Module, function: ast.Attribute, tensor: ast.Name) -> Fix | None:
        if any(tensor.id in _names_stored(module, launch) for launch in module.launches):
            return None  # a copy would lose what is stored
        edit = module.replacement(function, f"{tensor.id}.reshape")
        return Fix("Use reshape, which copies where it must", (edit,))


def _meant(module: Module, tensor: ast.Name) -> Iterator[ast.Name]:
    """The name itself; of a variable of `for t in (x, y)` the names that it stands for."""
    for binding in definitions(module).reaching(tensor):
        match module.parent(binding.node):
            case ast.comprehension(iter=ast.Tuple(elts=elements) | ast.List(elts=elements)):
                yield from (each for each in elements if isinstance(each, ast.Name))
            case _:
                yield tensor


def _merges(module: Module, call: ast.Call) -> bool:
    """Whether a view may merge dimensions: it is flat, keeps but one of its sizes, or names a product of some."""
    sizes = call.args[0].elts if len(call.args) == 1 and isinstance(call.args[0], ast.Tuple | ast.List) else call.args
    first = sizes[0] if sizes else None
    flat = isinstance(first, ast.UnaryOp) and isinstance(first.operand, ast.Constant) and len(sizes) <= 2
    return flat or any(_is_product(module, each) for each in sizes)


def _is_product(module: Module, size: ast.expr) -> bool:
    """Whether a size is that of a run of dimensions: `math.prod(x.shape[:-1])`."""
    values = [each.expression for each in definitions(module).reaching(size)] if isinstance(size, ast.Name) else [size]
    for value in values:
        match value:
            case ast.Call(args=[ast.Subscript(slice=ast.Slice())]) if module.names.resolve(value.func) == "math.prod":
                return True
    return False


def _has_dimensions(function: Function, name: str) -> bool:
    """Whether the function treats a tensor as one of any shape, and not as one of a single dimension."""
    for node in walk(function):
        match node:
            case ast.Attribute(value=ast.Name(id=known), attr="numel" | "shape" | "ndim") if known == name:
                return True
            case ast.Call(func=ast.Attribute(attr="empty_like" | "zeros_like"), args=[ast.Name(id=known), *_]) if (
                known == name
            ):
                return True
    return False


def _names_stored(module: Module, launch: Launch) -> set[str]:
    """Names below the arguments that a launch stores to."""
    found: set[str] = set()
    for target in targets(launch):
        pending = [target]
        while pending:
            node = pending.pop()
            new = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} - found
            found |= new
            pending += [
                each.value
                for name in ast.walk(node)
                if isinstance(name, ast.Name) and name.id in new
                for each in definitions(module).reaching(name)
                if each.value is not None
            ]
    return found


def _cares(module: Module, function: Function) -> bool:
    """Whether the function, or one that calls it, says anything about the contiguity of an argument.

    Where a result may be stored, `out.is_contiguous()`, and how one is allocated say nothing about arguments.
    """
    for each in calls(module).callers(function):
        for node in walk(each):
            name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
            of_result = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "out"
            if name == "input_guard" or ("contiguous" in name and name != "contiguous_format" and not of_result):
                return True
    return False
