"""What the compiler's types say about the operands of an operation."""

from __future__ import annotations

from typing import Any

from tilewright.interpret.faults import UnsupportedOperation
from tilewright.interpret.numbers.dtypes import Element
from tilewright.interpret.numbers.dtypes import element


def element_of(var: Any) -> Element:
    """The elements of a tile of the compiler's IR."""
    return element(var.get_type().dtype)


def shape_of(var: Any) -> tuple[int, ...]:
    """The shape of a tile of the compiler's IR, without the axis of blocks."""
    return tuple(var.get_type().shape)


def is_tile(var: Any) -> bool:
    """Whether a variable of the compiler's IR is a tile, not for one a string or a function."""
    kind = var.get_type()
    return hasattr(kind, "dtype") and hasattr(kind, "shape")


def require_computable(name: str, element: Element) -> None:
    """Raise `UnsupportedOperation` for floats that GPUs only move, convert and multiply as matrices."""
    if element.encoded or element.name == "tfloat32":
        raise UnsupportedOperation(
            f"{name} of {element.name} is nothing that the compiler can make code for\n"
            "convert it with ct.astype, to float32 for instance"
        )
