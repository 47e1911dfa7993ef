"""Rows of consecutive integers."""

import ast
from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.kernel_rule import tile_alias
from tilewright.rules.rule import Proof


class ArangeArguments(KernelRule):
    """ct.arange takes one size, and a dtype by name."""

    code = "TW223"
    severity = Severity.ERROR
    why = "`ct.arange(0, N)` and `ct.arange(N)` do not compile: there is one positional argument, and no default dtype."
    advice = "Write `ct.arange(N, dtype=ct.int32)`; since cuda-tile 1.5 also with `start=` and `step=`."
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def count_kernel(Y, TILE: ct.Constant[int]):
    """Y (N,) = 0, 1, 2, ..."""
    place = ct.bid(0) * TILE + ct.arange(TILE, dtype=ct.int32)
    ct.scatter(Y, place, place.astype(Y.dtype))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def count_kernel(Y, TILE: ct.Constant[int]):
    """Y (N,) = 0, 1, 2, ..."""
    place = ct.bid(0) * TILE + ct.arange(0, TILE)
    ct.scatter(Y, place, place.astype(Y.dtype))
''',
        HEAD
        + '''@ct.kernel
def count_kernel(Y, TILE: ct.Constant[int]):
    """Y (N,) = 0, 1, 2, ..."""
    place = ct.bid(0) * TILE + ct.arange(TILE)
    ct.scatter(Y, place, place.astype(Y.dtype))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Calls with other arguments."""
        for operation in flow.named("arange"):
            call = operation.node
            if not isinstance(call, ast.Call) or any(isinstance(each, ast.Starred) for each in call.args):
                continue
            typed = any(each.arg in ("dtype", None) for each in call.keywords)
            if len(call.args) == 1 and typed:
                continue
            if len(call.args) > 1:
                message = f"ct.arange takes one size by position, not {len(call.args)} arguments: name start and dtype"
            else:
                message = "ct.arange has no default dtype: add dtype=ct.int32"
            yield self.finding(flow.module, call, message, fix=self._fix(flow, call, typed=typed))

    def _fix(self, flow: Flow, call: ast.Call, *, typed: bool) -> Fix | None:
        prefix = tile_alias(flow.module)
        zero = isinstance(call.args[0], ast.Constant) and call.args[0].value == 0 if call.args else False
        if prefix is None or not (len(call.args) == 1 or (len(call.args) == 2 and zero)):
            return None
        if typed or len(call.keywords) > typed:
            return None
        size = flow.module.source(call.args[-1])
        text = f"{flow.module.source(call.func)}({size}, dtype={prefix}int32)"
        return Fix(f"Write {text}", (flow.module.replacement(call, text),))
