"""Functions of Python, math, torch and numpy in kernels."""

import ast
from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.flow import FunctionNode
from tilewright.rules.flow import device_nodes
from tilewright.rules.kernel.replacements import PYTHON_INSTEAD
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import FunctionRule
from tilewright.rules.kernel_rule import tile_alias
from tilewright.rules.rule import Proof
from tilewright.rules.tile_api import DTYPES
from tilewright.rules.tile_api import FUNCTIONS
from tilewright.rules.values import Scalar

_BUILTINS = ("round", "sum", "any", "all", "sorted")


_CONSTANTS = ("inf", "pi", "e", "nan", "tau")


class PythonInKernel(FunctionRule):
    """A function of Python, math, torch or numpy in a kernel."""

    code = "TW262"
    severity = Severity.ERROR
    why = (
        'Kernels call functions of `cuda.tile` and helpers; of others the compiler says "not supported in device code".'
    )
    advice = "Use the function of `cuda.tile`, or compute constants with `ct.static_eval(...)` or on the host."
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def sqrt_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = sqrt(X (N,))."""
    tile = ct.load(X, (ct.bid(0),), (TILE,)).astype(ct.float32)
    ct.store(Y, (ct.bid(0),), ct.sqrt(tile).astype(Y.dtype))
''',
    )
    INVALID: ClassVar = (
        "import math\n\n"
        + HEAD
        + '''@ct.kernel
def sqrt_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = sqrt(X (N,))."""
    tile = ct.load(X, (ct.bid(0),), (TILE,)).astype(ct.float32)
    ct.store(Y, (ct.bid(0),), math.sqrt(tile).astype(Y.dtype))
''',
        HEAD
        + '''@ct.kernel
def relu_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,), at least 0."""
    ct.store(Y, (ct.bid(0),), torch.relu(ct.load(X, (ct.bid(0),), (TILE,))))
''',
    )

    def check_function(self, flow: Flow, function: FunctionNode) -> Iterator[Finding]:
        """Calls of what runs on the host only, outside of `ct.static_eval`."""
        for node in device_nodes(flow.module, function):
            if isinstance(node, ast.Call):
                yield from self._called(flow, node)

    def _called(self, flow: Flow, node: ast.Call) -> Iterator[Finding]:
        name = flow.module.names.resolve(node.func)
        if name is None and isinstance(node.func, ast.Name) and node.func.id not in flow.module.functions:
            name = node.func.id
        if name is None or (name.partition(".")[0] not in ("math", "torch", "numpy") and name not in _BUILTINS):
            return
        last = name.rpartition(".")[2]
        if last in DTYPES or (name.startswith("math.") and last in _CONSTANTS):
            return
        instead = PYTHON_INSTEAD.get(name) or (f"ct.{last}" if last in FUNCTIONS else None)
        message = f"{name} cannot be called in a kernel" + (f": write {instead}" if instead else "")
        fix = None
        alias = tile_alias(flow.module)
        if name.startswith("math.") and last in FUNCTIONS and alias and not _only_constants(flow, node):
            fix = Fix(f"Use {alias}{last}", (flow.module.replacement(node.func, f"{alias}{last}"),))
        yield self.finding(flow.module, node, message, fix=fix)


def _only_constants(flow: Flow, node: ast.Call) -> bool:
    values = [flow.values.get(each) for each in node.args]
    return all(isinstance(each, Scalar) and each.constant for each in values)
