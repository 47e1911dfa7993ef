"""Parameters that a kernel reads and writes."""

import ast
import functools
from collections.abc import Iterator

from tilewright.rules.hosts.walking import walk
from tilewright.rules.kernels import Kernel
from tilewright.rules.launches import Launch

_LOADS = ("load", "gather", "load_advanced_indexing")
_ADDS = ("atomic_add", "atomic_max", "atomic_min", "atomic_and", "atomic_or", "atomic_xor")
_STORES = ("store", "scatter", "store_advanced_indexing")


def loaded(kernel: Kernel, *, always: bool = False) -> frozenset[str]:
    """Names of the parameters that a kernel loads from; with `always` whatever its constants are."""
    return _touched(kernel, _LOADS, always=always)


def stored(kernel: Kernel, *, always: bool = False) -> frozenset[str]:
    """Names of the parameters that a kernel stores to; with `always` whatever its constants are."""
    return _touched(kernel, _STORES, always=always)


def added(kernel: Kernel) -> frozenset[str]:
    """Names of the parameters that a kernel changes by atomic operations, whatever its constants are."""
    return _touched(kernel, _ADDS, always=True)


@functools.lru_cache(maxsize=256)
def _touched(kernel: Kernel, functions: tuple[str, ...], *, always: bool) -> frozenset[str]:
    names = {each.name for each in kernel.parameters}
    found = set()
    for node in _unconditional(kernel.node) if always else walk(kernel.node):
        if isinstance(node, ast.Call) and kernel.module.names.tile(node.func) in functions:
            array = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "array"), None)
            if isinstance(array, ast.Name) and array.id in names:
                found.add(array.id)
    return frozenset(found)


def _unconditional(node: ast.AST) -> Iterator[ast.AST]:
    pending = [node]
    while pending:
        each = pending.pop()
        yield each
        pending += [child for child in ast.iter_child_nodes(each) if not isinstance(child, ast.If | ast.IfExp)]


def targets(launch: Launch) -> Iterator[ast.expr]:
    """Arguments that the kernels of a launch store to."""
    for kernel in launch.kernels:
        bound = launch.bound(kernel)
        yield from (bound[name] for name in sorted(stored(kernel)) if name in bound)
