"""Floating-point numbers where integers belong."""

import ast
from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.rule import Proof
from tilewright.rules.values import Scalar
from tilewright.rules.values import Sequence
from tilewright.rules.values import Tile
from tilewright.rules.values import Value


class FloatingSize(KernelRule):
    """A size or an index that is no integer."""

    code = "TW294"
    severity = Severity.ERROR
    why = "`/` gives a floating-point number, also of integers."
    advice = "Divide with `//`, or round up with `ct.cdiv`."
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def halves_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,), half a tile to each block."""
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (TILE // 2,)))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def halves_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,), half a tile to each block."""
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (TILE / 2,)))
''',
        HEAD
        + '''@ct.kernel
def pairs_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = each tile of X (N,) twice."""
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0) / 2,), (TILE,)))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Quotients in shapes, indices and the bounds of loops."""
        for operation in flow.named("load", "store", "gather", "scatter", "zeros", "full", "ones", "arange", "reshape"):
            for name in ("shape", "index", "indices", "size"):
                value = operation.values.get(name)
                items: tuple[Value, ...] = value.items if isinstance(value, Sequence) else (value,) if value else ()
                for place, item in enumerate(items):
                    if isinstance(item, Scalar | Tile) and item.dtype in ("float", "float32"):
                        node = operation.nodes.get(name, operation.node)
                        written = isinstance(node, ast.Tuple) and len(node.elts) == len(items)
                        at = node.elts[place] if written else node  # type: ignore[attr-defined]
                        yield self.finding(flow.module, at, f"`{ast.unparse(at)}` is a floating-point number: use //")
