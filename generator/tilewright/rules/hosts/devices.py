"""Rules about streams, devices and the environment."""

import ast
from collections.abc import Iterator

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.hosts.examples import KERNEL
from tilewright.rules.hosts.values import resolved
from tilewright.rules.rule import Proof
from tilewright.rules.rule import Rule
from tilewright.rules.source import Module

_FACTORIES = (
    "empty", "zeros", "ones", "full", "rand", "randn", "arange", "tensor", "empty_strided", "linspace"
)  # fmt: skip

_DOUBLE = (
    KERNEL
    + """def double(x):
    y = torch.empty_like(x)
    if x.numel():
        grid = (ct.cdiv(x.numel(), 1024),)
"""
)


def _launch(stream: str) -> str:
    return _DOUBLE + f"        ct.launch({stream}, grid, _double_kernel, (x, y, 1024))\n    return y\n"


class OtherStream(Rule):
    """Launch on a stream that is not PyTorch's current one."""

    code = "TW319"
    severity = Severity.ERROR
    why = (
        "PyTorch orders its work, and frees memory, by its current stream. A kernel on another one may read its "
        "inputs before they are written, and its result may be read before it is there. It also breaks CUDA "
        "graphs."
    )
    advice = "Launch on torch.cuda.current_stream(x.device)."
    proof = Proof.STYLE  # a race: it often goes well
    VALID = (_launch("torch.cuda.current_stream(x.device)"), _launch("torch.cuda.current_stream()"))
    INVALID = (_launch("0"), _launch("torch.cuda.default_stream()"), _launch("torch.cuda.Stream()"))

    def check(self, module: Module) -> Iterator[Finding]:
        for launch in module.launches:
            stream = resolved(module, launch.stream) if launch.stream is not None else None
            if stream is None or launch.search:
                continue
            if isinstance(stream, ast.Constant):
                said = f"the number {stream.value}" if isinstance(stream.value, int) else repr(stream.value)
            elif isinstance(stream, ast.Call) and module.names.torch(stream.func) in (
                "cuda.default_stream",
                "cuda.Stream",
                "cuda.ExternalStream",
            ):
                said = ast.unparse(stream)
            else:
                continue
            edit = module.replacement(stream, "torch.cuda.current_stream()")
            fix = Fix("Use the current stream", (edit,)) if _imports_torch(module) else None
            yield self.finding(
                module, stream, f"the stream is {said}, not PyTorch's: pass torch.cuda.current_stream()", fix=fix
            )


def _imports_torch(module: Module) -> bool:
    return any(alias.name == "torch" for node in module.nodes(ast.Import) for alias in node.names)


class HardCodedDevice(Rule):
    """Device that is written down instead of taken from an argument."""

    code = "TW320"
    severity = Severity.WARNING
    why = (
        '"cuda" is the current device, which need not be the one that the arguments are on: with several GPUs the'
        " kernel gets tensors of two devices, which is an illegal address or wrong numbers."
    )
    advice = "Use the device of an argument: x.device."
    VALID = (
        _launch("torch.cuda.current_stream(x.device)").replace("empty_like(x)", "empty(x.shape, device=x.device)"),
        _launch("torch.cuda.current_stream(x.device)")
        + '\n\ndef main():\n    print(double(torch.randn(8, device="cuda")))\n',
    )
    INVALID = (
        _launch("torch.cuda.current_stream(x.device)").replace("empty_like(x)", 'empty(x.shape, device="cuda")'),
        _launch("torch.cuda.current_stream(x.device)").replace("empty_like(x)", "empty(x.shape).cuda()"),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if not (module.kernels or module.launches) or module.is_test or module.is_benchmark:
            return
        for call in module.nodes(ast.Call):
            if not takes_arguments(module, call) or _is_below_main(module, call):
                continue
            function = module.names.torch(call.func) or ""
            for keyword in call.keywords:
                if keyword.arg == "device" and function in _FACTORIES and _is_device(keyword.value):
                    yield self.finding(
                        module,
                        keyword.value,
                        f"{ast.unparse(keyword.value)} need not be the device of the arguments: use x.device",
                    )
            if isinstance(call.func, ast.Attribute) and call.func.attr == "cuda" and not call.args and not function:
                yield self.finding(
                    module, call, f"{ast.unparse(call)} need not move to the device of the arguments: use to(x.device)"
                )
            if function in ("cuda.get_device_properties", "cuda.get_device_capability") and any(
                _is_device(each) for each in call.args
            ):
                yield self.finding(
                    module,
                    call,
                    f"torch.{function} asks for {ast.unparse(call.args[0])}, which need not be the device of the "
                    "arguments",
                    severity=Severity.INFO,
                )


def _is_device(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Attribute) and node.func.attr == "device":
        node = node.args[0]
    if not isinstance(node, ast.Constant) or isinstance(node.value, bool):
        return False
    return isinstance(node.value, int) or (isinstance(node.value, str) and node.value.startswith("cuda"))


def takes_arguments(module: Module, node: ast.AST) -> bool:
    """Whether a function around a node has a parameter; one that has none, as `main`, makes its own data."""
    functions = [each for each in module.ancestors(node) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    return any(
        each.args.posonlyargs or each.args.args or each.args.kwonlyargs or each.args.vararg
        for each in functions
        if each.name != "main"
    )


def _is_below_main(module: Module, node: ast.AST) -> bool:
    return any(isinstance(each, ast.If) and "__main__" in ast.unparse(each.test) for each in module.ancestors(node))


class EnvironmentRead(Rule):
    """Operator that depends on an environment variable."""

    code = "TW321"
    severity = Severity.WARNING
    why = (
        "What an operator computes, or how fast, then depends on something that no test and no caller sees; and "
        "reading it at every call costs microseconds."
    )
    advice = "Take an argument, or ask a function of the package that documents the variable."
    VALID = (_launch("torch.cuda.current_stream(x.device)"),)
    INVALID = (
        "import os\n" + _launch("torch.cuda.current_stream(x.device)").replace("1024),)", 'int(os.environ["TILE"])),)'),
        "import os\n\nDEBUG = os.getenv('DEBUG')\n" + _launch("torch.cuda.current_stream(x.device)"),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if not (module.kernels or module.launches) or module.is_test or module.is_benchmark:
            return
        reads: list[tuple[ast.expr, ast.expr]] = [
            (node, node.value) for node in module.nodes(ast.Subscript) if isinstance(node.ctx, ast.Load)
        ]
        reads += [(call, call.func) for call in module.nodes(ast.Call)]
        for node, target in reads:
            if module.names.resolve(target) in ("os.environ", "os.environ.get", "os.getenv"):
                yield self.finding(
                    module,
                    node,
                    f"{ast.unparse(node)} decides what this operator does, unseen by callers: take an argument instead",
                )
