"""The dtype of what is stored."""

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
from tilewright.rules.values import Array
from tilewright.rules.values import Tile
from tilewright.rules.values import Value


def _written(operation: Operation) -> Value:
    return operation.value("tile" if operation.name == "store" else "value")


class DtypeOfAnother(KernelRule):
    """A result is converted to the dtype of another array than the one that it is stored to."""

    code = "TW241"
    severity = Severity.WARNING
    why = (
        "Where the two arrays differ in dtype the result is rounded to the wrong one, and a store to a narrower array "
        "does not compile."
    )
    advice = "Convert to the dtype of the target: `ct.store(Y, index, tile.astype(Y.dtype))`."
    proof = Proof.NUMBERS
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def third_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = a third of X (N,) of float16."""
    tile = ct.load(X, (ct.bid(0),), (TILE,)).astype(ct.float32) / 3.0
    ct.store(Y, (ct.bid(0),), tile.astype(Y.dtype))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def third_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = a third of X (N,) of float16."""
    tile = ct.load(X, (ct.bid(0),), (TILE,)).astype(ct.float32) / 3.0
    ct.store(Y, (ct.bid(0),), tile.astype(X.dtype))


def third(x, out):
    ct.launch(torch.cuda.current_stream(), (ct.cdiv(x.numel(), 1024),), third_kernel, (x, out, 1024))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Stores whose value was converted last to the dtype of another array."""
        for operation in flow.named("store", "scatter"):
            array, tile = operation.value("array"), _written(operation)
            if not isinstance(array, Array) or not isinstance(tile, Tile) or tile.cast in (None, array.whole):
                continue
            if not _may_differ(flow, array.whole, tile.cast or ""):
                continue
            message = f"converted to the dtype of {tile.cast}, but stored to {array.whole}: convert to that"
            node = operation.nodes["tile" if operation.name == "store" else "value"]
            yield self.finding(flow.module, node, message, fix=self._fix(flow, node, tile, array))

    def _fix(self, flow: Flow, node: ast.expr, tile: Tile, array: Array) -> Fix | None:
        """Only where the conversion is written in the store."""
        for each in ast.walk(node):
            written = isinstance(each, ast.Attribute) and each.attr == "dtype" and isinstance(each.value, ast.Name)
            if written and flow.module.source(each) == f"{tile.cast}.dtype":
                return Fix(f"Convert to {array.name}.dtype", (flow.module.replacement(each, f"{array.name}.dtype"),))
        return None


class NotConverted(KernelRule):
    """A float32 result is stored to an array that may be narrower."""

    code = "TW242"
    severity = Severity.WARNING
    why = (
        "A store widens by itself but does not narrow: a float32 tile stored to a float16 array does not compile. A "
        "kernel that converts what it loads to float32 has to convert what it stores back."
    )
    advice = "Convert to the dtype of the target: `ct.store(Y, index, tile.astype(Y.dtype))`."
    proof = Proof.STYLE
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def double_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = 2 X (N,)."""
    tile = ct.load(X, (ct.bid(0),), (TILE,)).astype(ct.float32) * 2.0
    ct.store(Y, (ct.bid(0),), tile.astype(Y.dtype))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def double_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = 2 X (N,)."""
    tile = ct.load(X, (ct.bid(0),), (TILE,)).astype(ct.float32) * 2.0
    ct.store(Y, (ct.bid(0),), tile)
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Stores of float32 to the only array that is written, where the host does not say that it is float32."""
        stores = [each for each in flow.named("store", "scatter") if isinstance(each.value("array"), Array)]
        if len({each.value("array") for each in stores}) != 1:
            return
        # What is read is converted first: so it may be narrower.
        converted = [
            x.array
            for each in flow.named("astype")
            if isinstance(x := each.value("x"), Tile) and getattr(each.result, "dtype", None) == "float32"
        ]
        for operation in stores:
            array, tile = operation.value("array"), _written(operation)
            if not isinstance(array, Array) or not isinstance(tile, Tile) or tile.dtype != "float32":
                continue
            dtypes = flow.launches.dtypes(array.whole)
            other = any(each is not None and each != array for each in converted)
            if other and (dtypes is None or not any("float32" in each for each in dtypes)):
                node = operation.nodes["tile" if operation.name == "store" else "value"]
                message = (
                    f"float32 is stored to {array.whole} as it is, which compiles only where that is float32: "
                    "convert it"
                )
                yield self.finding(flow.module, node, message, fix=self._fix(flow, node, array))

    def _fix(self, flow: Flow, node: ast.expr, array: Array) -> Fix | None:
        if not isinstance(node, ast.Name | ast.Call) or array.whole != array.name:
            return None
        span = flow.module.span(node)
        text = f".astype({array.name}.dtype)"
        return Fix(f"Convert to {array.name}.dtype", (flow.module.insertion(span.end_line, span.end_column, text),))


def _may_differ(flow: Flow, target: str, source: str) -> bool:
    """Whether the host gives the target a dtype of its own, or takes it from its caller."""
    written, read = flow.launches.dtypes(target), flow.launches.dtypes(source)
    if written is None or read is None or written & read:
        return False
    names = {each.removesuffix(".dtype") for each in written if each.endswith(".dtype")}
    functions = [launch.function for launch in flow.launches.launches]
    return all(any(_is_argument(function, name) for function in functions) for name in names)


def _is_argument(function: ast.FunctionDef | ast.AsyncFunctionDef | None, name: str) -> bool:
    """Whether it is where the caller of a function asks for the result."""
    if function is None or function.name.startswith("_") or "out" not in name.lower():
        return False
    arguments = function.args
    return any(each.arg == name for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))
