"""Rules about cases that the tests of an operator leave out."""

import ast
from collections.abc import Iterable
from collections.abc import Iterator

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.project import Project
from tilewright.rules.rule import Rule
from tilewright.rules.source import Function
from tilewright.rules.source import Module
from tilewright.rules.tests.cases import calls_of
from tilewright.rules.tests.cases import is_operator_test
from tilewright.rules.tests.cases import operator
from tilewright.rules.tests.cases import parametrized
from tilewright.rules.tests.cases import tests
from tilewright.rules.tests.examples import TEST

PATH = "tests/ops/test_my_op.py"
_DTYPES = (
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "float8_e4m3fn",
    "float8_e5m2",
    "int8",
    "int32",
    "int64",
    "half",
)
_FACTORIES = ("randn", "rand", "empty", "zeros", "ones", "full", "arange", "randint", "normal")
_STRIDED = (
    "transpose", "permute", "t", "mT", "T", "movedim", "swapaxes", "as_strided", "expand", "narrow", "empty_strided",
    "unfold", "chunk", "split",
)  # fmt: skip
_IMPLEMENTATION = """
import torch

from my_ops.backend import register_impl

_DTYPES = (torch.float32, torch.float16)


@register_impl("my_op", backend="cutile")
def my_op(x, out=None, **kwargs):
    if x.dtype not in _DTYPES:
        raise TypeError(x.dtype)
    return x + x
"""
_HALF = TEST.replace("[torch.float32, torch.float16, torch.bfloat16]", "[torch.float16]")
_SMALL = 16  # sizes up to this are counts: of batches, heads, groups


def _operator_tests(module: Module) -> list[Function]:
    return [each for each in tests(module) if each.name.startswith("test_op")] if is_operator_test(module) else []


def _sizes(module: Module) -> list[int]:
    """Every integer that is written in a case, or in the call that makes a tensor."""
    nodes: list[ast.AST] = [
        value for test in tests(module) for each in parametrized(module, test) for value in each.values
    ]
    nodes += [call for name, call in calls_of(module.tree) if name in _FACTORIES]
    return [
        node.value
        for root in nodes
        for node in ast.walk(root)
        if isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool)
    ]


class OneDtype(Rule):
    """Operator that is tested with one dtype only."""

    code = "TW407"
    severity = Severity.WARNING
    why = (
        "Half precision overflows, bfloat16 rounds coarsely, float32 takes other instructions: each fails in its "
        "own way, and a kernel that converts to the wrong dtype is right for one of them."
    )
    advice = 'Parametrize: @pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16]).'
    VALID = (
        {"my_ops/cutile.py": _IMPLEMENTATION, PATH: TEST},
        {"my_ops/cutile.py": _IMPLEMENTATION.replace("torch.float32, torch.float16", "torch.float16,"), PATH: _HALF},
    )
    INVALID = ({"my_ops/cutile.py": _IMPLEMENTATION, PATH: _HALF},)

    def check_project(self, project: Project) -> Iterator[Finding]:
        taken = _taken(project)
        for module in project.checked:
            found = _operator_tests(module)
            used = _dtypes(value for test in found for each in parametrized(module, test) for value in each.values)
            used = used or _dtypes([module.tree])
            name = operator(module)
            if found and len(used) == 1 and name in taken and taken[name] != used:
                yield self.finding(
                    module,
                    found[0],
                    f"the only dtype in the tests is torch.{used.pop()}: add the others that the operator takes",
                )


def _taken(project: Project) -> dict[str, set[str]]:
    """Dtypes that the `_DTYPES` of implementations list, by operator; none where there is no such list."""
    taken: dict[str, set[str]] = {}
    for each in project.declarations:
        if each.backend is not None:
            listed = each.module.bindings(each.module.tree).get("_DTYPES", [])
            taken.setdefault(each.key, set()).update(_dtypes(filter(None, listed)))
    return taken


def _dtypes(nodes: Iterable[ast.AST]) -> set[str]:
    """Dtypes of PyTorch that are named below some nodes."""
    return {
        each.attr
        for node in nodes
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and each.attr in _DTYPES
    }


class NoRaggedSize(Rule):
    """Tests whose sizes all fit the tiles."""

    code = "TW408"
    severity = Severity.WARNING
    why = (
        "Tiles are powers of two. With sizes that are multiples of them no tile reaches over an edge: wrong "
        "padding, a wrong divisor and a missing mask all go unseen."
    )
    advice = "Add a size that no tile divides, such as 1337."
    snippet_path = PATH
    VALID = (TEST,)
    INVALID = (
        TEST.replace("(5, 1337), (1,), ", ""),
        TEST.replace("(64, 4096), (5, 1337), (1,), (0, 5)", "(64, 4096), (0, 4096), (32, 1536)"),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        found = _operator_tests(module)
        large = sorted({size for size in _sizes(module) if size > _SMALL})
        if found and large and all(size % 16 == 0 for size in large):
            said = ", ".join(map(str, large[:4])) + (", ..." if len(large) > 4 else "")
            yield self.finding(
                module, found[0], f"every size in the tests is a multiple of 16 ({said}): add one such as 1337"
            )


class NoEmptyCase(Rule):
    """Tests without a tensor that has no elements."""

    code = "TW409"
    severity = Severity.INFO
    why = "A grid of no blocks is refused by the driver, so an operator that takes empty tensors needs code for them."
    advice = "Add a shape such as (0, 128)."
    snippet_path = PATH
    VALID = (TEST,)
    INVALID = (
        TEST.replace("(1,), (0, 5)", "(1,)"),
        TEST.replace("    _backends =", "    _empty = []\n    _backends ="),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        found = _operator_tests(module)
        sizes = _sizes(module)
        if found and any(size > 1 for size in sizes) and 0 not in _shape_entries(module):
            yield self.finding(module, found[0], "no shape in the tests has a size of 0: add one such as (0, 128)")
        for each in module.nodes(ast.Assign) if found else ():
            match each:
                case ast.Assign(targets=[ast.Name(id="_empty")], value=ast.List(elts=[])):
                    said = "_empty has no shape, so nothing is tested that has a size of 0: add one such as (0, 128)"
                    yield self.finding(module, each, said, severity=Severity.WARNING)


def _shape_entries(module: Module) -> set[int]:
    """Integers inside of tuples and calls, where a 0 is a size and not the value of a flag."""
    parts = [part for call in module.nodes(ast.Call) for part in call.args]
    parts += [part for node in module.nodes(ast.Tuple) for part in node.elts]
    parts += [part for each in module.nodes(ast.List) for part in each.elts]
    return {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, int)}


class NoStridedCase(Rule):
    """Tests whose tensors are all contiguous."""

    code = "TW410"
    severity = Severity.INFO
    why = (
        "Callers pass transposed and sliced tensors: a host function that takes a view of them raises, or writes "
        "to a copy."
    )
    advice = "Add a case with x.mT, x[:, ::2] or x.transpose(0, 1)."
    snippet_path = PATH
    VALID = (TEST, TEST.replace('device="cuda").mT', 'device="cuda")[..., ::2]'))
    INVALID = (TEST.replace('device="cuda").mT', 'device="cuda")'),)

    def check(self, module: Module) -> Iterator[Finding]:
        found = _operator_tests(module)
        strided = any(node.attr in _STRIDED for node in module.nodes(ast.Attribute))
        sliced = any(_is_slice(node.slice) for node in module.nodes(ast.Subscript))
        if found and not strided and not sliced:
            yield self.finding(
                module, found[0], "no tensor in the tests is transposed or sliced: add a case such as x.mT"
            )


def _is_slice(index: ast.expr) -> bool:
    """Whether an index takes a part of a tensor: `[::2]`, `[:, 1:]`, `[..., 0]`."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(
        (isinstance(each, ast.Slice) and (each.lower or each.upper or each.step) is not None)
        or (isinstance(each, ast.Constant) and each.value is ...)
        for each in parts
    )
