"""Rules about autotuning and hinted kernels."""

import ast
import re
from collections.abc import Iterator

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.hosts.definitions import definitions
from tilewright.rules.hosts.launched import kernels
from tilewright.rules.launches import Launch
from tilewright.rules.rule import Rule
from tilewright.rules.source import Module

_KERNEL = """
import cuda.tile as ct
import torch
from cuda.tile.tune import exhaustive_search

ConstInt = ct.Constant[int]
_CONFIGS = (1, 2, 4)
_tuned = {}


@ct.kernel
def _double_kernel(X, Y, N: ConstInt, TILE: ConstInt):
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (TILE,)) * 2)


"""


_BLOCK = re.compile(r"(?i)tile|block|pow")


def _search(key: str, indent: str = "") -> str:
    timeout = "        with ct.compiler_timeout(10):\n" if indent else ""
    return (
        _KERNEL
        + f"""def double(x):
    y = torch.empty_like(x)
    n = x.numel()
    if n == 0:
        return y
    stream = torch.cuda.current_stream(x.device)
    grid = (ct.cdiv(n, 1024),)
    key = {key}
    if key not in _tuned:
{timeout}{indent}        found = exhaustive_search(
{indent}            _CONFIGS,
{indent}            stream,
{indent}            lambda occupancy: grid,
{indent}            _double_kernel,
{indent}            lambda occupancy: (x, y, n, 1024),
{indent}            lambda occupancy: dict(occupancy=occupancy),
{indent}        )
        _tuned[key] = _double_kernel.replace_hints(occupancy=found.best.config)
    ct.launch(stream, grid, _tuned[key], (x, y, n, 1024))
    return y
"""
    )


_COMPLETE = _search("(n, x.dtype, str(x.device))", "    ")


class TuningKey(Rule):
    """Key of tuned kernels that leaves out what they were tuned for."""

    code = "TW316"
    severity = Severity.WARNING
    why = (
        "What was measured for one size, dtype, flag or device is then taken for another: slow at best, and a kernel that "
        "does not fit at worst. Which one wins depends on the order of calls."
    )
    advice = "Put every size, flag, dtype and the device that the search passes into the key."
    VALID = (_COMPLETE, _search("(tuple(x.shape), x.dtype, x.device.index)", "    "))
    INVALID = (
        _search("(x.dtype, str(x.device))", "    "),
        _search("(n, str(x.device))", "    "),
        _search("(n, x.dtype)", "    "),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for launch in module.launches:
            key = _key(module, launch) if launch.search else None
            if key is None:
                continue
            missing = list(dict.fromkeys(_missing(module, launch, key)))
            if missing:
                yield self.finding(module, key, f"the key leaves out {', '.join(missing)}")


def _key(module: Module, launch: Launch) -> ast.Tuple | None:
    """The tuple that the result of a search is kept under, if one can be told."""
    for node in ast.walk(launch.function) if launch.function is not None else ():
        match node:
            case ast.Assign(targets=[ast.Subscript(slice=ast.Name() as name)]):
                pass
            case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Name() as name, *_]):
                pass
            case _:
                continue
        bindings = definitions(module).reaching(name)
        if len(bindings) == 1 and isinstance(bindings[0].value, ast.Tuple):
            return bindings[0].value
    return None


def _missing(module: Module, launch: Launch, key: ast.Tuple) -> Iterator[str]:
    text = ast.unparse(key)
    known = {ast.unparse(node) for node in ast.walk(key) if isinstance(node, ast.expr)}
    for kernel in kernels(module, launch):
        bound = launch.bound(kernel)
        for parameter in kernel.parameters:
            value = bound.get(parameter.name)
            annotation = ast.unparse(parameter.node.annotation).lower() if parameter.node.annotation else ""
            if not parameter.constant or "float" in annotation or _BLOCK.search(parameter.name):
                continue  # a factor changes no timing, and a block follows from a size
            if isinstance(value, ast.Name) and not _is_of_candidate(module, launch, value):
                if not _is_covered(module, value, known):
                    yield value.id
    if any(each in text for each in ("key", "*")):
        return
    if "dtype" not in text and "itemsize" not in text and "element_size" not in text:
        yield "the dtype"
    if "device" not in text and "capability" not in text and "arch" not in text:
        yield "the device"


def _is_of_candidate(module: Module, launch: Launch, name: ast.Name) -> bool:
    """Whether a name is a parameter of the function that makes the arguments, not of the one around it."""
    bindings = definitions(module).reaching(name)
    return any(each.parameter and module.function_of(each.node) is not launch.function for each in bindings)


def _is_covered(module: Module, node: ast.expr, known: set[str], depth: int = 8) -> bool:
    """Whether an expression follows from what a key holds."""
    if ast.unparse(node) in known or isinstance(node, ast.Constant) or depth == 0:
        return True
    match node:
        case ast.Name():
            bindings = definitions(module).reaching(node)
            if not bindings or any(each.parameter for each in bindings):
                return not bindings
            return all(each.value is None or _is_covered(module, each.value, known, depth - 1) for each in bindings)
        case ast.Attribute(value=ast.Name(id="self" | "cfg" | "config")):
            return True
        case ast.Attribute(attr="shape", value=owner):
            return _holds_size(known, owner)
        case ast.Attribute():
            return True
        case ast.Call(func=ast.Attribute(attr="size" | "numel" | "stride", value=owner)):
            return _holds_size(known, owner)
        case ast.Subscript(value=value):
            return _is_covered(module, value, known, depth - 1)
        case ast.Call(args=arguments):
            return all(_is_covered(module, each, known, depth - 1) for each in arguments)
        case ast.BinOp(left=left, right=right):
            return all(_is_covered(module, each, known, depth - 1) for each in (left, right))
        case ast.IfExp(body=body, orelse=other, test=test):
            return all(_is_covered(module, each, known, depth - 1) for each in (body, other, test))
        case ast.Compare(left=left, comparators=others):
            return all(_is_covered(module, each, known, depth - 1) for each in (left, *others))
    return True


def _holds_size(known: set[str], tensor: ast.expr) -> bool:
    """Whether a key holds any size of a tensor: which ones it needs, a reader must judge."""
    return any(
        f"{ast.unparse(tensor)}.{name}" in each for each in known for name in ("shape", "size", "numel", "stride")
    )


class HintedPerCall(Rule):
    """Kernel that is given new hints at every call."""

    code = "TW317"
    severity = Severity.WARNING
    why = (
        "replace_hints returns a new kernel with an empty cache of compiled code: at every call the compiler is asked "
        "again, which takes milliseconds where a launch takes microseconds."
    )
    advice = "Keep the hinted kernel: at module level, in a dictionary, or in a function with functools.cache."
    VALID = (
        _COMPLETE,
        _KERNEL + "_narrow_kernel = _double_kernel.replace_hints(occupancy=4)\n",
        "import functools\n" + _KERNEL + "@functools.cache\ndef _hinted(occupancy):\n"
        "    return _double_kernel.replace_hints(occupancy=occupancy)\n",
    )
    INVALID = (
        _KERNEL + "def double(x, y):\n    if n := x.numel():\n"
        "        kernel = _double_kernel.replace_hints(occupancy=4)\n"
        "        stream = torch.cuda.current_stream(x.device)\n"
        "        ct.launch(stream, (ct.cdiv(n, 1024),), kernel, (x, y, n, 1024))\n",
        _KERNEL + "def double(x, y):\n    if n := x.numel():\n        stream = torch.cuda.current_stream(x.device)\n"
        "        ct.launch(\n            stream,\n            (ct.cdiv(n, 1024),),\n"
        "            _double_kernel.replace_hints(occupancy=4),\n            (x, y, n, 1024),\n        )\n",
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for launch in module.launches:
            if launch.search or launch.kernel is None or launch.function is None or _is_cached(launch.function):
                continue
            for call in _hinting(module, launch.kernel):
                if module.function_of(call) is launch.function and not _is_kept(module, call, launch):
                    yield self.finding(
                        module,
                        call,
                        f"{ast.unparse(call.func)} makes a kernel without compiled code at every call of "
                        f"{launch.function.name}",
                    )


def _hinting(module: Module, node: ast.expr) -> Iterator[ast.Call]:
    if isinstance(node, ast.Name):
        for binding in definitions(module).reaching(node):
            if binding.value is not None:
                yield from _hinting(module, binding.value)
    elif isinstance(node, ast.IfExp):
        yield from _hinting(module, node.body)
        yield from _hinting(module, node.orelse)
    elif isinstance(node, ast.Call):
        match node.func:
            case ast.Attribute(attr="replace_hints", value=kernel):
                if not isinstance(kernel, ast.Name) or module.names.resolve(kernel) != "functools":
                    yield node


def _is_cached(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("cache" in ast.unparse(each) for each in function.decorator_list)


def _is_kept(module: Module, call: ast.Call, launch: Launch) -> bool:
    """Whether the hinted kernel is stored somewhere: in a dictionary, or an attribute."""
    names = {ast.unparse(launch.kernel)} if launch.kernel is not None else set()
    statement = module.statement_of(call)
    if isinstance(statement, ast.Assign):
        names |= {each.id for each in statement.targets if isinstance(each, ast.Name)}
        if any(isinstance(each, ast.Subscript | ast.Attribute) for each in statement.targets):
            return True
    return any(
        isinstance(node, ast.Assign)
        and any(isinstance(each, ast.Subscript | ast.Attribute) for each in node.targets)
        and any(isinstance(each, ast.Name) and each.id in names for each in ast.walk(node.value))
        for node in ast.walk(launch.function or module.tree)
    )


class UnboundedSearch(Rule):
    """Search that one candidate can stop."""

    code = "TW318"
    severity = Severity.WARNING
    why = (
        "Some candidates take minutes to compile, or none compiles on a GPU that nobody tried: the first call then hangs, "
        "or raises `No valid config found in search space`, although the kernel itself would run."
    )
    advice = "Search within `with ct.compiler_timeout(seconds):`, or catch the failure and launch a default."
    VALID = (_COMPLETE,)
    INVALID = (_search("(n, x.dtype, str(x.device))").replace("(x, y, n, 1024)", "(x, y, n, 256 * occupancy)", 1),)

    def check(self, module: Module) -> Iterator[Finding]:
        for launch in module.launches:
            if launch.search and not _is_bounded(module, launch.node):
                sizes = any(_is_of_config(module, launch, each) for each in launch.arguments or ())
                yield self.finding(
                    module,
                    launch.node.func,
                    "nothing bounds the time of the compiler in this search",
                    severity=None if sizes else Severity.INFO,
                )


def _is_of_config(module: Module, launch: Launch, node: ast.expr) -> bool:
    """Whether an argument of the kernel depends on the candidate, as the size of a tile does."""
    return any(
        isinstance(each, ast.Name)
        and module.function_of(binding.node) is not launch.function
        or isinstance(module.parent(module.parent(binding.node) or binding.node), ast.Lambda)
        for each in ast.walk(node)
        if isinstance(each, ast.Name)
        for binding in definitions(module).reaching(each)
        if binding.parameter
    )


def _is_bounded(module: Module, call: ast.Call) -> bool:
    for outer in module.ancestors(call):
        if isinstance(outer, ast.With) and any("timeout" in ast.unparse(each.context_expr) for each in outer.items):
            return True
        if isinstance(outer, ast.Try) and outer.handlers:
            return True
    return False
