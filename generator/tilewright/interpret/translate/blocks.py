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


def all_operations(block: Any) -> Sequence[Any]:
    """All operations of a block and of those inside of it."""
    found = []
    for op in block:
        found.append(op)
        for nested in op.nested_blocks:
            found.extend(all_operations(nested))
    return found


def outer_variables(block: Any) -> Sequence[Any]:
    """Variables that a block without control flow uses and does not define."""
    defined = {variable.name for variable in definitions(block)}
    used = {variable.name: variable for op in block for variable in op.all_inputs()}
    return [variable for name, variable in used.items() if name not in defined]
