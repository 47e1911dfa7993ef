"""Where the values of a kernel's typed IR come from: pointers from parameters, addresses from arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

from cuda.tile._datatype import is_integral
from cuda.tile._datatype import is_signed

# By opcode, the operands that lead on to the same memory.
_SAME_MEMORY = {
    "assign": ("value",),
    "make_tensor_view": ("base_ptr",),
    "make_list_view": ("base_ptr",),
    "get_array_list_item": ("x",),
    "make_partition_view": ("array",),
    "make_strided_view": ("array",),
    "make_gather_scatter_view": ("array",),
    "pointer_offset": ("pointer",),
    "reinterpret_pointer": ("pointer",),
    "address_space_cast": ("pointer",),
    "foreign_pointer_cast": ("pointer",),
    "tile_reshape": ("x",),
    "tile_broadcast": ("x",),
    "tile_permute": ("x",),
    "tile_extract": ("x",),
    "tile_cat": ("x", "y"),
    "raw_where": ("x", "y"),
}
# By opcode, the operands whose value reaches the result of linear arithmetic as it is.
_SAME_NUMBER = {
    "assign": ("value",),
    "tile_reshape": ("x",),
    "tile_broadcast": ("x",),
    "tile_permute": ("x",),
    "tile_extract": ("x",),
    "tile_cat": ("x", "y"),
    "assume_div_by": ("x",),
    "assume_bounded": ("x",),
}
_ARITHMETIC = ("add", "sub", "mul")
_COMBINING = ("tile_reduce", "tile_mma", "tile_mma_scaled")
_OPAQUE = ("tile_load", "load_pointer", "loop", "ifelse")  # what they give is memory, or known by their joins


class Dataflow:
    """The definitions of all variables of a kernel."""

    def __init__(self, body: Any) -> None:
        self.operations: list[Any] = []
        self._definitions: dict[str, Any] = {}
        self._joins: dict[str, list[Any]] = {}  # of variables of loops and branches: what they may be
        self._walk(body, None, None)

    def _walk(self, block: Any, loop: Any, branch: Any) -> None:
        for op in block:
            self.operations.append(op)
            for variable in op.result_vars:
                self._definitions[variable.name] = op
            if op.op == "loop":
                self._join(op.body_vars, op.initial_values)
                if op.is_for_loop:
                    self._join((op.induction_var,), (op.start,))
                    self._join(op.result_vars, op.body_vars)
                self._walk(op.body, op, None)
            elif op.op == "ifelse":
                self._walk(op.then_block, loop, op)
                self._walk(op.else_block, loop, op)
            elif op.op == "continue":
                self._join(loop.body_vars, op.values)
            elif op.op == "break":
                self._join(loop.result_vars, op.values)
            elif op.op == "end_branch" and branch is not None:
                self._join(branch.result_vars, op.outputs)
            else:
                for nested in op.nested_blocks:
                    self._walk(nested, None, None)

    def _join(self, targets: Sequence[Any], values: Sequence[Any]) -> None:
        for target, value in zip(targets, values, strict=True):
            self._joins.setdefault(target.name, []).append(value)

    def _back(self, start: Sequence[Any], leads: Callable[[Any], Sequence[Any]]) -> Iterator[Any]:
        """All variables that `start` may come from, through joins and the operands that `leads` names."""
        pending, seen = list(start), set[str]()
        while pending:
            variable = pending.pop()
            if variable.name in seen:
                continue
            seen.add(variable.name)
            yield variable
            pending += self._joins.get(variable.name, ())
            op = self._definitions.get(variable.name)
            if op is not None:
                pending += leads(op)

    def memory_sources(self, variable: Any) -> set[str]:
        """Names of the variables without a definition, parameters for one, that a view or pointer may come from."""

        def leads(op: Any) -> Sequence[Any]:
            return [getattr(op, field) for field in _SAME_MEMORY.get(op.op, ())]

        return {each.name for each in self._back([variable], leads) if each.name not in self._definitions}

    def combined_stores(self) -> set[str]:
        """Names of the stored tiles that a reduction or a product of matrices has a part in."""

        def leads(op: Any) -> Sequence[Any]:
            return () if op.op in _OPAQUE else list(op.all_inputs())

        combined = {each.name for op in self.operations if op.op in _COMBINING for each in op.result_vars}
        stored = [op.tile for op in self.operations if op.op == "tile_store"]
        return {tile.name for tile in stored if any(each.name in combined for each in self._back([tile], leads))}

    def index_arithmetic(self) -> set[str]:
        """Names of the results of signed additions, subtractions and multiplications that become addresses.

        They reach the index of a view or the offset of a pointer through such operations, casts to wider or equally
        wide integers and changes of shape only. What a hash does before it takes a remainder, a mask or a shift is none
        of them.
        """
        roots: list[Any] = []
        for op in self.operations:
            if op.op in ("tile_load", "tile_store", "tile_atomic_red_view"):
                roots += op.index
            elif op.op == "pointer_offset":
                roots.append(op.offset)
        reached = {each.name for each in self._back(roots, _linear)}
        return {
            op.result_var.name
            for op in self.operations
            if op.op == "raw_binary_arith" and op.result_var.name in reached and _signed_arithmetic(op)
        }


def _linear(op: Any) -> Sequence[Any]:
    if op.op == "raw_binary_arith" and op.fn in _ARITHMETIC:
        return (op.lhs, op.rhs)
    if op.op == "tile_astype":
        source, target = op.x.get_type().dtype, op.result_var.get_type().dtype
        return (op.x,) if is_integral(source) and target.bitwidth >= source.bitwidth else ()
    return [getattr(op, field) for field in _SAME_NUMBER.get(op.op, ())]


def _signed_arithmetic(op: Any) -> bool:
    dtype = op.result_var.get_type().dtype
    return op.fn in _ARITHMETIC and is_integral(dtype) and is_signed(dtype)
