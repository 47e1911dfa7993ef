"""Rule about results that are written to a copy."""

import ast
from collections.abc import Iterator

from tilewright.rules.definitions import definitions
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.hosts.calls import calls
from tilewright.rules.hosts.examples import WITH_LAUNCHER
from tilewright.rules.hosts.touched import targets
from tilewright.rules.hosts.values import is_argument
from tilewright.rules.hosts.walking import walk
from tilewright.rules.launches import Launch
from tilewright.rules.rule import Proof
from tilewright.rules.rule import Rule
from tilewright.rules.source import Function
from tilewright.rules.source import Module

_COPYING = ("contiguous", "reshape", "flatten")  # where strides do not fit
_DEPTH = 12
_VIEWING = ("view", "squeeze", "unsqueeze", "detach")


class LostResult(Rule):
    """Kernel stores to a copy of the tensor that is returned."""

    code = "TW311"
    severity = Severity.ERROR
    why = (
        "`contiguous` and `reshape` copy a tensor whose strides do not fit. A kernel that stores to the copy "
        "leaves the tensor itself as it was: the caller gets uninitialised memory, but only for transposed or "
        "sliced arguments."
    )
    advice = (
        "Allocate the result contiguous (torch.empty with a shape, or memory_format=torch.contiguous_format), or "
        "copy back with out.copy_(result)."
    )
    proof = Proof.NUMBERS
    VALID = (
        WITH_LAUNCHER + "def double(x):\n    x = x.contiguous()\n    y = torch.empty_like(x)\n"
        "    _launch(x.reshape(-1), y.view(-1))\n    return y\n",
        WITH_LAUNCHER + "def double(x, out):\n    y = out.contiguous()\n    _launch(x.reshape(-1), y.view(-1))\n"
        "    return out.copy_(y)\n",
    )
    INVALID = (
        WITH_LAUNCHER + "def double(x, y):\n    if y.numel():\n        x = x.contiguous()\n        y = y.contiguous()\n"
        "        grid = (ct.cdiv(y.numel(), 1024),)\n"
        "        ct.launch(torch.cuda.current_stream(x.device), grid, _double_kernel, (x, y, 1024))\n",
        WITH_LAUNCHER + "def double(x):\n    y = torch.empty_like(x)\n    if y.numel():\n        flat = y.reshape(-1)\n"
        "        grid = (ct.cdiv(y.numel(), 1024),)\n"
        "        stream = torch.cuda.current_stream(x.device)\n"
        "        ct.launch(stream, grid, _double_kernel, (x.reshape(-1), flat, 1024))\n    return y\n",
        WITH_LAUNCHER + "def _ensure_contiguous(function):\n    def wrapper(*args, **kwargs):\n"
        "        args = [each.contiguous() for each in args]\n"
        "        return function(*args, **{name: each.contiguous() for name, each in kwargs.items()})\n\n"
        "    return wrapper\n\n\n@_ensure_contiguous\ndef double(x, out):\n"
        "    if out.shape != x.shape or out.dtype != x.dtype:\n        raise ValueError('out does not fit')\n"
        "    _launch(x.view(-1), out.view(-1))\n    return out\n",
    )

    def check(self, module: Module) -> Iterator[Finding]:
        seen: set[ast.expr] = set()
        for launch in module.launches:
            for target in targets(launch):
                found = self._copy(module, launch, target)
                if found is not None and found not in seen:
                    seen.add(found)
                    yield self.finding(
                        module,
                        found,
                        f"{module.source(found)} may be a copy, and what the kernel stores to it is lost: copy it back",
                    )
        for function in module.nodes(ast.FunctionDef):
            yield from self._decorated(module, function)

    def _decorated(self, module: Module, function: ast.FunctionDef) -> Iterator[Finding]:
        """`out` of a function whose decorator makes every tensor contiguous."""
        out = next((each for each in (*function.args.args, *function.args.kwonlyargs) if each.arg == "out"), None)
        for decorator in function.decorator_list:
            made = module.functions.get(decorator.id) if isinstance(decorator, ast.Name) else None
            copies = made is not None and any(
                isinstance(node, ast.Attribute) and node.attr == "contiguous" for node in walk(made)
            )
            if out is not None and copies and made is not None and "out" not in _strings(made):
                yield self.finding(
                    module,
                    out,
                    f"{made.name} passes a copy of an out that is not contiguous, and what is stored to it is lost: "
                    "copy it back",
                )

    def _copy(self, module: Module, launch: Launch, target: ast.expr) -> ast.Call | None:
        """The call that copies what is stored to, if nothing returns or copies it back."""
        names, copy = _copied(module, target)
        function = launch.function
        if copy is None or function is None or not isinstance(copy.func, ast.Attribute):
            return None
        original = copy.func.value
        if not isinstance(original, ast.Name) or _is_taken_back(function, original.id, names - {original.id}):
            return None
        return None if _is_contiguous(module, function, copy) else copy


def _copied(module: Module, target: ast.expr) -> tuple[set[str], ast.Call | None]:
    """Names of what is stored to, and the call that copies an argument, or a tensor like one, to it."""
    copy: ast.Call | None = None
    names: set[str] = set()
    for _ in range(_DEPTH):  # a name may be made of itself
        match target:
            case ast.Name(id=name):
                names.add(name)
                bindings = definitions(module).reaching(target)
                if len(bindings) != 1:
                    return names, None
                value = bindings[0].value
                if bindings[0].parameter:
                    return names, copy
                if value is None or bindings[0].position is not None:
                    return names, None
                target = value
            case ast.Call(func=ast.Attribute(value=owner, attr=method)) if method in (*_COPYING, *_VIEWING) and (
                module.names.torch(target.func) is None
            ):
                copy = target if method in _COPYING else copy
                target = owner
            case ast.Call(func=function, args=[ast.Name() as like, *_], keywords=keywords) if (
                module.names.torch(function) == "empty_like"
            ):
                ordered = any(each.arg == "memory_format" for each in keywords)
                return names, copy if is_argument(module, like) and not ordered else None
            case _:
                break
    return names, None


def _is_contiguous(module: Module, function: Function, copy: ast.Call) -> bool:
    """Whether the function or its callers make sure that the tensor is contiguous, so that nothing is copied."""
    for each in calls(module).callers(function):
        if any("contiguous" in ast.unparse(decorator) for decorator in each.decorator_list):
            return True
        for node in walk(each):
            name = node.attr if isinstance(node, ast.Attribute) else ""
            if name == "is_contiguous" or (name == "contiguous" and each is not function and node is not copy.func):
                return True
    return False


def _is_taken_back(function: Function, original: str, copies: set[str]) -> bool:
    """Whether the copy is returned, or copied to the original."""
    for node in walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "copy_":
            return True
        if isinstance(node, ast.Return) and node.value is not None:
            names = {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}
            # A name that is bound anew (`y = y.contiguous()`) is the copy wherever it is returned
            rebound = any(
                isinstance(each, ast.Name) and each.id == original and isinstance(each.ctx, ast.Store)
                for each in walk(function)
            )
            is_parameter = any(each.arg == original for each in function.args.args)
            if names & copies or (original in names and rebound and is_parameter):
                return True
    return False


def _strings(function: Function) -> set[str]:
    return {node.value for node in walk(function) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
