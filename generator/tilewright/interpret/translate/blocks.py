"""The operations and variables of a block of the IR, and of those inside of it."""

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any


def definitions(block: Any) -> Iterable[Any]:
    """Variables that a block itself defines."""
    yield from block.params
    for op in block:
        yield from op.result_vars


def names_in(op: Any) -> set[str]:
    """Names that an operation uses or defines, in blocks inside of it too."""
    names = {variable.name for variable in (*op.all_inputs(), *op.result_vars)}
    for nested in op.nested_blocks:
        names.update(*map(names_in, nested))
    return names


def all_operations(operations: Iterable[Any]) -> Sequence[Any]:
    """Operations, as of a block, and all of the blocks inside of them."""
    found = []
    for op in operations:
        found.append(op)
        for nested in op.nested_blocks:
            found.extend(all_operations(nested))
    return found


def outer_variables(operations: Iterable[Any], parameters: Iterable[Any] = ()) -> Sequence[Any]:
    """Variables that operations use and neither define nor have as parameters of their block."""
    inside = all_operations(operations)
    used = {variable.name: variable for op in inside for variable in op.all_inputs()}
    defined = {variable.name for variable in parameters}
    for op in inside:
        defined.update(variable.name for variable in op.result_vars)
        defined.update(variable.name for nested in op.nested_blocks for variable in nested.params)
    return [variable for name, variable in used.items() if name not in defined]
