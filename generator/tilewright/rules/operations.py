"""What each function of `cuda.tile` gives for what is known about its arguments."""

import ast
from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import replace

from tilewright.rules.dtypes import is_float
from tilewright.rules.dtypes import is_integer
from tilewright.rules.dtypes import promoted
from tilewright.rules.elementwise import BINARY
from tilewright.rules.elementwise import UNARY
from tilewright.rules.elementwise import binary
from tilewright.rules.elementwise import unary
from tilewright.rules.elementwise import where
from tilewright.rules.padding import axis_of
from tilewright.rules.padding import number_of
from tilewright.rules.shapes import expanded
from tilewright.rules.shapes import integers_of
from tilewright.rules.shapes import permuted
from tilewright.rules.shapes import reduced
from tilewright.rules.shapes import reshaped
from tilewright.rules.shapes import shape_of
from tilewright.rules.shapes import transposed
from tilewright.rules.symbols import Polynomial
from tilewright.rules.symbols import integer
from tilewright.rules.symbols import unknown
from tilewright.rules.values import UNKNOWN
from tilewright.rules.values import Array
from tilewright.rules.values import Axis
from tilewright.rules.values import DType
from tilewright.rules.values import Outside
from tilewright.rules.values import Padding
from tilewright.rules.values import Plain
from tilewright.rules.values import Scalar
from tilewright.rules.values import Tile
from tilewright.rules.values import Value

Values = Mapping[str, Value]


REDUCTIONS = frozenset(["sum", "prod", "max", "min", "argmax", "argmin", "reduce"])


SCANS = frozenset(["cumsum", "cumprod", "scan"])
PRODUCTS = frozenset(["mma", "matmul", "mma_scaled"])


def reduction(name: str, values: Values) -> Value:
    """The result of a reduction along axes."""
    x = values.get("x", UNKNOWN)
    if not isinstance(x, Tile):
        return UNKNOWN
    keep = values.get("keepdims")
    found = reduced(x, values.get("axis"), keepdims=isinstance(keep, Scalar) and keep.literal is True)
    if found is None:
        return Tile(dtype=x.dtype)
    tile, places = found
    summed = tuple(each for place in places if isinstance(each := x.axes[place], Padding)) if name == "sum" else ()
    dtype = "int32" if name in ("argmax", "argmin") or (x.dtype == "bool" and name == "sum") else x.dtype
    axes = tuple(_kept(name, each) for each in tile.axes)
    largest = x if name in ("max", "min") else None
    return replace(tile, dtype=dtype, axes=axes, positive=x.positive, summed=summed, maximum_of=largest)


def _kept(name: str, axis: Axis) -> Axis:
    """Along the other axes: zeros add up to zero, everything else of a number depends on the length."""
    if not isinstance(axis, Padding) or axis.kind in (Outside.ANYTHING, Outside.NEIGHBOUR):
        return axis
    if name in ("max", "min") or (name in ("sum", "prod") and axis.kind is Outside.NUMBER and axis.number == 0):
        return axis
    return replace(axis, kind=Outside.COMPUTED, number=0.0)


def multiplied(x: Value, y: Value, acc: Value | None) -> Value:
    """The result of `mma` or, without an accumulator, of `matmul`."""
    if not isinstance(x, Tile) or not isinstance(y, Tile):
        return Tile(dtype=acc.dtype) if isinstance(acc, Tile) else Tile()
    dtype = acc.dtype if isinstance(acc, Tile) else promoted(x.dtype, y.dtype)
    if x.shape is None or y.shape is None or min(len(x.shape), len(y.shape)) < 2:
        return Tile(shape=acc.shape if isinstance(acc, Tile) else None, dtype=dtype)
    shape = (*x.shape[:-1], y.shape[-1])
    axes = (*(None for _ in x.shape[:-2]), _outer(x.axes[-2]), _outer(y.axes[-1]))
    product = Tile(shape=shape, axes=axes, dtype=dtype)
    if acc is None:
        return product
    total = binary("add", product, acc)
    return replace(total, dtype=dtype, shape=shape) if isinstance(total, Tile) and total.shape else product


def _outer(axis: Axis) -> Axis:
    if isinstance(axis, Padding) and axis.kind is Outside.NUMBER and axis.number != 0:
        return replace(axis, kind=Outside.COMPUTED, number=0.0)
    return Plain() if axis is None else axis


def converted(x: Value, dtype: Value) -> Value:
    """`astype`; padding stays what it is."""
    if isinstance(dtype, Array):
        dtype = DType(dtype.dtype)
    name = dtype.name if isinstance(dtype, DType) else None
    if isinstance(x, Scalar):
        integral = name is None or is_integer(name)
        return Scalar(number=x.number if integral else None, literal=x.literal, constant=x.constant, dtype=name)
    if not isinstance(x, Tile):
        return Tile(dtype=name)
    cast = name.removesuffix(".dtype") if name and name.endswith(".dtype") else None
    element = None if is_float(name) else x.element
    if isinstance(x.maximum_of, Tile):
        return replace(x, dtype=name, element=element, cast=cast)
    return replace(x, dtype=name, element=element, cast=cast)


def filled(shape: Value | None, fill: Value, dtype: Value | None, node: ast.expr) -> Value:
    """`full`, `zeros` and `ones`."""
    sizes = shape_of(shape)
    name = dtype.name if isinstance(dtype, DType) else None
    number = number_of(fill)
    element = fill.number if isinstance(fill, Scalar) and (name is None or is_integer(name)) else None
    axes: tuple[Axis, ...] = (Plain(number),) * len(sizes or ())
    positive = number is not None and number >= 0
    return Tile(shape=sizes, dtype=name, axes=axes, element=element, number=number, positive=positive, start=node)


def arange(values: Values, node: ast.expr) -> Value:
    """A row of consecutive integers; each call is told apart by its place in the source."""
    sizes = shape_of(values.get("size"))
    size = sizes[0] if sizes else None
    dtype = values.get("dtype")
    start, step = (_integer(values.get(key), default) for key, default in (("start", 0), ("step", 1)))
    element = None
    if start is not None and step is not None:
        element = start + step * unknown("lane", node.lineno, node.col_offset, *(() if size is None else (size,)))
    return Tile(
        shape=(size,),
        dtype=dtype.name if isinstance(dtype, DType) else None,
        axes=(Plain(),),
        element=element,
        positive=True,
    )


def _integer(value: Value | None, default: int) -> Polynomial | None:
    if value is None:
        return integer(default)
    return value.number if isinstance(value, Scalar) else None


def subscripted(tile: Tile, items: int, new: tuple[int, ...]) -> Value:
    """`tile[:, None]`: `new` says at which of the `items` places there is a None."""
    if tile.shape is None or items - len(new) > len(tile.shape):
        return Tile(dtype=tile.dtype, folded=tile.folded)
    result = tile
    for place in new:
        result = expanded(result, place)
    return replace(result, folded=tile.folded)


def _transpose(values: Values) -> Value:
    return _of_tile(values, lambda tile: transposed(tile, values.get("axis0"), values.get("axis1")))


def _of_tile(values: Values, function: Callable[[Tile], Tile]) -> Value:
    x = values.get("x", UNKNOWN)
    return function(x) if isinstance(x, Tile) else Tile()


def _expand(values: Values) -> Value:
    place = integers_of(values.get("axis"))
    return _of_tile(values, lambda tile: expanded(tile, place[0] if place else None))


def _broadcast(values: Values) -> Value:
    x, shape = values.get("x", UNKNOWN), shape_of(values.get("shape"))
    if shape is None or not isinstance(x, Tile | Scalar):
        return Tile(shape=shape, dtype=getattr(x, "dtype", None))
    axes = tuple(axis_of(x, place) for place in range(-len(shape), 0))
    if isinstance(x, Scalar):
        return Tile(shape=shape, dtype=x.dtype, axes=axes, number=number_of(x), element=x.number)
    return replace(x, shape=shape, axes=axes, summed=(), maximum_of=None)


_SHAPES: dict[str, Callable[[Values], Value]] = {
    "broadcast_to": _broadcast,
    "expand_dims": _expand,
    "permute": lambda values: _of_tile(values, lambda tile: permuted(tile, integers_of(values.get("axes")))),
    "reshape": lambda values: _of_tile(values, lambda tile: reshaped(tile, shape_of(values.get("shape")))),
    "transpose": _transpose,
}


def computed(name: str, values: Values, node: ast.expr) -> Value:
    """The result of a function of `cuda.tile` that touches no memory."""
    result = _computed(name, values, node)
    folds = name in REDUCTIONS or name in PRODUCTS
    if isinstance(result, Tile) and (folds or any(isinstance(x, Tile) and x.folded for x in values.values())):
        return replace(result, folded=True)
    return result


def _computed(name: str, values: Values, node: ast.expr) -> Value:
    x, y = values.get("x", UNKNOWN), values.get("y", UNKNOWN)
    if name in BINARY:
        return binary(name, values.get("x1", x), values.get("x2", y))
    if name in UNARY:
        return unary(name, x)
    if name in _SHAPES:
        return _SHAPES[name](values)
    if name in REDUCTIONS:
        return reduction(name, values)
    match name:
        case "cumsum" | "cumprod" | "scan":
            return replace(x, axes=(None,) * len(x.axes), number=None, element=None) if isinstance(x, Tile) else Tile()
        case "where":
            return where(values.get("cond", UNKNOWN), x, y)
        case "mma" | "matmul":
            return multiplied(x, y, values.get("acc") if name == "mma" else None)
        case "mma_scaled":
            acc = values.get("acc")
            return Tile(shape=acc.shape, dtype=acc.dtype) if isinstance(acc, Tile) else Tile()
        case "astype":
            return converted(x, values.get("dtype", UNKNOWN))
        case "arange":
            return arange(values, node)
        case "full":
            return filled(values.get("shape"), values.get("fill_value", UNKNOWN), values.get("dtype"), node)
        case "zeros" | "ones":
            one = Scalar(number=integer(int(name == "ones")), literal=int(name == "ones"), constant=True)
            return filled(values.get("shape"), one, values.get("dtype"), node)
        case "bid" | "num_blocks":
            place = integers_of(values.get("axis"))
            kind = "bid" if name == "bid" else "blocks"
            return Scalar(number=unknown(kind, place[0] if place else "?"), dtype="int32")
        case "cat" | "extract" | "insert" | "bitcast" | "unpack_from_bytes" | "pack_to_bytes" | "astile":
            dtype = values.get("dtype")
            return Tile(dtype=dtype.name if isinstance(dtype, DType) else None)
        case "assume_divisible_by" | "ensure_constant" | "static_eval":
            return values.get("x", values.get("value", values.get("expr", UNKNOWN)))
    return UNKNOWN
