"""Padding of arrays of integers."""

import ast
import re
from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.rule import Proof
from tilewright.rules.values import Array
from tilewright.rules.values import Named
from tilewright.rules.values import Tile

_INTEGER_ONLY = ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_lshift", "bitwise_rshift", "bitwise_not")


_INTEGER_DTYPE = re.compile(r"\btorch\.(u?int\d+|long|int|short)\b")


class IntegerPadding(KernelRule):
    """Integers are padded with what only floating-point numbers have."""

    code = "TW214"
    severity = Severity.ERROR
    why = "The compiler refuses it, and does not say where: integers have neither infinities nor NaN."
    advice = "Pad integers with ZERO, and replace what lies outside with `ct.where`."
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def row_max_kernel(X, Y, N: int, TILE: ct.Constant[int]):
    """Y (M, 1) = the largest element of each row of X (M, N) of int32, where N <= TILE."""
    tile = ct.load(X, (ct.bid(0), 0), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.int32)
    tile = ct.where(ct.arange(TILE, dtype=ct.int32)[None, :] < N, tile, -(2**31))
    ct.store(Y, (ct.bid(0), 0), ct.max(tile, 1, keepdims=True))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def row_max_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = the largest element of each row of X (M, N) of int32, where N <= TILE."""
    tile = ct.load(X, (ct.bid(0), 0), (1, TILE), padding_mode=ct.PaddingMode.NEG_INF)
    ct.store(Y, (ct.bid(0), 0), ct.max(tile & 0xFF, 1, keepdims=True))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Where a tile that was padded so is used in a way that only integers allow, or the host makes it so."""
        for load in flow.named("load"):
            mode, array = load.value("padding_mode"), load.value("array")
            name = mode.name.rpartition(".")[2] if isinstance(mode, Named) else ""
            if name not in ("NEG_INF", "POS_INF", "NAN") or not isinstance(array, Array):
                continue
            if _used_as_integer(flow, array) or _made_of_integers(flow, array):
                message = f"{array.name} holds integers, which cannot be padded with {name}: use ZERO and a mask"
                yield self.finding(flow.module, load.nodes.get("padding_mode", load.node), message)


def _used_as_integer(flow: Flow, array: Array) -> bool:
    for operation in flow.named(*_INTEGER_ONLY):
        if any(isinstance(each, Tile) and each.array == array for each in operation.values.values()):
            return True
    return False


def _made_of_integers(flow: Flow, array: Array) -> bool:
    given = flow.launches.given(array.name)
    return bool(given) and all(_INTEGER_DTYPE.search(ast.unparse(each)) for each in given)
