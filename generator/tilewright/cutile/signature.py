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
from cuda.tile.compilation import ListConstraint
from cuda.tile.compilation import ParameterConstraint
from cuda.tile.compilation import ScalarConstraint
from cuda.tile.compilation import TupleConstraint

_SAME_NAME = (
    *("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64"),
    *("float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"),
)
_DTYPES = {torch.bool: ct.bool_} | {getattr(torch, name): getattr(ct, name) for name in _SAME_NAME}
# From cuda-tile 1.6 on, the release that brought this annotation, a length of 1 is a constant.
_ONE_IS_CONSTANT = "static_stride_dims" in ct.ArrayAnnotation.__dataclass_fields__
_INT32 = (-(2**31), 2**31 - 1)
_INT64 = (-(2**63), 2**63 - 1)
_CONSTANT = (-(2**63), 2**64 - 1)
_MOST_DIMENSIONS = 5  # arrays of higher rank carry no assumptions: the tensor memory accelerator cannot take them
_DIVISOR = 16  # bytes for addresses and strides, elements for lengths


def signature(kernel: Any, arguments: Sequence[Any], *, aligned: bool) -> KernelSignature:
    """Signature of `kernel` for these arguments; unaligned means that no array starts at a multiple of 16 bytes."""
    annotations = annotations_of(kernel, len(arguments))
    constraints = [
        _constraint(argument, annotation, aligned) for argument, annotation in zip(arguments, annotations, strict=True)
    ]
    unnamed = KernelSignature(constraints, _convention(constraints))
    return unnamed.with_mangled_symbol(kernel._annotated_function.pyfunc.__name__)


def annotations_of(kernel: Any, passed: int) -> Sequence[Any]:
    """Annotation of each parameter of `kernel`; raises TypeError if a launch passes another number of arguments."""
    annotations: Sequence[Any] = kernel._annotated_function.parameter_annotations
    if passed != len(annotations):
        raise TypeError(f"the kernel takes {len(annotations)} arguments, the launch passes {passed}")
    return annotations


def item_annotations(annotation: Any, length: int) -> Sequence[Any]:
    """Annotations of a tuple's items: one for all of them, or one each."""
    items: Sequence[Any] | None = getattr(annotation, "items", None)
    return [getattr(annotation, "each", annotation)] * length if items is None else items


def _convention(constraints: Sequence[ParameterConstraint]) -> CallingConvention:
    """The first one that has what the launch needs, as the just-in-time compiler chooses it: its cache then hits."""
    if any(map(_needs_second_convention, constraints)):
        return CallingConvention.cutile_python_v2()
    return CallingConvention.cutile_python_v1()


def _needs_second_convention(constraint: ParameterConstraint) -> bool:
    if isinstance(constraint, ArrayConstraint):
        return any(length is not None for length in constraint.shape_constant)
    if isinstance(constraint, ListConstraint):
        return _needs_second_convention(constraint.element)
    return isinstance(constraint, TupleConstraint)


def _constraint(value: Any, annotation: Any, aligned: bool) -> ParameterConstraint:
    if isinstance(value, torch.Size) and getattr(annotation, "constant", False):
        raise TypeError("Could not interpret object of type 'torch.Size' as a constant: pass tuple(shape)")
    if isinstance(value, tuple):
        items = zip(value, item_annotations(annotation, len(value)), strict=True)
        return TupleConstraint([_constraint(item, each, aligned) for item, each in items])
    if not hasattr(annotation, "constant"):
        raise TypeError(f"the kernel takes a tuple where the launch passes {type(value).__name__}")
    if annotation.constant:
        return _constant(value)
    if isinstance(value, torch.Tensor):
        return _array([value], annotation.array, aligned)
    if isinstance(value, list):
        return _list(value, annotation, aligned)
    if isinstance(value, bool):
        return ScalarConstraint(ct.bool_)
    if isinstance(value, int):
        return _integer(value, annotation.scalar)
    if isinstance(value, float):
        return ScalarConstraint(ct.float32)
    raise TypeError(f"a launch cannot pass {type(value).__name__}: {value!r}")


def _constant(value: Any) -> ConstantConstraint:
    if not isinstance(value, (int, float)):
        raise TypeError(f"a constant of a kernel is a bool, int or float, not {type(value).__name__}: {value!r}")
    if isinstance(value, int) and not _within(value, _CONSTANT):
        raise OverflowError(f"constant {value} does not fit 64 bits")
    return ConstantConstraint(value)


def _integer(value: int, annotation: Any) -> ScalarConstraint:
    if annotation is None:
        if not _within(value, _INT32):
            raise OverflowError(f"scalar {value} does not fit int32; annotate the parameter with ct.ScalarInt64")
        return ScalarConstraint(ct.int32)
    if not _within(value, _INT64 if annotation.dtype == ct.int64 else _INT32):
        raise OverflowError(f"scalar {value} does not fit {annotation.dtype.name}")
    return ScalarConstraint(annotation.dtype)


def _within(value: int, bounds: tuple[int, int]) -> bool:
    return bounds[0] <= value <= bounds[1]


def _list(arrays: list[Any], annotation: Any, aligned: bool) -> ListConstraint:
    """What holds for every array of a list."""
    if not arrays:
        raise TypeError("a launch cannot pass an empty list")
    for array in arrays:
        if not isinstance(array, torch.Tensor):
            raise TypeError(f"a list of a launch holds arrays only, not {type(array).__name__}: {array!r}")
    if len({(array.dim(), array.dtype) for array in arrays}) > 1:
        raise TypeError("the arrays of a list vary in rank or dtype; they must have one of each")
    array_annotation = None if annotation.list is None else annotation.list.element
    element = _array(arrays, array_annotation, aligned)
    return ListConstraint(element, alias_groups=(), elements_may_alias=True)


def _array(tensors: Sequence[torch.Tensor], annotation: Any, aligned: bool) -> ArrayConstraint:
    """What holds for each of one or more tensors of one rank and dtype."""
    shapes = [tuple(tensor.shape) for tensor in tensors]
    strides = [tensor.stride() for tensor in tensors]
    rank = len(shapes[0])
    index_dtype = ct.int32 if annotation is None else annotation.index_dtype
    for shape, stride in zip(shapes, strides, strict=True):
        if index_dtype == ct.int32 and not all(_within(n, _INT32) for n in (*shape, *stride)):
            raise OverflowError(
                f"shape {shape} or strides {stride} exceed int32; annotate the parameter with ct.IndexedWithInt64"
            )
    by_axis = [set(lengths) for lengths in zip(*shapes, strict=True)]
    strides_by_axis = [set(steps) for steps in zip(*strides, strict=True)]
    fixed_shape = _fixed_axes(annotation, "shape", by_axis)
    fixed_strides = _fixed_axes(annotation, "stride", strides_by_axis)
    assume = rank <= _MOST_DIMENSIONS
    per_vector = _DIVISOR // tensors[0].element_size()
    # Annotated axes replace what would be inferred, they do not add to it.
    ones = assume and not fixed_shape and _ONE_IS_CONSTANT
    unit_strides = assume and not fixed_strides
    return ArrayConstraint(
        _dtype(tensors[0].dtype),
        rank,
        index_dtype=index_dtype,
        stride_lower_bound_incl=0,
        alias_groups=(),
        may_alias_internally=any(map(_overlaps, shapes, strides)),
        stride_constant=_constants(strides_by_axis, fixed_strides, infer_one=unit_strides),
        shape_constant=_constants(by_axis, fixed_shape, infer_one=ones),
        stride_divisible_by=[per_vector if assume and _all_divide(s, per_vector) else 1 for s in strides_by_axis],
        shape_divisible_by=[_DIVISOR if assume and _all_divide(n, _DIVISOR) else 1 for n in by_axis],
        base_addr_divisible_by=min(map(_base_divisor, tensors)) if aligned else 1,
    )


def _fixed_axes(annotation: Any, what: str, by_axis: Sequence[set[int]]) -> set[int]:
    """Axes whose length or stride the annotation makes a constant."""
    axes = {axis % len(by_axis) for axis in getattr(annotation, f"static_{what}_dims", ())}
    for axis in axes:
        if len(by_axis[axis]) > 1:
            raise ValueError(f"the arrays of a list vary in the static {what} of axis {axis}: {sorted(by_axis[axis])}")
    return axes


def _constants(by_axis: Sequence[set[int]], fixed: set[int], *, infer_one: bool) -> list[int | None]:
    return [min(n) if axis in fixed or (infer_one and n == {1}) else None for axis, n in enumerate(by_axis)]


def _all_divide(numbers: set[int], divisor: int) -> bool:
    return all(n % divisor == 0 for n in numbers)


def _dtype(dtype: torch.dtype) -> Any:
    if dtype is getattr(torch, "float4_e2m1fn_x2", None):
        raise TypeError(
            f"Array dtypes with multiple lanes are not supported: {dtype}\n"  # cuda-tile's own message
            "pass tensor.view(torch.uint8), and unpack its tiles with ct.unpack_from_bytes(tile, ct.float4_e2m1fn)"
        )
    if dtype not in _DTYPES:
        raise TypeError(f"cuTile has no arrays of {dtype}")
    return _DTYPES[dtype]


def _overlaps(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether two indices may mean one element: a stride of 0, or one shorter than the axis inside it."""
    axes = sorted(zip(strides, shape, strict=True))
    return any(stride <= 0 for stride, _ in axes) or any(
        outer < stride * length for (stride, length), (outer, _) in pairwise(axes)
    )


def _base_divisor(tensor: torch.Tensor) -> int:
    """The allocator aligns storage generously, so the offset of a view decides."""
    return _DIVISOR if tensor.storage_offset() * tensor.element_size() % _DIVISOR == 0 else 1
