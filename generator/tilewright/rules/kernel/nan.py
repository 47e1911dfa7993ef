"""What becomes of NaN."""

import ast
from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.flow import Operation
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.rule import Proof
from tilewright.rules.values import Scalar
from tilewright.rules.values import Tile


class LoweredNan(KernelRule):
    """NaN is handled otherwise than by PyTorch."""

    code = "TW253"
    severity = Severity.INFO
    why = (
        "`ct.maximum`, `ct.minimum`, `ct.max` and `ct.min` leave out NaN, and `ct.where(x > 0, x, 0)` replaces it; "
        "torch.relu, torch.clamp, torch.maximum and torch.amax keep it."
    )
    advice = "If NaN must survive: `ct.where(x != x, x, result)`, or `propagate_nan=True` since cuda-tile 1.6."
    proof = Proof.NUMBERS
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def relu_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,), at least 0, or NaN."""
    tile = ct.load(X, (ct.bid(0),), (TILE,))
    ct.store(Y, (ct.bid(0),), ct.where(tile < 0.0, 0.0, tile))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def relu_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,), at least 0, or NaN."""
    tile = ct.load(X, (ct.bid(0),), (TILE,))
    ct.store(Y, (ct.bid(0),), ct.maximum(tile, 0.0))
''',
        HEAD
        + '''@ct.kernel
def relu_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,), at least 0, or NaN."""
    tile = ct.load(X, (ct.bid(0),), (TILE,))
    ct.store(Y, (ct.bid(0),), ct.where(tile > 0.0, tile, 0.0))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Where elements of an array, as they were loaded, are compared with a number and kept or replaced."""
        for operation in flow.named("maximum", "minimum"):
            x, y = operation.value("x"), operation.value("y")
            loaded = [each for each in (x, y) if isinstance(each, Tile) and each.array is not None]
            bounds = [each for each in (x, y) if isinstance(each, Scalar) and isinstance(each.literal, int | float)]
            if len(loaded) == 1 and len(bounds) == 1 and "propagate_nan" not in operation.values:
                message = f"ct.{operation.name} gives the number where an element is NaN; PyTorch gives NaN"
                yield self.finding(flow.module, operation.node, message)
        for operation in flow.named("where"):
            if _replaces_nan(operation):
                yield self.finding(
                    flow.module, operation.node, "where an element is NaN this gives the other value; PyTorch gives NaN"
                )


def _replaces_nan(operation: Operation) -> bool:
    """`where(x > 0, x, 0)`: a comparison with NaN is false."""
    x, y, cond = operation.value("x"), operation.value("y"), operation.nodes.get("cond")
    if not isinstance(x, Tile) or x.array is None or not isinstance(y, Scalar) or not isinstance(cond, ast.Compare):
        return False
    sides = [ast.dump(cond.left), ast.dump(cond.comparators[0])]
    return ast.dump(operation.nodes["x"]) in sides
