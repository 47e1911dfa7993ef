"""Names that `cuda.tile` and tiles do not have, with what to write instead."""

import ast
import difflib
from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.kernel.replacements import FUNCTIONS_INSTEAD
from tilewright.rules.kernel.replacements import METHODS_INSTEAD
from tilewright.rules.kernel.replacements import RENAMED
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.kernel_rule import tile_alias
from tilewright.rules.rule import Proof
from tilewright.rules.rule import Rule
from tilewright.rules.source import Module
from tilewright.rules.tile_api import DTYPES
from tilewright.rules.tile_api import FUNCTIONS
from tilewright.rules.tile_api import OTHER_NAMES
from tilewright.rules.tile_api import TILE_METHODS
from tilewright.rules.tile_api import TILE_PROPERTIES
from tilewright.rules.values import Tile

_EVERY = frozenset(FUNCTIONS) | DTYPES | OTHER_NAMES


class NoSuchFunction(Rule):
    """A function that cuda.tile does not have."""

    code = "TW260"
    severity = Severity.ERROR
    why = "`cuda.tile` has far fewer functions than PyTorch; a name that it lacks is found when the kernel is compiled."
    advice = "Write it out of the functions that exist; the message says how, where there is a usual way."
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def sigmoid_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = sigmoid(X (N,))."""
    tile = ct.load(X, (ct.bid(0),), (TILE,)).astype(ct.float32)
    ct.store(Y, (ct.bid(0),), (1.0 / (1.0 + ct.exp(-tile))).astype(Y.dtype))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def sigmoid_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = sigmoid(X (N,))."""
    tile = ct.load(X, (ct.bid(0),), (TILE,)).astype(ct.float32)
    ct.store(Y, (ct.bid(0),), ct.sigmoid(tile).astype(Y.dtype))
''',
        HEAD
        + '''@ct.kernel
def product_kernel(A, B, C, TILE: ct.Constant[int]):
    """C = A @ B, all (TILE, TILE)."""
    a, b = ct.load(A, (ct.program_id(0), 0), (TILE, TILE)), ct.load(B, (0, 0), (TILE, TILE))
    ct.store(C, (ct.bid(0), 0), ct.mma(a, b, ct.zeros((TILE, TILE), ct.float32)).astype(C.dtype))
''',
    )

    def check(self, module: Module) -> Iterator[Finding]:
        """Attributes of the module, and names imported from it."""
        if "cuda.tile" not in module.text:
            return
        for node in module.nodes(ast.Attribute):
            name = module.names.tile(node)
            public = name is not None and "." not in name and not name.startswith("_")
            if name is not None and public and name not in _EVERY and not _is_asked_for(module, node):
                yield self._missing(module, node, name)
        for statement in module.nodes(ast.ImportFrom):
            if statement.module == "cuda.tile" and not statement.level:
                for each in statement.names:
                    if each.name not in _EVERY and each.name[0] not in "*_":
                        yield self._missing(module, each, each.name)

    def _missing(self, module: Module, node: ast.AST, name: str) -> Finding:
        instead = FUNCTIONS_INSTEAD.get(name)
        if instead is None:
            close = difflib.get_close_matches(name, sorted(_EVERY), 1)
            instead = f"did you mean ct.{close[0]}?" if close else "write it out of those that exist"
        fix = None
        if name in RENAMED and isinstance(node, ast.Attribute):
            text = f"{module.source(node.value)}.{RENAMED[name]}"
            fix = Fix(f"Use {text}", (module.replacement(node, text),))
        return self.finding(module, node, f"cuda.tile has no {name}: {instead}", fix=fix)


def _is_asked_for(module: Module, node: ast.Attribute) -> bool:
    """Whether the code asks first: `hasattr(ct, "name")`."""
    for call in module.nodes(ast.Call):
        match call:
            case ast.Call(func=ast.Name(id="hasattr" | "getattr"), args=[_, ast.Constant(value=name), *_]):
                if name == node.attr:
                    return True
    return False


class NoSuchMethod(KernelRule):
    """A method or attribute that tiles do not have."""

    code = "TW261"
    severity = Severity.ERROR
    why = "Of what tensors have, tiles have astype, reshape, permute, transpose, extract, item, dtype, shape and ndim."
    advice = "Call the function instead: `ct.sum(x, 1)` for `x.sum(1)`, `x.astype(ct.float32)` for `x.float()`."
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def row_sum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = sums of the rows of X (M, N), where N <= TILE."""
    tile = ct.load(X, (ct.bid(0), 0), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    ct.store(Y, (ct.bid(0), 0), ct.sum(tile, 1, keepdims=True).astype(Y.dtype))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def row_sum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = sums of the rows of X (M, N), where N <= TILE."""
    tile = ct.load(X, (ct.bid(0), 0), (1, TILE), padding_mode=ct.PaddingMode.ZERO).float()
    ct.store(Y, (ct.bid(0), 0), tile.sum(1, keepdims=True).to(Y.dtype))
''',
        HEAD
        + '''@ct.kernel
def transpose_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N, M) = X (M, N) transposed."""
    ct.store(Y, (ct.bid(1), ct.bid(0)), ct.load(X, (ct.bid(0), ct.bid(1)), (TILE, TILE)).T)
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Attributes of tiles that are none of those."""
        for operation in flow.named("attribute"):
            node = operation.node
            if not isinstance(operation.value("x"), Tile) or not isinstance(node, ast.Attribute):
                continue
            if node.attr not in TILE_METHODS | TILE_PROPERTIES:
                instead = METHODS_INSTEAD.get(node.attr) or (f"ct.{node.attr}(x)" if node.attr in FUNCTIONS else None)
                message = f"tiles have no {node.attr}" + (f": write {instead}" if instead else "")
                yield self.finding(flow.module, node, message, fix=self._fix(flow, node))

    def _fix(self, flow: Flow, node: ast.Attribute) -> Fix | None:
        module, prefix = flow.module, tile_alias(flow.module)
        call = module.parent(node)
        owner = module.source(node.value)
        called = isinstance(call, ast.Call) and call.func is node
        if prefix is None:
            return None
        if node.attr == "T" and not called:
            text = f"{prefix}transpose({owner})"
            return Fix(f"Use {text}", (module.replacement(node, text),))
        if not called or not isinstance(call, ast.Call):
            return None
        if node.attr == "to" and len(call.args) == 1 and not call.keywords:
            return Fix("Use astype", (module.replacement(node, f"{owner}.astype"),))
        dtypes = {"float": "float32", "half": "float16", "bfloat16": "bfloat16", "double": "float64", "int": "int32"}
        if node.attr in dtypes and not call.args:
            text = f"{owner}.astype({prefix}{dtypes[node.attr]})"
            return Fix(f"Use {text}", (module.replacement(call, text),))
        if node.attr in FUNCTIONS and "x" in FUNCTIONS[node.attr].positional:
            given = [owner, *(module.source(each) for each in (*call.args, *call.keywords))]
            text = f"{prefix}{node.attr}({', '.join(given)})"
            return Fix(f"Use {prefix}{node.attr}", (module.replacement(call, text),))
        return None
