"""Which axis an operation works along, and what is no operation along an axis at all."""

import ast
from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.dtypes import is_float
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.flow import Operation
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.kernel_rule import tile_alias
from tilewright.rules.rule import Proof
from tilewright.rules.values import Scalar
from tilewright.rules.values import Sequence
from tilewright.rules.values import Tile
from tilewright.rules.values import Value

_ELEMENTWISE = {"max": "maximum", "min": "minimum"}


_CLAMPS = ("relu", "clamp", "clip", "hinge")


def _elementwise(flow: Flow, operation: Operation) -> Fix | None:
    prefix = tile_alias(flow.module)
    call = operation.node
    if prefix is None or not isinstance(call, ast.Call):
        return None
    name = f"{prefix}{_ELEMENTWISE[operation.name]}"
    return Fix(f"Use {name}", (flow.module.replacement(call.func, name),))


class MaximumOfTwo(KernelRule):
    """ct.max or ct.min with a second value."""

    code = "TW250"
    severity = Severity.ERROR
    why = (
        "`ct.max` and `ct.min` reduce: their second argument is an axis. `ct.max(x, 0.0)` does not compile, and says "
        '"Expected an integer constant"; `ct.max(x, 0)` compiles, and gives the largest element of a column.'
    )
    advice = "Write `ct.maximum(x, 0.0)` for the larger of two, element by element."
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def clamp_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,), at least 0."""
    ct.store(Y, (ct.bid(0),), ct.maximum(ct.load(X, (ct.bid(0),), (TILE,)), 0.0))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def clamp_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,), at least 0."""
    ct.store(Y, (ct.bid(0),), ct.max(ct.load(X, (ct.bid(0),), (TILE,)), 0.0))
''',
        HEAD
        + '''@ct.kernel
def larger_kernel(X, Y, Z, TILE: ct.Constant[int]):
    """Z (N,) = the larger of X (N,) and Y (N,)."""
    x, y = ct.load(X, (ct.bid(0),), (TILE,)), ct.load(Y, (ct.bid(0),), (TILE,))
    ct.store(Z, (ct.bid(0),), ct.max(x, y))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """A second argument that is no axis."""
        for operation in flow.named("max", "min"):
            axis = operation.values.get("axis")
            if isinstance(axis, Tile) or (isinstance(axis, Scalar) and is_float(axis.dtype)):
                text = ast.unparse(operation.nodes["axis"])
                name = f"ct.{operation.name}"
                message = f"{name} reduces: `{text}` is taken as an axis; for two tiles write {name}imum"
                yield self.finding(flow.module, operation.node, message, fix=_elementwise(flow, operation))


class ReductionOfAxisZero(KernelRule):
    """ct.max(x, 0) where the larger of x and 0 is meant."""

    code = "TW251"
    severity = Severity.ERROR
    why = "The second argument of `ct.max` and `ct.min` is an axis: this is the largest element along axis 0, for all."
    advice = "Write `ct.maximum(x, 0)` for the larger of two, element by element."
    proof = Proof.NUMBERS
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def relu_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,), at least 0."""
    place = ct.bid(0) * TILE + ct.arange(TILE, dtype=ct.int32)
    ct.scatter(Y, place, ct.maximum(ct.gather(X, place), 0))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def clamp_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,), at least 0."""
    place = ct.bid(0) * TILE + ct.arange(TILE, dtype=ct.int32)
    ct.scatter(Y, place, ct.max(ct.gather(X, place), 0))
''',
        HEAD
        + '''@ct.kernel
def relu_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,), at least 0."""
    ct.store(Y, (ct.bid(0),), ct.max(ct.load(X, (ct.bid(0),), (TILE,)), 0))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Reductions that are written to the places that were read, or in a kernel that is named for a clamp."""
        for operation in flow.named("max", "min"):
            axis, x = operation.values.get("axis"), operation.value("x")
            by_position = isinstance(operation.node, ast.Call) and len(operation.node.args) == 2
            if not by_position or not isinstance(axis, Scalar) or axis.literal != 0 or not isinstance(x, Tile):
                continue
            if _is_clamp(flow) or any(_spread(each, operation) for each in flow.named("store", "scatter")):
                message = (
                    f"ct.{operation.name} along axis 0 gives one element, not one for each: use ct.{operation.name}imum"
                )
                yield self.finding(flow.module, operation.node, message, fix=_elementwise(flow, operation))


def _is_clamp(flow: Flow) -> bool:
    reductions = flow.named("sum", "argmax", "mma", "exp", "exp2")
    return any(word in flow.kernel.name.lower() for word in _CLAMPS) and not reductions


def _spread(store: Operation, reduction: Operation) -> bool:
    """Whether a scatter spreads just that reduction over a row of places."""
    indices = store.value("indices")
    entries: tuple[Value, ...] = indices.items if isinstance(indices, Sequence) else (indices,)
    wide = any(isinstance(each, Tile) and each.shape and each.shape[-1] is not None for each in entries)
    value = store.value("value")
    x = reduction.value("x")
    one = isinstance(value, Tile) and value.shape == () and value.maximum_of is not None
    return store.name == "scatter" and wide and one and isinstance(value, Tile) and value.maximum_of == x


class ScanOfOne(KernelRule):
    """A scan or reduction along an axis of one element."""

    code = "TW252"
    severity = Severity.ERROR
    why = "`ct.cumsum` and `ct.cumprod` work along axis 0 unless told otherwise: on a tile (1, N) that does nothing."
    advice = "Name the axis: `ct.cumsum(x, axis=1)`."
    proof = Proof.NUMBERS
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def cumsum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, N) = running sums of the rows of X (M, N), where N <= TILE."""
    tile = ct.load(X, (ct.bid(0), 0), (1, TILE)).astype(ct.float32)
    ct.store(Y, (ct.bid(0), 0), ct.cumsum(tile, axis=1).astype(Y.dtype))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def cumsum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, N) = running sums of the rows of X (M, N), where N <= TILE."""
    tile = ct.load(X, (ct.bid(0), 0), (1, TILE)).astype(ct.float32)
    ct.store(Y, (ct.bid(0), 0), ct.cumsum(tile).astype(Y.dtype))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Scans along an axis of one element, of tiles that have others."""
        for operation in flow.named("cumsum", "cumprod"):
            x, axis = operation.value("x"), operation.values.get("axis")
            place = 0 if axis is None else axis.literal if isinstance(axis, Scalar) else None
            if not isinstance(x, Tile) or x.shape is None or not isinstance(place, int) or place >= len(x.shape):
                continue
            size = x.shape[place]
            others = [at for at, each in enumerate(x.shape) if each is not None and each.number != 1]
            if size is None or size.number != 1 or not others:
                continue
            message = f"ct.{operation.name} works along axis {place}, which has one element: name the other"
            fix = None
            if axis is None and len(others) == 1 and isinstance(operation.node, ast.Call):
                text = f"axis={others[0]}"
                fix = Fix(f"Add {text}", (flow.module.added_argument(operation.node, text),))
            yield self.finding(flow.module, operation.node, message, fix=fix)
