"""Kernels that reach a launch, where one name stands for several in turn."""

import ast

from tilewright.rules.hosts.values import alternatives
from tilewright.rules.kernels import Kernel
from tilewright.rules.launches import Launch
from tilewright.rules.source import Module


def kernels(module: Module, launch: Launch) -> tuple[Kernel, ...]:
    """Those of the kernels of a launch that were assigned last before it."""
    if len(launch.kernels) < 2 or launch.kernel is None:
        return launch.kernels
    names: set[str] = set()
    pending = [launch.kernel]
    for _ in range(8):
        values = [value for node in pending for value in alternatives(module, node)]
        names |= {value.id for value in values if isinstance(value, ast.Name)}
        calls = [value for value in values if isinstance(value, ast.Call)]
        pending = [part for call in calls for part in (*call.args[:1], *_owner(call.func))]
    return tuple(kernel for kernel in launch.kernels if kernel.name in names)


def _owner(function: ast.expr) -> list[ast.expr]:
    """`kernel` in `kernel.replace_hints(...)`."""
    return [function.value] if isinstance(function, ast.Attribute) else []
