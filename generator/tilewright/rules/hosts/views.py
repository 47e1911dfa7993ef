"""Rules about tensors that are not contiguous, and results that are written to a copy."""

import ast
from collections.abc import Iterator

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.hosts.calls import calls
from tilewright.rules.hosts.definitions import definitions
from tilewright.rules.hosts.launched import kernels
from tilewright.rules.hosts.touched import stored
from tilewright.rules.launches import Launch
from tilewright.rules.rule import Proof
from tilewright.rules.rule import Rule
from tilewright.rules.source import Function
from tilewright.rules.source import Module

_KERNEL = """
import cuda.tile as ct
import torch

ConstInt = ct.Constant[int]


@ct.kernel
def _double_kernel(X, Y, TILE: ConstInt):
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (TILE,)) * 2)


def _launch(x, y):
    if y.numel():
        grid = (ct.cdiv(y.numel(), 1024),)
        ct.launch(torch.cuda.current_stream(x.device), grid, _double_kernel, (x, y, 1024))


"""
_COPYING = ("contiguous", "reshape", "flatten", "to", "clone")
_SAME = ("view", "squeeze", "unsqueeze", "detach", *_COPYING)


class ViewOfStrided(Rule):
    """View of an argument that need not be contiguous."""

    code = "TW310"
    severity = Severity.WARNING
    why = (
        "`view(-1)` merges dimensions, which only works where their strides allow it: a transposed or sliced argument "
        "raises `view size is not compatible with input tensor's size and stride`, where PyTorch's operators just work."
    )
    advice = "Call x.contiguous() before, or use x.reshape(...) where the tensor is only read."
    VALID = (
        _KERNEL + "def double(x):\n    x = x.contiguous()\n    y = torch.empty_like(x)\n"
        "    _launch(x.view(-1), y.view(-1))\n    return y\n",
        _KERNEL + "def double(x):\n    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)\n"
        "    _launch(x.reshape(-1), y.view(-1))\n    return y\n",
        _KERNEL + "def double(x):\n    if not x.is_contiguous():\n        raise ValueError('x must be contiguous')\n"
        "    y = torch.empty_like(x)\n    _launch(x.view(-1), y.view(-1))\n    return y\n",
    )
    INVALID = (
        _KERNEL + "def double(x):\n    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)\n"
        "    _launch(x.view(-1), y.view(-1))\n    return y\n",
        _KERNEL + "def double(x):\n    flat = x.view(-1, x.shape[-1])\n    y = torch.empty_like(flat)\n"
        "    _launch(flat, y)\n    return y.view(x.shape)\n",
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
                    if function not in launching or function is None or not _merges(call):
                        continue
                    if not _is_argument(module, tensor) or _cares(module, function):
                        continue
                    if len(call.args) == 1 and not _has_dimensions(function, tensor.id):
                        continue
                    yield self.finding(
                        module,
                        call,
                        f"{module.source(call)} fails where {tensor.id} is not contiguous",
                        fix=self._fix(module, call.func, tensor),
                    )

    def _fix(self, module: Module, function: ast.Attribute, tensor: ast.Name) -> Fix | None:
        if any(tensor.id in _names_stored(module, launch) for launch in module.launches):
            return None  # a copy would lose what is stored
        edit = module.replacement(function, f"{tensor.id}.reshape")
        return Fix("Use reshape, which copies where it must", (edit,))


def _merges(call: ast.Call) -> bool:
    """Whether a view may merge dimensions: it is flat, or keeps but one of its sizes."""
    sizes = call.args[0].elts if len(call.args) == 1 and isinstance(call.args[0], ast.Tuple | ast.List) else call.args
    first = sizes[0] if sizes else None
    return isinstance(first, ast.UnaryOp) and isinstance(first.operand, ast.Constant) and len(sizes) <= 2


def _has_dimensions(function: Function, name: str) -> bool:
    """Whether the function treats a tensor as one of any shape, and not as one of a single dimension."""
    for node in ast.walk(function):
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
    for target in _targets(module, launch):
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


def _is_argument(module: Module, name: ast.Name) -> bool:
    """Whether a name is a parameter of the function around, and nothing else."""
    bindings = definitions(module).reaching(name)
    return bool(bindings) and all(each.parameter for each in bindings)


def _cares(module: Module, function: Function) -> bool:
    """Whether the function, or one that calls it, says anything about contiguity."""
    for each in calls(module).callers(function):
        for node in ast.walk(each):
            name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
            if "contiguous" in name or name == "input_guard":
                return True
    return False


class LostResult(Rule):
    """Kernel stores to a copy of the tensor that is returned."""

    code = "TW311"
    severity = Severity.ERROR
    why = (
        "`contiguous` and `reshape` copy a tensor whose strides do not fit. A kernel that stores to the copy leaves the "
        "tensor itself as it was: the caller gets uninitialised memory, but only for transposed or sliced arguments."
    )
    advice = (
        "Allocate the result contiguous (torch.empty with a shape, or memory_format=torch.contiguous_format), or copy "
        "back with out.copy_(result)."
    )
    proof = Proof.NUMBERS
    VALID = (
        _KERNEL + "def double(x):\n    x = x.contiguous()\n    y = torch.empty_like(x)\n"
        "    _launch(x.reshape(-1), y.view(-1))\n    return y\n",
        _KERNEL + "def double(x, out):\n    y = out.contiguous()\n    _launch(x.reshape(-1), y.view(-1))\n"
        "    return out.copy_(y)\n",
    )
    INVALID = (
        _KERNEL + "def double(x, y):\n    if y.numel():\n        x = x.contiguous()\n        y = y.contiguous()\n"
        "        grid = (ct.cdiv(y.numel(), 1024),)\n"
        "        ct.launch(torch.cuda.current_stream(x.device), grid, _double_kernel, (x, y, 1024))\n",
        _KERNEL + "def double(x):\n    y = torch.empty_like(x)\n    if y.numel():\n        flat = y.reshape(-1)\n"
        "        grid = (ct.cdiv(y.numel(), 1024),)\n"
        "        stream = torch.cuda.current_stream(x.device)\n"
        "        ct.launch(stream, grid, _double_kernel, (x.reshape(-1), flat, 1024))\n    return y\n",
        _KERNEL + "def _ensure_contiguous(function):\n    def wrapper(*args, **kwargs):\n"
        "        args = [each.contiguous() for each in args]\n"
        "        return function(*args, **{name: each.contiguous() for name, each in kwargs.items()})\n\n"
        "    return wrapper\n\n\n@_ensure_contiguous\ndef double(x, out):\n"
        "    if out.shape != x.shape or out.dtype != x.dtype:\n        raise ValueError('out does not fit')\n"
        "    _launch(x.view(-1), out.view(-1))\n    return out\n",
    )

    def check(self, module: Module) -> Iterator[Finding]:
        seen: set[ast.expr] = set()
        for launch in module.launches:
            for target in _targets(module, launch):
                found = self._copy(module, launch, target)
                if found is not None and found not in seen:
                    seen.add(found)
                    yield self.finding(
                        module,
                        found,
                        f"{module.source(found)} may be a copy, and what the kernel stores to it is lost",
                    )
        for function in module.nodes(ast.FunctionDef):
            yield from self._decorated(module, function)

    def _decorated(self, module: Module, function: ast.FunctionDef) -> Iterator[Finding]:
        """`out` of a function whose decorator makes every tensor contiguous."""
        out = next((each for each in (*function.args.args, *function.args.kwonlyargs) if each.arg == "out"), None)
        for decorator in function.decorator_list:
            made = module.functions.get(decorator.id) if isinstance(decorator, ast.Name) else None
            copies = made is not None and any(
                isinstance(node, ast.Attribute) and node.attr == "contiguous" for node in ast.walk(made)
            )
            if out is not None and copies and made is not None and "out" not in _strings(made):
                yield self.finding(
                    module,
                    out,
                    f"{made.name} passes a copy of an out that is not contiguous, and what is stored to it is lost",
                )

    def _copy(self, module: Module, launch: Launch, target: ast.expr) -> ast.Call | None:
        """The call that copies what is stored to, if nothing returns or copies it back."""
        copy: ast.Call | None = None
        names = set()
        while True:
            if isinstance(target, ast.Name):
                names.add(target.id)
                bindings = definitions(module).reaching(target)
                values = [each.value for each in bindings if each.value is not None and each.position is None]
                if bindings and bindings[0].parameter and len(bindings) == 1:
                    break
                if len(values) != 1 or len(bindings) != 1:
                    return None
                target = values[0]
                continue
            match target:
                case ast.Call(func=ast.Attribute(value=owner, attr=method)) if method in _SAME and (
                    module.names.torch(target.func) is None
                ):
                    copy = target if method in _COPYING else copy
                    target = owner
                    continue
                case ast.Call(func=function) if module.names.torch(function) == "empty_like" and copy is not None:
                    if any(each.arg == "memory_format" for each in target.keywords):
                        return None
                    like = target.args[0] if target.args else None
                    if not isinstance(like, ast.Name) or not _is_argument(module, like):
                        return None
                    break
            return None
        function = launch.function
        if copy is None or function is None or not isinstance(copy.func, ast.Attribute):
            return None
        original = copy.func.value
        name = original.id if isinstance(original, ast.Name) else None
        if name is None or _is_taken_back(function, name, names - {name}) or self._is_safe(module, function, copy):
            return None
        return copy

    def _is_safe(self, module: Module, function: Function, copy: ast.Call) -> bool:
        """Whether the tensor is known to be contiguous, so that no copy is made."""
        around = calls(module).callers(function)
        for each in around:
            for node in ast.walk(each):
                if isinstance(node, ast.Attribute) and node.attr == "is_contiguous":
                    return True
                if isinstance(node, ast.Call) and node is not copy and each is not function:
                    if isinstance(node.func, ast.Attribute) and node.func.attr == "contiguous":
                        return True
            if any("contiguous" in ast.unparse(each) for each in each.decorator_list):
                return True
        return isinstance(copy.func, ast.Attribute) and copy.func.attr in ("to", "clone")


def _is_taken_back(function: Function, original: str, copies: set[str]) -> bool:
    """Whether the copy is returned, or copied to the original."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "copy_":
            return True
        if isinstance(node, ast.Return) and node.value is not None:
            names = {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}
            # A name that is bound anew (`y = y.contiguous()`) is the copy wherever it is returned
            rebound = any(
                isinstance(each, ast.Name) and each.id == original and isinstance(each.ctx, ast.Store)
                for each in ast.walk(function)
            )
            is_parameter = any(each.arg == original for each in function.args.args)
            if names & copies or (original in names and rebound and is_parameter):
                return True
    return False


def _targets(module: Module, launch: Launch) -> Iterator[ast.expr]:
    """Arguments that the kernels of a launch store to."""
    for kernel in kernels(module, launch):
        bound = launch.bound(kernel)
        yield from (bound[name] for name in sorted(stored(kernel)) if name in bound)


def _strings(function: Function) -> set[str]:
    return {node.value for node in ast.walk(function) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
