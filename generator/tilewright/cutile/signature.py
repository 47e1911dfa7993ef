"""Derive the signature of a launch from its arguments as the just-in-time compiler would, without a GPU.

`KernelSignature.from_kernel_args` asks the driver, so it works only where one is installed.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import cuda.tile as ct
import torch
from cuda.tile.compilation import ArrayConstraint
from cuda.tile.compilation import CallingConvention
from cuda.tile.compilation import ConstantConstraint
from cuda.tile.compilation import KernelSignature
from cuda.tile.compilation import ParameterConstraint
from cuda.tile.compilation import ScalarConstraint
from cuda.tile.compilation import TupleConstraint

_SAME_NAME = (
    *("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"),
)
_DTYPES = {torch.bool: ct.bool_} | {getattr(torch, name): getattr(ct, name) for name in _SAME_NAME}
# From cuda-tile 1.6 on, the release that brought this annotation, a length of 1 is a constant.
_ONE_IS_CONSTANT = "static_stride_dims" in ct.ArrayAnnotation.__dataclass_fields__
_INT32 = range(-(2**31), 2**31)
_MOST_DIMENSIONS = 5  # arrays of higher rank carry no assumptions: the tensor memory accelerator cannot take them
_DIVISOR = 16  # bytes for addresses and strides, elements for lengths


def signature(kernel: Any, arguments: Sequence[Any], *, aligned: bool) -> KernelSignature:
    """Signature of `kernel` for these arguments; unaligned means that no array starts at a multiple of 16 bytes."""
    annotations = kernel._annotated_function.parameter_annotations
    if len(arguments) != len(annotations):
        raise TypeError(f"the kernel takes {len(annotations)} arguments, the launch passes {len(arguments)}")
    constraints = [
        _constraint(argument, annotation, aligned) for argument, annotation in zip(arguments, annotations, strict=True)
    ]
    unnamed = KernelSignature(constraints, CallingConvention.cutile_python_v2())
    return unnamed.with_mangled_symbol(kernel._annotated_function.pyfunc.__name__)


def _constraint(value: Any, annotation: Any, aligned: bool) -> ParameterConstraint:
    if isinstance(value, tuple):
        items = zip(value, _items(annotation, len(value)), strict=True)
        return TupleConstraint([_constraint(item, each, aligned) for item, each in items])
    if annotation.constant:
        return ConstantConstraint(_DTYPES.get(value, value))
    if isinstance(value, torch.Tensor):
        return _array(value, annotation.array, aligned)
    if isinstance(value, bool):
        return ScalarConstraint(ct.bool_)
    if isinstance(value, int):
        if annotation.scalar is not None:
            return ScalarConstraint(annotation.scalar.dtype)
        if value not in _INT32:
            raise OverflowError(f"scalar {value} does not fit int32; annotate the parameter with ct.ScalarInt64")
        return ScalarConstraint(ct.int32)
    if isinstance(value, float):
        return ScalarConstraint(ct.float32)
    raise TypeError(f"a launch cannot pass {type(value).__name__}: {value!r}")


def _items(annotation: Any, length: int) -> Sequence[Any]:
    """Annotations of a tuple's items: one for all of them, or one each."""
    items: Sequence[Any] | None = getattr(annotation, "items", None)
    return [getattr(annotation, "each", annotation)] * length if items is None else items


def _array(tensor: torch.Tensor, annotation: Any, aligned: bool) -> ArrayConstraint:
    shape = tuple(tensor.shape)
    strides = tensor.stride()
    rank = len(shape)
    index_dtype = ct.int32 if annotation is None else annotation.index_dtype
    if index_dtype == ct.int32 and not all(n in _INT32 for n in (*shape, *strides)):
        raise OverflowError(
            f"shape {shape} or strides {strides} exceed int32; annotate the parameter with ct.IndexedWithInt64"
        )
    fixed_shape = _axes(annotation, "static_shape_dims", rank)
    fixed_strides = _axes(annotation, "static_stride_dims", rank)
    assume = rank <= _MOST_DIMENSIONS
    per_vector = _DIVISOR // tensor.element_size()
    return ArrayConstraint(
        _dtype(tensor.dtype),
        rank,
        index_dtype=index_dtype,
        stride_lower_bound_incl=0,
        alias_groups=(),
        may_alias_internally=_overlaps(shape, strides),
        # Annotated axes replace what would be inferred, they do not add to it.
        stride_constant=[
            s if axis in fixed_strides or (assume and s == 1 and not fixed_strides) else None
            for axis, s in enumerate(strides)
        ],
        shape_constant=[
            n if axis in fixed_shape or (assume and _ONE_IS_CONSTANT and n == 1 and not fixed_shape) else None
            for axis, n in enumerate(shape)
        ],
        stride_divisible_by=[per_vector if assume and s % per_vector == 0 else 1 for s in strides],
        shape_divisible_by=[_DIVISOR if assume and n % _DIVISOR == 0 else 1 for n in shape],
        base_addr_divisible_by=_base_divisor(tensor) if aligned else 1,
    )


def _dtype(dtype: torch.dtype) -> Any:
    if dtype not in _DTYPES:
        raise TypeError(f"cuTile has no arrays of {dtype}")
    return _DTYPES[dtype]


def _axes(annotation: Any, name: str, rank: int) -> set[int]:
    return {axis % rank for axis in getattr(annotation, name, ())}


def _overlaps(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether two indices may mean one element: a stride of 0, or one shorter than the axis inside it."""
    axes = sorted(zip(strides, shape, strict=True))
    return any(stride <= 0 for stride, _ in axes) or any(
        outer < stride * length for (stride, length), (outer, _) in pairwise(axes)
    )


def _base_divisor(tensor: torch.Tensor) -> int:
    """The allocator aligns storage generously, so the offset of a view decides."""
    return _DIVISOR if tensor.storage_offset() * tensor.element_size() % _DIVISOR == 0 else 1
