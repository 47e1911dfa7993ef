"""Which arrays the views and pointers of a kernel may lead to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.interpret.check.dataflow import Dataflow
from tilewright.interpret.frontend import TypedKernel
from tilewright.interpret.memory.allocations import Memory
from tilewright.interpret.memory.places import Extent


def sources(kernel: TypedKernel, arguments: Sequence[Any], memory: Memory) -> dict[str, list[Extent]]:
    """The arrays that each view or pointer which the kernel accesses may lead to; nothing where that is not known."""
    flow = Dataflow(kernel.body)
    arrays = _arrays(kernel, arguments, memory)
    found = {}
    for op in flow.operations:
        variable = getattr(op, "view", None) or getattr(op, "pointer", None)
        if variable is not None and variable.name not in found:
            parameters = flow.memory_sources(variable)
            known = parameters <= arrays.keys()
            found[variable.name] = [extent for name in sorted(parameters) for extent in arrays[name]] if known else []
    return found


def _arrays(kernel: TypedKernel, arguments: Sequence[Any], memory: Memory) -> dict[str, list[Extent]]:
    """The arrays of the parameters, by the name of the variable that is their address or that of their list."""
    extents = iter(memory.extents)
    arrays = {}
    place = 0
    for constraint in kernel.constraints:
        variable = kernel.body.params[place]
        if hasattr(constraint, "element"):  # a list: its arrays and its length
            arrays[variable.name] = [next(extents) for _ in arguments[place].items]
            place += 2
        elif hasattr(constraint, "ndim"):
            arrays[variable.name] = [next(extents)]
            place += 1 + 2 * constraint.ndim
        else:
            place += 1
    return arrays
