"""Arguments that a function of `cuda.tile` does not take."""

import ast
from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.flow import Operation
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.rule import Proof
from tilewright.rules.tile_api import FUNCTIONS
from tilewright.rules.values import Scalar
from tilewright.rules.values import Sequence

_KEYWORDS = {"dim": "axis", "keepdim": "keepdims", "fill": "fill_value", "mode": "padding_mode"}


_OTHER = {("store", "value"): "tile", ("scatter", "tile"): "value", ("full", "value"): "fill_value"}


class NoSuchArgument(KernelRule):
    """An argument that the function does not take, or one that it needs."""

    code = "TW263"
    severity = Severity.ERROR
    why = (
        "The names differ from those of PyTorch and Triton, and between functions: `padding_mode=` of ct.load is "
        "`padding_value=` of ct.gather, `dim=` is `axis=`, and ct.zeros has no default dtype."
    )
    advice = "Use the parameters that the message lists."
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def row_sum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = sums of the rows of X (M, N), where N <= TILE."""
    place = (ct.bid(0), ct.arange(TILE, dtype=ct.int32))
    tile = ct.gather(X, place, padding_value=0).astype(ct.float32)
    ct.store(Y, (ct.bid(0), 0), ct.sum(tile, axis=0).astype(Y.dtype))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def row_sum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = sums of the rows of X (M, N), where N <= TILE."""
    tile = ct.load(X, (ct.bid(0), 0), (1, TILE), padding_value=0).astype(ct.float32)
    ct.store(Y, (ct.bid(0), 0), ct.sum(tile, 1).astype(Y.dtype))
''',
        HEAD
        + '''@ct.kernel
def row_sum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = sums of the rows of X (M, N), where N <= TILE."""
    tile = ct.load(X, (ct.bid(0), 0), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    ct.store(Y, (ct.bid(0), 0), ct.sum(tile, dim=1, keepdim=True).astype(Y.dtype))
''',
        HEAD
        + '''@ct.kernel
def zero_kernel(Y, TILE: ct.Constant[int]):
    """Y (N,) = 0."""
    ct.store(Y, (ct.bid(0),), ct.zeros((TILE,)))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Calls that Python could not bind."""
        for operation in flow.operations:
            call, signature = operation.node, FUNCTIONS.get(operation.name)
            if signature is None or not isinstance(call, ast.Call) or flow.module.names.tile(call.func) is None:
                continue
            named = [each for each in call.keywords if each.arg is not None]
            unknown = [each for each in named if each.arg not in signature.names]
            whole = len(named) == len(call.keywords) and not any(isinstance(each, ast.Starred) for each in call.args)
            for each in unknown:
                message = f"ct.{operation.name} has no parameter {each.arg}: it takes {', '.join(signature.names)}"
                yield self.finding(flow.module, each.value, message, fix=self._fix(flow, operation, each))
            if not unknown and operation.name != "arange" and whole and not signature.variadic:
                if len(call.args) > len(signature.positional):
                    message = f"ct.{operation.name} takes at most {len(signature.positional)} arguments by position"
                    yield self.finding(flow.module, call, message)
                missing = sorted(signature.required - set(operation.nodes))
                if missing:
                    yield self.finding(flow.module, call, f"ct.{operation.name} needs {' and '.join(missing)}: pass it")

    def _fix(self, flow: Flow, operation: Operation, keyword: ast.keyword) -> Fix | None:
        name = _OTHER.get((operation.name, keyword.arg or "")) or _KEYWORDS.get(keyword.arg or "")
        if name is None or name not in FUNCTIONS[operation.name].names or name in operation.nodes:
            return None
        text = f"{name}={flow.module.source(keyword.value)}"
        return Fix(f"Write {name}=", (flow.module.replacement(keyword, text),))


class NoSuchAxis(KernelRule):
    """A grid axis beyond the third, or a third tile to concatenate."""

    code = "TW265"
    severity = Severity.ERROR
    why = "A grid has three axes, and `ct.cat` takes two tiles: the compiler refuses more."
    advice = "Fold further axes into one, and take them apart with `//` and `%`; nest `ct.cat`."
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def join_kernel(X, Y, Z, TILE: ct.Constant[int]):
    """Z (2 TILE,) = X (TILE,), then Y (TILE,)."""
    ct.store(Z, (0,), ct.cat((ct.load(X, (0,), (TILE,)), ct.load(Y, (0,), (TILE,))), 0))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def join_kernel(X, Y, Z, TILE: ct.Constant[int]):
    """Z (3 TILE,) = X (TILE,), Y (TILE,) and X again."""
    x, y = ct.load(X, (0,), (TILE,)), ct.load(Y, (0,), (TILE,))
    ct.store(Z, (0,), ct.cat((x, y, x), 0))
''',
        HEAD
        + '''@ct.kernel
def copy_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,)."""
    ct.store(Y, (ct.bid(3),), ct.load(X, (ct.bid(3),), (TILE,)))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Literal axes out of range, and tuples of three and more."""
        for operation in flow.named("bid", "num_blocks"):
            axis = operation.value("axis")
            number = axis.literal if isinstance(axis, Scalar) else None
            if isinstance(number, int) and not 0 <= number <= 2:
                yield self.finding(
                    flow.module, operation.node, f"a grid has the axes 0, 1 and 2, not {number}: use one of them"
                )
        for operation in flow.named("cat"):
            tiles = operation.value("tiles")
            if isinstance(tiles, Sequence) and len(tiles.items) > 2:
                yield self.finding(
                    flow.module, operation.node, f"ct.cat takes two tiles, not {len(tiles.items)}: join two at a time"
                )
