"""Rules about kernels that are compiled more often, or for longer, than they need."""

import ast
from collections.abc import Iterator

from tilewright.rules.definitions import definitions
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.hosts.examples import COMPLETE_SEARCH
from tilewright.rules.hosts.examples import TUNED_KERNEL
from tilewright.rules.hosts.examples import search
from tilewright.rules.hosts.walking import walk
from tilewright.rules.launches import Launch
from tilewright.rules.rule import Rule
from tilewright.rules.source import Function
from tilewright.rules.source import Module


class HintedPerCall(Rule):
    """Kernel that is given new hints at every call."""

    code = "TW317"
    severity = Severity.WARNING
    why = (
        "replace_hints returns a new kernel with an empty cache of compiled code: at every call the compiler is "
        "asked again, which takes milliseconds where a launch takes microseconds."
    )
    advice = "Keep the hinted kernel: at module level, in a dictionary, or in a function with functools.cache."
    VALID = (
        COMPLETE_SEARCH,
        TUNED_KERNEL + "_narrow_kernel = _double_kernel.replace_hints(occupancy=4)\n",
        "import functools\n" + TUNED_KERNEL + "@functools.cache\ndef _hinted(occupancy):\n"
        "    return _double_kernel.replace_hints(occupancy=occupancy)\n",
    )
    INVALID = (
        TUNED_KERNEL + "def _hinted(occupancy):\n    return _double_kernel.replace_hints(occupancy=occupancy)\n\n\n"
        "def double(x, y):\n    if n := x.numel():\n        stream = torch.cuda.current_stream(x.device)\n"
        "        ct.launch(stream, (ct.cdiv(n, 1024),), _hinted(4), (x, y, n, 1024))\n",
        TUNED_KERNEL + "def double(x, y):\n    if n := x.numel():\n"
        "        kernel = _double_kernel.replace_hints(occupancy=4)\n"
        "        stream = torch.cuda.current_stream(x.device)\n"
        "        ct.launch(stream, (ct.cdiv(n, 1024),), kernel, (x, y, n, 1024))\n",
        TUNED_KERNEL
        + "def double(x, y):\n    if n := x.numel():\n        stream = torch.cuda.current_stream(x.device)\n"
        "        ct.launch(\n            stream,\n            (ct.cdiv(n, 1024),),\n"
        "            _double_kernel.replace_hints(occupancy=4),\n            (x, y, n, 1024),\n        )\n",
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for launch in module.launches:
            if launch.search or launch.kernel is None or launch.function is None or _is_cached(launch.function):
                continue
            for call in _hinting(module, launch.kernel):
                if not _is_kept(module, call, launch):
                    yield self.finding(
                        module,
                        call,
                        f"{ast.unparse(call.func)} makes a kernel without compiled code at every call of "
                        f"{launch.function.name}: keep the kernel that it makes",
                    )


def _hinting(module: Module, node: ast.expr, depth: int = 2) -> Iterator[ast.Call]:
    if isinstance(node, ast.Name):
        for binding in definitions(module).reaching(node):
            if binding.value is not None:
                yield from _hinting(module, binding.value, depth)
    elif isinstance(node, ast.IfExp):
        yield from _hinting(module, node.body, depth)
        yield from _hinting(module, node.orelse, depth)
    elif isinstance(node, ast.Call):
        match node.func:
            case ast.Attribute(attr="replace_hints"):
                if module.function_of(node) is not None:
                    yield node
            case ast.Name(id=name):
                function = module.functions.get(name)
                if function is not None and depth and not _is_cached(function) and not _keeps(function):
                    for each in walk(function):
                        if isinstance(each, ast.Return) and each.value is not None:
                            yield from _hinting(module, each.value, depth - 1)


def _keeps(function: Function) -> bool:
    """Whether a function stores anything, as one that fills a dictionary of kernels does."""
    return any(
        isinstance(each, ast.Subscript | ast.Attribute) and isinstance(each.ctx, ast.Store) for each in walk(function)
    )


def _is_cached(function: Function) -> bool:
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
        for node in walk(launch.function or module.tree)
    )


class UnboundedSearch(Rule):
    """Search that one candidate can stop."""

    code = "TW318"
    severity = Severity.WARNING
    why = (
        "Some candidates take minutes to compile, or none compiles on a GPU that nobody tried: the first call "
        "then hangs, or raises `No valid config found in search space`, although the kernel itself would run."
    )
    advice = "Search within `with ct.compiler_timeout(seconds):`, or catch the failure and launch a default."
    VALID = (COMPLETE_SEARCH,)
    INVALID = (
        search("(n, x.dtype, str(x.device))", bounded=False).replace(
            "(x, y, n, 1024)", "(x, y, n, 256 * occupancy)", 1
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for launch in module.launches:
            if launch.search and not _is_bounded(module, launch.node):
                sizes = any(_is_of_config(module, launch, each) for each in launch.arguments or ())
                yield self.finding(
                    module,
                    launch.node.func,
                    "nothing bounds the time of the compiler in this search: use ct.compiler_timeout",
                    severity=None if sizes else Severity.INFO,
                )


def _is_of_config(module: Module, launch: Launch, node: ast.expr) -> bool:
    """Whether an argument of the kernel depends on the candidate, as the size of a tile does."""
    return any(
        (isinstance(each, ast.Name) and module.function_of(binding.node) is not launch.function)
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
