"""Results that are dropped."""

import ast
from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.elementwise import BINARY
from tilewright.rules.elementwise import UNARY
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.flow import Operation
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.operations import REDUCTIONS
from tilewright.rules.operations import SCANS
from tilewright.rules.rule import Proof

_SHAPES = ("astype", "bitcast", "broadcast_to", "cat", "expand_dims", "extract", "permute", "reshape", "transpose")


_PURE = (
    BINARY
    | UNARY
    | REDUCTIONS
    | SCANS
    | frozenset({"mma", "mma_scaled", "matmul", "where", "load", "gather", *_SHAPES})
)


class DroppedResult(KernelRule):
    """The result of an operation is not used."""

    code = "TW240"
    severity = Severity.ERROR
    why = "Nothing in cuTile changes a tile in place: `ct.mma(a, b, acc)` gives the new accumulator, and leaves `acc`."
    advice = "Assign the result: `acc = ct.mma(a, b, acc)`."
    proof = Proof.NUMBERS
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def product_kernel(A, B, C, TILE: ct.Constant[int]):
    """C = A @ B, all (TILE, TILE)."""
    a, b = ct.load(A, (0, 0), (TILE, TILE)), ct.load(B, (0, 0), (TILE, TILE))
    acc = ct.zeros((TILE, TILE), ct.float32)
    acc = ct.mma(a, b, acc)
    ct.store(C, (0, 0), acc.astype(C.dtype))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def product_kernel(A, B, C, TILE: ct.Constant[int]):
    """C = A @ B, all (TILE, TILE)."""
    a, b = ct.load(A, (0, 0), (TILE, TILE)), ct.load(B, (0, 0), (TILE, TILE))
    acc = ct.zeros((TILE, TILE), ct.float32)
    ct.mma(a, b, acc)
    ct.store(C, (0, 0), acc.astype(C.dtype))
''',
        HEAD
        + '''@ct.kernel
def half_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,) / 2."""
    tile = ct.load(X, (ct.bid(0),), (TILE,))
    ct.mul(tile, 0.5)
    ct.store(Y, (ct.bid(0),), tile)
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Statements that are only such a call."""
        for operation in flow.named(*_PURE):
            if isinstance(flow.module.parent(operation.node), ast.Expr):
                message = f"the result of ct.{operation.name} is not used: it changes nothing in place"
                yield self.finding(flow.module, operation.node, message, fix=self._fix(flow, operation))

    def _fix(self, flow: Flow, operation: Operation) -> Fix | None:
        acc = operation.nodes.get("acc")
        if operation.name != "mma" or not isinstance(acc, ast.Name):
            return None
        span = flow.module.span(operation.node)
        return Fix(f"Assign to {acc.id}", (flow.module.insertion(span.line, span.column, f"{acc.id} = "),))
