"""Variables that a loop carries."""

import ast
from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.dtypes import is_float
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Carry
from tilewright.rules.flow import Flow
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.rule import Proof
from tilewright.rules.values import Scalar
from tilewright.rules.values import Tile
from tilewright.rules.values import has_many_elements


class ChangingType(KernelRule):
    """A variable changes its type in a loop."""

    code = "TW272"
    severity = Severity.ERROR
    why = (
        "A variable that a loop carries keeps the type that it starts with. `acc = 0` is an integer, so that "
        '`acc = acc + x` of floating-point numbers does not compile: "Type of acc depends on path taken".'
    )
    advice = "Start with the type that the loop gives: `acc = 0.0`, or `ct.zeros(shape, ct.float32)`."
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def row_sum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = sums of the rows of X (M, N)."""
    acc = 0.0
    for j in range(ct.cdiv(X.shape[1], TILE)):
        tile = ct.load(X, (ct.bid(0), j), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
        acc = acc + ct.sum(tile)
    ct.store(Y, (ct.bid(0), 0), acc)
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def row_sum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = sums of the rows of X (M, N)."""
    acc = 0
    for j in range(ct.cdiv(X.shape[1], TILE)):
        tile = ct.load(X, (ct.bid(0), j), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
        acc = acc + ct.sum(tile)
    ct.store(Y, (ct.bid(0), 0), acc)
''',
        HEAD
        + '''@ct.kernel
def row_sum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = sums of the rows of X (M, N)."""
    acc = ct.zeros((1, TILE), ct.float16)
    for j in range(ct.cdiv(X.shape[1], TILE)):
        tile = ct.load(X, (ct.bid(0), j), (1, TILE), padding_mode=ct.PaddingMode.ZERO)
        acc = acc + tile.astype(ct.float32)
    ct.store(Y, (ct.bid(0), 0), ct.sum(acc, 1, keepdims=True))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Variables whose dtype, or whose shape, differs before and after the body of a loop."""
        for carry in flow.carries:
            before, after = carry.before, carry.after
            if not isinstance(before, Scalar | Tile) or not isinstance(after, Scalar | Tile):
                continue
            if _is_static(flow, carry):
                continue
            difference = _difference(before, after)
            if difference is not None:
                said = f"is {difference[0]} before the loop, and {difference[1]} after a turn of it"
                message = f"{carry.name} {said}: they must agree"
                start = _start(carry)
                yield self.finding(flow.module, start or carry.loop, message, fix=self._fix(flow, start, after))

    def _fix(self, flow: Flow, start: ast.expr | None, after: Scalar | Tile) -> Fix | None:
        zero = isinstance(start, ast.Constant) and type(start.value) is int
        if start is None or not zero or not is_float(after.dtype) or (isinstance(after, Tile) and after.shape != ()):
            return None
        text = f"{start.value}.0"  # type: ignore[attr-defined]
        return Fix(f"Start with {text}", (flow.module.replacement(start, text),))


def _difference(before: Scalar | Tile, after: Scalar | Tile) -> tuple[str, str] | None:
    first = "int32" if before.dtype == "int" else "float32" if before.dtype == "float" else before.dtype
    second = "int32" if after.dtype == "int" else "float32" if after.dtype == "float" else after.dtype
    known = first is not None and second is not None and not any("dtype" in each for each in (first, second))
    if known and first != second and (is_float(first) or is_float(second)):
        return str(first), str(second)
    if isinstance(before, Tile) and isinstance(after, Tile) and before.rank is not None and after.rank is not None:
        return (f"of rank {before.rank}", f"of rank {after.rank}") if before.rank != after.rank else None
    if isinstance(before, Scalar) and has_many_elements(after) and before.constant:
        return "a number", "a tile"
    return None


def _is_static(flow: Flow, carry: Carry) -> bool:
    """Whether the loop is unrolled: then each turn has types of its own."""
    loop = carry.loop
    called = isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call)
    return called and flow.module.names.tile(loop.iter.func) == "static_iter"  # type: ignore[union-attr]


def _start(carry: Carry) -> ast.expr | None:
    """The value that the last assignment before the loop gives."""
    found = None
    for node in ast.walk(carry.function):
        if isinstance(node, ast.Assign) and node.lineno < carry.loop.lineno:
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id == carry.name:
                    found = node.value if found is None or node.value.lineno > found.lineno else found
    return found
