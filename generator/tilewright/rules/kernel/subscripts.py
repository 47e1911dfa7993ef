"""Subscripts of tiles and arrays."""

import ast
from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.rule import Proof
from tilewright.rules.values import Array
from tilewright.rules.values import Tile


class Subscript(KernelRule):
    """A subscript of a tile or an array."""

    code = "TW264"
    severity = Severity.ERROR
    why = (
        "Arrays are read and written by functions, and tiles have no elements to pick: both subscripts do not compile."
    )
    advice = (
        "Use ct.load or ct.gather to read, ct.store or ct.scatter to write, ct.extract for a part of a tile; only "
        "`tile[:, None]` works."
    )
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def copy_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, N) = X (M, N)."""
    rows = ct.bid(0) * TILE + ct.arange(TILE, dtype=ct.int32)[:, None]
    columns = ct.bid(1) * TILE + ct.arange(TILE, dtype=ct.int32)[None, :]
    ct.scatter(Y, (rows, columns), ct.gather(X, (rows, columns)))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def first_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = the first element of each tile of X (N,)."""
    tile = ct.load(X, (ct.bid(0),), (TILE,))
    ct.store(Y, (ct.bid(0),), tile[0])
''',
        HEAD
        + '''@ct.kernel
def copy_kernel(X, Y):
    """Y (N,) = X (N,)."""
    Y[ct.bid(0)] = X[ct.bid(0)]
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Subscripts of tiles by more than None and whole axes, and of arrays."""
        # Of the others some are lists of arrays.
        arrays = [each.value("array") for each in flow.named("load", "store", "gather", "scatter")]
        for operation in flow.named("getitem", "setitem"):
            x, node = operation.value("x"), operation.node
            if not isinstance(node, ast.Subscript):
                continue
            if isinstance(x, Array) and (operation.name == "setitem" or x in arrays):
                function = "ct.store or ct.scatter" if operation.name == "setitem" else "ct.load or ct.gather"
                yield self.finding(flow.module, node, f"{x.name} is an array: use {function}")
            elif isinstance(x, Tile) and not _is_reshape(node):
                text = ast.unparse(node.value)
                yield self.finding(
                    flow.module, node, f"`{text}` is a tile, which has no elements to pick: use ct.extract"
                )


def _is_reshape(node: ast.Subscript) -> bool:
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for each in items:
        whole = isinstance(each, ast.Slice) and each.lower is each.upper is each.step is None
        if not whole and not (isinstance(each, ast.Constant) and each.value in (None, ...)):
            return False
    return True
