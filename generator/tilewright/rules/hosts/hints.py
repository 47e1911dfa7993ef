"""Rules about compiler hints."""

import ast
import difflib
import re
from collections.abc import Iterator

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.hosts.values import integers
from tilewright.rules.hosts.values import resolved
from tilewright.rules.rule import Proof
from tilewright.rules.rule import Rule
from tilewright.rules.source import Module

HINTS = ("num_ctas", "occupancy", "opt_level", "num_worker_warps")
_ALLOWED = {
    "num_ctas": ((1, 2, 4, 8, 16), "a power of two from 1 to 16"),
    "occupancy": (tuple(range(1, 33)), "from 1 to 32"),
    "opt_level": ((0, 1, 2, 3), "from 0 to 3"),
    "num_worker_warps": ((4, 8), "4 or 8; the compiler fails or hangs with others"),
}
_MEANT = {"num_warps": "num_worker_warps", "num_stages": None}

_CAPABILITY = re.compile(r"capability|major|arch|\bcc\b|sm_?\d", re.IGNORECASE)
_TEN = re.compile(r"== ?\(?10|>=? ?\(?\d|\[\(?10|in \(\(?10|sm_?10")  # tests that compute capability 10 passes

_KERNEL = """
import cuda.tile as ct
import torch


@ct.kernel{hints}
def _double_kernel(X, Y):
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (1024,)) * 2)
"""


def _kernel(hints: str) -> str:
    return _KERNEL.format(hints=hints)


def _hints(module: Module) -> Iterator[tuple[str, ast.AST, ast.expr]]:
    """Name, place and value of what is passed as hints: to a decorator, and to `replace_hints` of a kernel."""
    for call in module.nodes(ast.Call):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if module.names.tile(call.func) == "kernel" or name in ("replace_hints", "cached_replace_hints"):
            for keyword in call.keywords:
                if keyword.arg is not None:
                    yield keyword.arg, keyword, keyword.value
                for display in _spread(module, keyword.value) if keyword.arg is None else ():
                    yield from _entries(display)


def _spread(module: Module, node: ast.expr) -> Iterator[ast.Dict]:
    """Dictionaries that `**node` may be: one that is written out, or any of a dictionary of such."""
    known = resolved(module, node)
    if isinstance(known, ast.Subscript):
        outer = resolved(module, known.value)
        inner = outer.values if isinstance(outer, ast.Dict) else []
        yield from (each for each in inner if isinstance(each, ast.Dict))
    elif isinstance(known, ast.Dict):
        yield known


def _entries(display: ast.Dict) -> Iterator[tuple[str, ast.AST, ast.expr]]:
    for key, value in zip(display.keys, display.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield key.value, key, value


def _candidates(module: Module) -> Iterator[tuple[str, ast.expr]]:
    """Values that are kept under the name of a hint: of a candidate to be tuned, of a configuration."""
    if not module.kernels and not module.launches:
        return
    for call in module.nodes(ast.Call):
        yield from ((each.arg, each.value) for each in call.keywords if each.arg is not None)
    for display in module.nodes(ast.Dict):
        yield from ((name, value) for name, _, value in _entries(display))


def _values(module: Module, node: ast.expr) -> list[tuple[ast.expr, int]]:
    """Integers that a hint may have: its own, or those of `ct.ByTarget` for each architecture."""
    known = resolved(module, node)
    if isinstance(known, ast.Call) and module.names.tile(known.func) == "ByTarget":
        parts = [*known.args, *(keyword.value for keyword in known.keywords)]
        return [found for part in parts for found in _values(module, part)]
    return [(node, value) for value in sorted(integers(module, node) or ())]


class UnknownHint(Rule):
    """Compiler hint that does not exist."""

    code = "TW313"
    severity = Severity.ERROR
    why = "Kernels take the hints num_ctas, occupancy, opt_level and num_worker_warps; any other name is a TypeError."
    advice = "Use num_worker_warps for what other languages call num_warps; there is no num_stages."
    proof = Proof.COMPILER
    VALID = (_kernel("(num_worker_warps=8)"), _kernel("(occupancy=2, opt_level=3)"))
    INVALID = (
        _kernel("(num_warps=8)"),
        _kernel("(num_stages=3)"),
        _kernel("") + "\n\n_small_kernel = _double_kernel.replace_hints(ocupancy=4)\n",
        _kernel("")
        + "\n\nHINTS = {8192: {'num_warps': 8}}\n_large_kernel = _double_kernel.replace_hints(**HINTS[8192])\n",
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for name, place, value in _hints(module):
            if name in HINTS:
                continue
            meant = _MEANT.get(name) or next(iter(difflib.get_close_matches(name, HINTS, 1)), None)
            text = f"there is no hint {name}" + (f"; {meant} is meant" if meant else "")
            fix = None
            values = {each for _, each in _values(module, value)}
            if meant and (name not in _MEANT or values <= {4, 8}):
                written = f'"{meant}"' if isinstance(place, ast.Constant) else f"{meant}={module.source(value)}"
                fix = Fix(f"Write {meant}", (module.replacement(place, written),))
            yield self.finding(module, place, text, fix=fix)


class HintValue(Rule):
    """Compiler hint with a value that it cannot have."""

    code = "TW314"
    severity = Severity.ERROR
    why = (
        "num_ctas is a power of two up to 16, occupancy 1 to 32, opt_level 0 to 3; others are a ValueError. "
        "num_worker_warps other than 4 and 8 passes the front end, but then the compiler fails or never ends."
    )
    advice = "Use one of the values that the message names."
    proof = Proof.STYLE  # a dictionary of hints alone is refused by nothing
    VALID = (_kernel("(num_ctas=2, occupancy=4)"), _kernel("(occupancy=ct.ByTarget(sm_90=4, default=3))"))
    INVALID = (
        _kernel("(num_ctas=3)"),
        _kernel("(occupancy=0)"),
        _kernel("(num_worker_warps=16)"),
        _kernel("(occupancy=ct.ByTarget(sm_90=64, default=3))"),
        _kernel("(occupancy=OCCUPANCY)").replace("\n\n\n@ct", "\n\nOCCUPANCY = ct.ByTarget(sm_90=64)\n\n\n@ct"),
        _kernel("") + "\n\n_small_kernel = _double_kernel.replace_hints(num_ctas=32)\n",
        _kernel("") + "\n\n_CONFIGS = [dict(TILE=128, num_ctas=3)]\n",
        _kernel("") + "\n\nHINTS = {8192: {'num_worker_warps': 2}}\n",
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for name, given in _candidates(module):
            allowed, said = _ALLOWED.get(name, ((), ""))
            for node, value in _values(module, given) if allowed else ():
                if value not in allowed:
                    yield self.finding(module, node, f"{name} is {value}; it must be {said}")


class ClusteredOccupancy(Rule):
    """Two blocks per cluster together with two per multiprocessor."""

    code = "TW315"
    severity = Severity.WARNING
    why = (
        "On the large GPUs of compute capability 10 a launch with num_ctas=2 and occupancy=2 fails, and the error"
        " stays: every later call of CUDA in the process fails too, also the other candidates of a search."
    )
    advice = "Offer this pair below compute capability 10 only, or give both by ct.ByTarget."
    VALID = (
        _kernel("")
        + """

def _hints(device):
    if torch.cuda.get_device_capability(device)[0] < 10:
        return dict(num_ctas=2, occupancy=2)
    return dict(num_ctas=2, occupancy=1)
""",
        _kernel("(num_ctas=2, occupancy=1)"),
        _kernel("(num_ctas=ct.ByTarget(sm_100=1, default=2), occupancy=2)"),
    )
    INVALID = (
        _kernel("(num_ctas=2, occupancy=2)"),
        _kernel("") + "\n\n_small_kernel = _double_kernel.replace_hints(occupancy=2, num_ctas=2)\n",
        _kernel("")
        + """

def _configs(device):
    if torch.cuda.get_device_capability(device)[0] < 9:
        yield dict(num_ctas=1, occupancy=2)
    else:
        for occupancy in [1, 2]:
            yield dict(num_ctas=2, occupancy=occupancy)
""",
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for call in module.nodes(ast.Call):
            given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
            if not {"num_ctas", "occupancy"} <= given.keys():
                continue
            values = [integers(module, given[name]) or () for name in ("num_ctas", "occupancy")]
            if all(2 in each for each in values) and not _is_for_others(module, call):
                yield self.finding(
                    module, call, "num_ctas=2 with occupancy=2 can fail on compute capability 10: choose by ct.ByTarget"
                )


def _is_for_others(module: Module, call: ast.Call) -> bool:
    """Whether the values stand in a branch that a test of the capability keeps for other architectures."""
    node: ast.AST = call
    for outer in module.ancestors(call):
        if isinstance(outer, ast.If):
            test = ast.unparse(outer.test)
            if _CAPABILITY.search(test) and bool(_TEN.search(test)) is (node in outer.orelse):
                return True
        node = outer
    return False
