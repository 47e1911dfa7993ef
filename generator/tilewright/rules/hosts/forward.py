"""Rule about arithmetic that PyTorch does instead of a kernel."""

import ast
import re
from collections.abc import Iterator

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.hosts.calls import calls
from tilewright.rules.hosts.examples import KERNEL
from tilewright.rules.hosts.examples import LAUNCH
from tilewright.rules.rule import Rule
from tilewright.rules.source import Function
from tilewright.rules.source import Module

# Below torch, and as methods of a tensor: products, and functions that are operators of their own
_COMPUTE = re.compile(
    r"(matmul|mm|bmm|addmm|addbmm|baddbmm|mv|addmv|dot|einsum|tensordot|conv[123]d|(log_)?softmax|(layer|group|batch|rms)_norm"
    r"|relu|gelu|silu|sigmoid|tanh|scaled_dot_product_attention)"
)
_NO_COMPUTE = ("pad", "one_hot")  # of torch.nn.functional
_LAYERS = re.compile(
    r"(Bil|L)inear|Conv\w*|\w*Norm(\dd)?|\w*Pool\w*|GELU|ReLU|SiLU|Softmax|Embedding\w*|\w*Attention|LSTM|GRU"
)
_OTHER = re.compile(r"(?i)reference|_ref\b|^ref_|naive|torch|eager|fallback|main|test|bench|baseline|backward|bwd")

_DOUBLE = f"""
import torch.nn.functional as F
from torch import nn
{KERNEL}def double(x):
    y = torch.empty_like(x)
    if x.numel():
        grid = (ct.cdiv(x.numel(), 1024),)
        {LAUNCH}
    return y


"""


class ComputeByTorch(Rule):
    """Forward pass that lets PyTorch compute."""

    code = "TW322"
    severity = Severity.WARNING
    why = (
        "An operator of cuTile computes in its kernels. Arithmetic that PyTorch does beside them is neither fused"
        " nor tuned, runs in PyTorch's precision, and hides that a kernel is missing. Allocation, views, copies, "
        "concatenation, and small sums between launches are fine."
    )
    advice = "Write a kernel for it, or pass the weight of a layer to one instead of calling the layer."
    VALID = (
        _DOUBLE + "def scale(x, w):\n    return double(torch.cat([x.reshape(-1), w.reshape(-1)]))\n",
        _DOUBLE + "class Scale(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.linear = nn.Linear(8, 8)\n\n    def forward(self, x):\n"
        "        return double(self.linear.weight)\n",
        _DOUBLE + "def reference(x, w):\n    return F.linear(x, w) * 2\n",
        _DOUBLE + "def padded(x):\n    return double(F.pad(x, (0, 4)))\n",
    )
    INVALID = (
        _DOUBLE + "def linear(x, w):\n    return double(F.linear(x, w))\n",
        _DOUBLE + "def product(x, w):\n    return double(x @ w)\n",
        _DOUBLE + "def product(x, w):\n    return double(torch.matmul(x, w))\n",
        _DOUBLE + "class Scale(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.linear = nn.Linear(8, 8)\n\n    def forward(self, x):\n        return double(self.linear(x))\n",
        _DOUBLE + "class Scale(nn.Module):\n    def forward(self, x):\n        return double(nn.GELU()(x))\n",
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if not module.launches or module.is_test or module.is_benchmark:
            return
        kernels = {each for kernel in module.kernels for each in (kernel.node, *kernel.helpers)}
        forward = _forward(module)
        for node in (*module.nodes(ast.Call), *module.nodes(ast.BinOp)):
            function = module.function_of(node)
            if function is None or function in kernels or function not in forward or _is_other(module, node):
                continue
            said = _computed(module, node)
            if said:
                yield self.finding(
                    module, node, f"{said} is computed by PyTorch in {function.name}: write a kernel for it"
                )


def _forward(module: Module) -> set[Function]:
    """Functions that launch kernels, that call such or are registered for cuTile, and what these call."""
    launching = {launch.function for launch in module.launches if launch.function is not None}
    around = {each for function in launching for each in calls(module).callers(function)}
    around |= {each.function for each in module.declarations if each.function is not None and each.backend == "cutile"}
    return {each for function in around for each in calls(module).callees(function)}


def _is_other(module: Module, node: ast.AST) -> bool:
    """Whether a node belongs to a reference, a fallback, the backward pass or a test."""
    return any(
        (isinstance(each, ast.FunctionDef | ast.ClassDef) and _OTHER.search(each.name))
        or (isinstance(each, ast.If) and "__main__" in ast.unparse(each.test))
        for each in module.ancestors(node)
    )


def _computed(module: Module, node: ast.expr) -> str | None:
    if isinstance(node, ast.BinOp):
        return ast.unparse(node) if isinstance(node.op, ast.MatMult) else None
    if not isinstance(node, ast.Call):
        return None
    name = module.names.torch(node.func)
    if name is not None:
        origin, _, last = name.rpartition(".")
        if origin == "nn.functional":
            return None if last in _NO_COMPUTE else f"F.{last}"
        return f"torch.{name}" if _COMPUTE.fullmatch(name) else None
    match node.func:
        case ast.Attribute(attr=method, value=owner) if method in ("matmul", "mm", "bmm", "softmax", "addmm"):
            if module.names.resolve(owner) is None:
                return f"{ast.unparse(owner)}.{method}"
        case ast.Call(func=layer) if _is_layer(module, layer):
            return f"{ast.unparse(layer)}()"
    match node.func:
        case ast.Attribute(attr=attribute, value=ast.Name(id="self")) if attribute in _layers(module, node):
            return f"self.{attribute}"
    return None


def _is_layer(module: Module, node: ast.expr) -> bool:
    name = module.names.torch(node) or ""
    return name.startswith("nn.") and bool(_LAYERS.fullmatch(name.removeprefix("nn.")))


def _layers(module: Module, node: ast.AST) -> set[str]:
    """Attributes of the class around that are layers of PyTorch."""
    owner = next((each for each in module.ancestors(node) if isinstance(each, ast.ClassDef)), None)
    return {
        target.attr
        for each in (ast.walk(owner) if owner is not None else ())
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call) and _is_layer(module, each.value.func)
        for target in each.targets
        if isinstance(target, ast.Attribute)
    }
