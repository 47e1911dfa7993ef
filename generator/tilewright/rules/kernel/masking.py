"""Bounds that are not checked, and rows of a softmax of which nothing is left."""

import ast
import math
from collections.abc import Iterator
from collections.abc import Mapping
from typing import ClassVar

from tilewright.rules.calls import is_guard
from tilewright.rules.definitions import values_of
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.flow import Operation
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.memory import entries_of
from tilewright.rules.memory import first_tile
from tilewright.rules.overhang import evidence
from tilewright.rules.padding import number_of
from tilewright.rules.rule import Proof
from tilewright.rules.shapes import shape_of
from tilewright.rules.symbols import Polynomial
from tilewright.rules.values import UNKNOWN
from tilewright.rules.values import Array
from tilewright.rules.values import Scalar
from tilewright.rules.values import Tile
from tilewright.rules.values import Value


class UncheckedBounds(KernelRule):
    """Bounds are not checked where a tile may hang over."""

    code = "TW215"
    severity = Severity.WARNING
    why = "With `check_bounds=False` what lies beyond the end is read, or overwritten: the next row, or another tensor."
    advice = "Remove `check_bounds=False`, or let the host make sure that the length is a multiple of the tile."
    proof = Proof.NUMBERS
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def copy_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,), where N is a multiple of TILE."""
    place = ct.bid(0) * TILE + ct.arange(TILE, dtype=ct.int32)
    ct.scatter(Y, place, ct.gather(X, place, check_bounds=False), check_bounds=False)


def copy(x, out):
    n = x.shape[0]
    assert n % 1024 == 0
    ct.launch(torch.cuda.current_stream(), (n // 1024,), copy_kernel, (x, out, 1024))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def copy_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,)."""
    place = ct.bid(0) * TILE + ct.arange(TILE, dtype=ct.int32)
    ct.scatter(Y, place, ct.gather(X, place, check_bounds=False), check_bounds=False)


def copy(x, out):
    n = x.shape[0]
    tile = 1024
    ct.launch(torch.cuda.current_stream(), (ct.cdiv(n, tile),), copy_kernel, (x, out, tile))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Accesses without a check and without a mask, at places that may be beyond the end."""
        for operation in flow.named("load", "store", "gather", "scatter"):
            checked = operation.values.get("check_bounds")
            if not isinstance(checked, Scalar) or checked.literal is not False or "mask" in operation.values:
                continue
            if any(is_guard(test) for test in operation.conditions):
                continue
            why = self._why(flow, operation)
            array = operation.value("array")
            if why is not None and isinstance(array, Array):
                message = f"{array.name} is accessed beyond its end, unchecked: {why}"
                yield self.finding(flow.module, operation.nodes["check_bounds"], message)

    def _why(self, flow: Flow, operation: Operation) -> str | None:
        if flow.launches.asks_for_multiples:
            return None
        for place, size in _places(operation.values):
            found = evidence(place, size, flow.launches)
            if found is not None:
                return found[0]
        for other in flow.named("gather", "scatter"):
            checked = other.values.get("check_bounds")
            same = other.value("indices") == operation.values.get("indices")
            row = any(isinstance(each, Tile) for each in entries_of(other.value("indices")))
            if same and row and (checked is None or getattr(checked, "literal", None) is True):
                return f"line {other.node.lineno} checks the same places"
        return None


def _places(values: Mapping[str, Value]) -> Iterator[tuple[Polynomial, Polynomial]]:
    """The number of the tile along each axis, and its size."""
    if "index" in values:
        places, tile = shape_of(values["index"]), values.get("tile")
        sizes = shape_of(values.get("shape")) or (tile.shape if isinstance(tile, Tile) else None)
        for place, size in zip(places or (), sizes or (), strict=False):
            if place is not None and size is not None:
                yield place, size
    for entry in entries_of(values.get("indices", UNKNOWN)):
        found = first_tile(entry)
        if found is not None:
            yield found


class EmptyRow(KernelRule):
    """An online softmax that starts at -inf, of rows that a mask may empty."""

    code = "TW216"
    severity = Severity.WARNING
    why = (
        "Where a mask leaves nothing of a row, or all of its first tile is -inf, the largest element so far stays "
        "-inf, and exp(-inf - -inf) is NaN for the whole row."
    )
    advice = "Start with a large negative number such as -1e30, or replace -inf: `ct.where(m == -math.inf, 0.0, m)`."
    proof = Proof.NUMBERS
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def shifted_exp_sum_kernel(X, Y, N: int, TILE: ct.Constant[int]):
    """Y (M, 1) = sums of exp(x - top) over the first N elements of the rows of X (M, N), top the largest."""
    top = ct.full((1, 1), -1e30, ct.float32)
    total = ct.zeros((1, 1), ct.float32)
    for j in range(ct.cdiv(X.shape[1], TILE)):
        tile = ct.load(X, (ct.bid(0), j), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
        inside = j * TILE + ct.arange(TILE, dtype=ct.int32)[None, :] < N
        tile = ct.where(inside, tile, float("-inf"))
        new = ct.maximum(top, ct.max(tile, 1, keepdims=True))
        total = total * ct.exp(top - new) + ct.sum(ct.exp(tile - new), 1, keepdims=True)
        top = new
    ct.store(Y, (ct.bid(0), 0), total.astype(Y.dtype))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def shifted_exp_sum_kernel(X, Y, N: int, TILE: ct.Constant[int]):
    """Y (M, 1) = sums of exp(x - top) over the first N elements of the rows of X (M, N), top the largest."""
    top = ct.full((1, 1), float("-inf"), ct.float32)
    total = ct.zeros((1, 1), ct.float32)
    for j in range(ct.cdiv(X.shape[1], TILE)):
        tile = ct.load(X, (ct.bid(0), j), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
        inside = j * TILE + ct.arange(TILE, dtype=ct.int32)[None, :] < N
        tile = ct.where(inside, tile, float("-inf"))
        new = ct.maximum(top, ct.max(tile, 1, keepdims=True))
        total = total * ct.exp(top - new) + ct.sum(ct.exp(tile - new), 1, keepdims=True)
        top = new
    ct.store(Y, (ct.bid(0), 0), total.astype(Y.dtype))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """exp(m - new), where m starts at -inf and a mask puts -inf in the same loop."""
        if any(-math.inf in _numbers(each.values) for each in flow.named("equal", "not_equal", "greater")):
            return
        starts = {
            (each.name, each.loop)
            for each in flow.carries
            if isinstance(each.before, Tile) and each.before.number == -math.inf
        }
        masked = {loop for each in flow.named("where") if -math.inf in _numbers(each.values) for loop in each.loops}
        differences = {}
        for operation in flow.named("sub"):
            left = operation.nodes["x"]
            loops = [loop for loop in operation.loops if loop in masked]
            if isinstance(left, ast.Name) and any((left.id, loop) in starts for loop in loops):
                if _is_chosen(flow, operation.nodes["y"]):
                    continue
                differences[id(operation.result)] = operation, left.id
        for operation in flow.named("exp", "exp2", "mul"):
            found = differences.get(id(operation.value("x")))
            if found is not None:
                message = f"{found[1]} starts at -inf: in a row that is masked as a whole this is NaN"
                # Products are finite, and masks of attention nearly always leave something; an array may hold -inf
                severity = Severity.INFO if flow.named("mma", "mma_scaled", "matmul") else None
                yield self.finding(flow.module, found[0].node, message, severity=severity)


def _is_chosen(flow: Flow, node: ast.expr) -> bool:
    """Whether a value may be replaced, as by `ct.where(ct.abs(m) == math.inf, 0.0, m)`."""
    values = values_of(flow.module, node, node)
    return any(isinstance(each, ast.Call) and flow.module.names.tile(each.func) == "where" for each in values)


def _numbers(values: Mapping[str, Value]) -> set[float | None]:
    return {number_of(each) for each in values.values()}
