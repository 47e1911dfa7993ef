"""Stores that write beside their array."""

import ast
from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.rule import Proof
from tilewright.rules.values import Array
from tilewright.rules.values import Tile
from tilewright.rules.values import has_many_elements


class BesideVector(KernelRule):
    """Results of a reduction are stored to a vector by TMA, which also writes behind its end."""

    code = "TW243"
    severity = Severity.WARNING
    why = (
        "For results of reductions and of products of matrices the compiler takes TMA from compute capability 9.0 on, "
        "which stores 16 bytes at a time: where the length of the vector is no multiple of that, up to 15 bytes behind "
        "its end are overwritten, which are other numbers if the vector is a part of a larger tensor."
    )
    advice = "Store without TMA: `ct.store(Y, (i,), sums, allow_tma=False)`."
    proof = Proof.STYLE
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def sum_rows_kernel(X, Y, TILE_M: ct.Constant[int], TILE_N: ct.Constant[int]):
    """Y (M,) = the sums of the rows of X (M, N)."""
    i = ct.bid(0)
    tile = ct.load(X, (i, 0), (TILE_M, TILE_N), padding_mode=ct.PaddingMode.ZERO)
    ct.store(Y, (i,), ct.sum(tile, axis=1), allow_tma=False)
''',
        HEAD
        + '''@ct.kernel
def third_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = a third of X (N,)."""
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (TILE,)) / 3)
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def sum_rows_kernel(X, Y, TILE_M: ct.Constant[int], TILE_N: ct.Constant[int]):
    """Y (M,) = the sums of the rows of X (M, N)."""
    i = ct.bid(0)
    tile = ct.load(X, (i, 0), (TILE_M, TILE_N), padding_mode=ct.PaddingMode.ZERO)
    ct.store(Y, (i,), ct.sum(tile, axis=1))
''',
        HEAD
        + '''@ct.kernel
def mean_rows_kernel(X, Y, N: ct.Constant[int], TILE_M: ct.Constant[int], TILE_N: ct.Constant[int]):
    """Y (M,) = the means of the rows of X (M, N)."""
    i = ct.bid(0)
    total = ct.zeros((TILE_M,), ct.float32)
    for j in range(ct.num_tiles(X, 1, (TILE_M, TILE_N))):
        tile = ct.load(X, (i, j), (TILE_M, TILE_N), padding_mode=ct.PaddingMode.ZERO)
        total = total + ct.sum(tile.astype(ct.float32), axis=1)
    ct.store(Y, (i,), (total / N).astype(Y.dtype), latency=4)
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Stores of several such numbers by one index, where it is not said whether TMA may be used."""
        for operation in flow.named("store"):
            array, tile = operation.value("array"), operation.value("tile")
            if not isinstance(array, Array) or not isinstance(tile, Tile) or not tile.folded:
                continue
            if (
                tile.rank == 1
                and has_many_elements(tile)
                and "allow_tma" not in operation.nodes
                and isinstance(operation.node, ast.Call)
            ):
                message = f"TMA may write behind the end of {array.whole}, 16 bytes at a time: pass allow_tma=False"
                edit = flow.module.added_argument(operation.node, "allow_tma=False")
                yield self.finding(flow.module, operation.node, message, fix=Fix("Store without TMA", (edit,)))
