"""How the dtypes of cuTile are held: in memory, and in the tiles that the interpreter computes with.

=====================  ==================  =====================================================
dtype                  memory (torch)      tiles (torch)
=====================  ==================  =====================================================
bool                   bool                bool
int8 ... int64         the same            the same
uint8                  uint8               uint8
uint16, uint32         int16, int32        int32, int64; never negative
uint64                 int64               int64, the bit pattern
float16 ... float64    the same            the same
tfloat32               float32             float32 with 10 bits of mantissa
8- and 4-bit floats    uint8               uint8, the bit pattern (see `minifloats`)
pointers               int64               int64, an address in bytes
=====================  ==================  =====================================================
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tilewright.interpret.faults import unknown


@dataclass(frozen=True, slots=True)
class Element:
    """The elements of a tile.

    `storage` and `compute` are the torch dtypes in memory and in tiles; `kind` is "b" (bool), "i" (signed integer or
    pointer), "u" (unsigned integer) or "f" (float); `lowest` and `highest` bound integers and bools, 0 for floats;
    `encoded` says that tiles hold the bit patterns of a float, which torch cannot compute with.
    """

    name: str
    storage: torch.dtype
    compute: torch.dtype
    bits: int
    kind: str
    lowest: int = 0
    highest: int = 0
    encoded: bool = False

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory (1 for float4, two of which are packed into a byte by kernels only)."""
        return max(1, self.bits // 8)

    @property
    def is_integer(self) -> bool:
        """Whether uniform scalars are Python ints or bools."""
        return self.kind != "f"


def _signed(bits: int) -> Element:
    dtype = getattr(torch, f"int{bits}")
    return Element(f"int{bits}", dtype, dtype, bits, "i", -(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def _unsigned(bits: int, storage: torch.dtype, compute: torch.dtype) -> Element:
    return Element(f"uint{bits}", storage, compute, bits, "u", 0, (1 << bits) - 1)


def _float(name: str, dtype: torch.dtype) -> Element:
    return Element(name, dtype, dtype, dtype.itemsize * 8, "f")


def _minifloat(name: str, bits: int) -> Element:
    return Element(name, torch.uint8, torch.uint8, bits, "f", encoded=True)


BOOL = Element("bool_", torch.bool, torch.bool, 8, "b", 0, 1)
INT8, INT16, INT32, INT64 = (_signed(bits) for bits in (8, 16, 32, 64))
UINT8 = _unsigned(8, torch.uint8, torch.uint8)
UINT16 = _unsigned(16, torch.int16, torch.int32)
UINT32 = _unsigned(32, torch.int32, torch.int64)
UINT64 = _unsigned(64, torch.int64, torch.int64)
FLOAT16 = _float("float16", torch.float16)
BFLOAT16 = _float("bfloat16", torch.bfloat16)
FLOAT32 = _float("float32", torch.float32)
FLOAT64 = _float("float64", torch.float64)
TFLOAT32 = _float("tfloat32", torch.float32)
FLOAT8_E4M3FN = _minifloat("float8_e4m3fn", 8)
FLOAT8_E5M2 = _minifloat("float8_e5m2", 8)
FLOAT8_E8M0FNU = _minifloat("float8_e8m0fnu", 8)
FLOAT8_E5M3FNU = _minifloat("float8_e5m3fnu", 8)
FLOAT4_E2M1FN = _minifloat("float4_e2m1fn", 4)
POINTER = Element("pointer", torch.int64, torch.int64, 64, "i", INT64.lowest, INT64.highest)

NUMERIC = (
    *(BOOL, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64),
    *(FLOAT16, BFLOAT16, FLOAT32, FLOAT64, TFLOAT32),
    *(FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT8_E8M0FNU, FLOAT8_E5M3FNU, FLOAT4_E2M1FN),
)
_BY_NAME = {each.name: each for each in NUMERIC}


@functools.cache
def element(dtype: Any) -> Element:
    """The Element of a dtype of cuda.tile (`TileTy.dtype`); raises `UnsupportedOperation` if there is none."""
    found = _BY_NAME.get(dtype.name)
    if found is not None:
        return found
    if "pointer" in dtype.name:
        return POINTER
    raise unknown(f"the dtype {dtype.name}")


def from_storage(raw: Tensor, element: Element) -> Tensor:
    """Tile of what memory holds (dtype `element.storage`), of the same shape; the same tensor if nothing changes."""
    if element.storage is element.compute:
        return raw
    return raw.to(element.compute) & element.highest


def to_storage(tile: Tensor, element: Element) -> Tensor:
    """What memory holds of a tile (dtype `element.compute`): `from_storage` backwards."""
    return tile if element.storage is element.compute else tile.to(element.storage)


def as_tensor(value: Tensor | int, element: Element) -> Tensor:
    """`value` itself if it is a tile, else the scalar as a tile of shape (1,)."""
    if isinstance(value, Tensor):
        return value
    if value > INT64.highest:
        value -= 1 << 64
    return torch.tensor([value], dtype=element.compute)


def as_scalar(tile: Tensor, element: Element) -> int:
    """The Python int or bool of a tile of one element (kind "b", "i" or "u"): `as_tensor` backwards."""
    value: int = tile.item()
    return value & element.highest if element.kind == "u" else value


def wrap(value: int, element: Element) -> int:
    """The integer that `element` (kind "b", "i" or "u") holds after an operation whose exact result is `value`."""
    if element.lowest <= value <= element.highest:
        return value
    if element.kind == "b":
        return True
    value &= (1 << element.bits) - 1
    return value - (1 << element.bits) if value > element.highest else value
