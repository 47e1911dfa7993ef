"""Truth values: of tiles where Python asks for one, and in arithmetic."""

import ast
from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.finding import Edit
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.flow import device_nodes
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.rule import Proof
from tilewright.rules.values import Tile
from tilewright.rules.values import has_many_elements


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
        nodes = (node for function in flow.functions for node in device_nodes(flow.module, function))
        for node in nodes:
            if isinstance(node, ast.BoolOp) and any(has_many_elements(flow.values.get(each)) for each in node.values):
                word = "and" if isinstance(node.op, ast.And) else "or"
                message = f"`{word}` asks for the truth of a tile, which does not compile: combine elements with & | ~"
                yield self.finding(flow.module, node, message, fix=self._joined(flow, node))
            elif isinstance(node, ast.Compare) and len(node.ops) > 1:
                operands = [node.left, *node.comparators]
                if any(has_many_elements(flow.values.get(each)) for each in operands):
                    message = "a chain of comparisons asks for the truth of a tile, which does not compile: use &"
                    yield self.finding(flow.module, node, message, fix=self._split(flow, node))
            elif isinstance(node, ast.If | ast.IfExp | ast.While) and has_many_elements(flow.values.get(node.test)):
                yield self.finding(
                    flow.module,
                    node.test,
                    "a branch asks for the truth of a tile, which does not compile: use ct.where",
                )

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
                message = f"both operands of {operation.name} are truth values: convert one"
                yield self.finding(flow.module, operation.node, message)
