"""Rule about the bytes that a benchmark counts."""

import ast
from collections.abc import Iterator

from tilewright.rules.benchmarks.examples import BENCHMARK
from tilewright.rules.benchmarks.reports import benchmarks
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.rule import Rule
from tilewright.rules.source import Function
from tilewright.rules.source import Module

PATH = "tests/benchmark/bench_my_op.py"
_FACTORIES = ("randn", "rand", "empty", "zeros", "ones", "full", "randint", "arange", "randn_like", "rand_like")


class ForgottenBytes(Rule):
    """Byte count that leaves out a tensor."""

    code = "TW508"
    severity = Severity.WARNING
    why = "The bandwidth is what the operator must move: a tensor that is not counted makes it look slower than it is."
    advice = "Count every tensor that is read once, and every result that is written once."
    snippet_path = PATH
    VALID = (BENCHMARK,)
    INVALID = (
        BENCHMARK.replace(" * 2 + w.numel() * w.element_size()", " * 2"),
        BENCHMARK.replace(
            "@triton.testing.perf",
            "def bytes_moved(M, N, dtype):\n    return M * N * dtype.itemsize\n\n\n@triton.testing.perf",
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for returned in module.nodes(ast.Return) if module.is_benchmark else ():
            factors = _factors(returned.value)
            if any(_is_size(each) for each in factors) and all(
                isinstance(e, ast.Name | ast.Attribute) for e in factors
            ):
                said = (
                    f"{ast.unparse(returned)} counts one tensor; an operator reads one at least, and writes another: "
                    "count all"
                )
                yield self.finding(module, returned, said)
        for function in benchmarks(module):
            counted = _counted(function)
            if not counted:
                continue
            made = _made(module, function)
            for name, node in made.items():
                if name not in counted and _is_passed(function, name):
                    others = ", ".join(sorted(counted))
                    said = f"{name} is passed to the operator, and not in the byte count beside {others}: count it too"
                    yield self.finding(module, node, said)


def _factors(node: ast.expr | None) -> list[ast.expr]:
    """What a product multiplies."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return [*_factors(node.left), *_factors(node.right)]
    return [] if node is None else [node]


def _is_size(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "itemsize"


def _counted(function: Function) -> set[str]:
    """Tensors whose bytes are counted: `x.numel() * x.element_size()`, `x.nbytes`."""
    sized = set()
    measured = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in ("numel", "nbytes"):
                sized.add(node.value.id)
            if node.attr in ("element_size", "nbytes", "itemsize"):
                measured.add(node.value.id)
    return sized if measured else set()


def _made(module: Module, function: Function) -> dict[str, ast.expr]:
    """Tensors that the benchmark makes."""
    return {
        target.id: target
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if (module.names.torch(node.value.func) or "") in _FACTORIES
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _is_passed(function: Function, name: str) -> bool:
    """Whether a tensor is an argument of a call with a backend."""
    return any(
        isinstance(node, ast.Call)
        and any(each.arg == "backend" for each in node.keywords)
        and any(isinstance(each, ast.Name) and each.id == name for each in _passed(node))
        for node in ast.walk(function)
    )


def _passed(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(each.value for each in call.keywords)]
