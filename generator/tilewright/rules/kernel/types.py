"""Types that meet where they cannot: tiles where truth is asked for, booleans in sums, variables that change."""

import ast
from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.dtypes import is_float
from tilewright.rules.finding import Edit
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
from tilewright.rules.values import Value


def _is_tile(value: Value | None) -> bool:
    """Whether it is a tile with more than one element."""
    return (
        isinstance(value, Tile)
        and value.shape is not None
        and any(size is None or size.number != 1 for size in value.shape)
    )


class TruthOfTile(KernelRule):
    """and, or, a chained comparison or a branch on a tile."""

    code = "TW270"
    severity = Severity.ERROR
    why = "Python asks for one truth value there, and a tile has many: the compiler refuses it."
    advice = "Use `&` and `|` with parentheses, `(0 <= i) & (i < n)`, and ct.where in place of a branch."
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def window_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,) where it is between 0 and 1, else 0."""
    tile = ct.load(X, (ct.bid(0),), (TILE,))
    ct.store(Y, (ct.bid(0),), ct.where((tile >= 0.0) & (tile <= 1.0), tile, 0.0))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def window_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,) where it is between 0 and 1, else 0."""
    tile = ct.load(X, (ct.bid(0),), (TILE,))
    ct.store(Y, (ct.bid(0),), ct.where(tile >= 0.0 and tile <= 1.0, tile, 0.0))
''',
        HEAD
        + '''@ct.kernel
def window_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,) where it is between 0 and 1, else 0."""
    tile = ct.load(X, (ct.bid(0),), (TILE,))
    ct.store(Y, (ct.bid(0),), ct.where(0.0 <= tile <= 1.0, tile, 0.0))
''',
        HEAD
        + '''@ct.kernel
def relu_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,), at least 0."""
    tile = ct.load(X, (ct.bid(0),), (TILE,))
    if tile < 0.0:
        tile = tile * 0.0
    ct.store(Y, (ct.bid(0),), tile)
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Boolean operators, chains and tests with tiles in them."""
        for node in _device_nodes(flow):
            if isinstance(node, ast.BoolOp) and any(_is_tile(flow.values.get(each)) for each in node.values):
                word = "and" if isinstance(node.op, ast.And) else "or"
                message = f"`{word}` asks for the truth of a tile"
                yield self.finding(flow.module, node, message, fix=self._joined(flow, node))
            elif isinstance(node, ast.Compare) and len(node.ops) > 1:
                operands = [node.left, *node.comparators]
                if any(_is_tile(flow.values.get(each)) for each in operands):
                    message = "a chain of comparisons asks for the truth of a tile"
                    yield self.finding(flow.module, node, message, fix=self._split(flow, node))
            elif isinstance(node, ast.If | ast.IfExp | ast.While) and _is_tile(flow.values.get(node.test)):
                yield self.finding(flow.module, node.test, "a branch asks for the truth of a tile")

    def _joined(self, flow: Flow, node: ast.BoolOp) -> Fix | None:
        if not all(isinstance(each, ast.Compare) for each in node.values):
            return None
        sign = " & " if isinstance(node.op, ast.And) else " | "
        text = sign.join(f"({flow.module.source(each)})" for each in node.values)
        return Fix(f"Write {text}", (_wrapped(flow, node, text),))

    def _split(self, flow: Flow, node: ast.Compare) -> Fix:
        operands = [node.left, *node.comparators]
        signs = [_SIGNS.get(type(each), "<") for each in node.ops]
        texts = [flow.module.source(each) for each in operands]
        parts = zip(texts, signs, texts[1:], strict=False)
        text = " & ".join(f"({left} {sign} {right})" for left, sign, right in parts)
        return Fix(f"Write {text}", (_wrapped(flow, node, text),))


_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


def _wrapped(flow: Flow, node: ast.expr, text: str) -> Edit:
    """With parentheses where the expression is part of another one."""
    inner = isinstance(flow.module.parent(node), ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp)
    return flow.module.replacement(node, f"({text})" if inner else text)


def _device_nodes(flow: Flow) -> Iterator[ast.AST]:
    for function in flow.functions:
        yield from ast.walk(function)


class BooleanArithmetic(KernelRule):
    """Arithmetic between truth values."""

    code = "TW271"
    severity = Severity.ERROR
    why = "`mask * mask` and `mask + mask` do not compile, unlike in PyTorch."
    advice = "Use `&`, `|` and `~`, or convert one of them: `mask.astype(ct.int32)`."
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def both_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = 1 where X (N,) is between 0 and 1, else 0."""
    tile = ct.load(X, (ct.bid(0),), (TILE,))
    ct.store(Y, (ct.bid(0),), ct.where((tile >= 0.0) & (tile <= 1.0), 1.0, 0.0))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def both_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = 1 where X (N,) is between 0 and 1, else 0."""
    tile = ct.load(X, (ct.bid(0),), (TILE,))
    ct.store(Y, (ct.bid(0),), ct.where((tile >= 0.0) * (tile <= 1.0), 1.0, 0.0))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Arithmetic of which both operands are truth values."""
        for operation in flow.named("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
            x, y = operation.value("x"), operation.value("y")
            if isinstance(x, Tile) and isinstance(y, Tile) and x.dtype == y.dtype == "bool":
                message = f"both operands of {operation.name} are truth values"
                yield self.finding(flow.module, operation.node, message)


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
                message = f"{carry.name} is {difference[0]} before the loop, and {difference[1]} after a turn of it"
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
    if isinstance(before, Scalar) and _is_tile(after) and before.constant:
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
