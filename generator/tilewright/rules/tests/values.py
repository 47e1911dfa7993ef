"""Rules about arguments, tolerances and sizes of a test."""

import ast
import math
from collections.abc import Iterator

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.project import Project
from tilewright.rules.rule import Rule
from tilewright.rules.source import Function
from tilewright.rules.source import Module
from tilewright.rules.tests.cases import calls_of
from tilewright.rules.tests.cases import cases
from tilewright.rules.tests.cases import is_operator_test
from tilewright.rules.tests.cases import operator
from tilewright.rules.tests.cases import parametrized
from tilewright.rules.tests.cases import tests
from tilewright.rules.tests.examples import TEST

PATH = "tests/ops/test_my_op.py"
_ROUNDING = {
    "bfloat16": 2.0**-9,
    "float16": 2.0**-12,
    "float32": 2.0**-25,
}  # half of the spacing at 1, relative to 1 to 2
_BYTES = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "int8": 1, "uint8": 1}
_LIMIT = 8 * 2**30
_FACTORIES = ("randn", "rand", "empty", "zeros", "ones", "full")

_STUB = """
from my_ops.backend import dispatch


@dispatch("my_op")
def my_op(x, alpha=1.0, out=None, **kwargs):
    raise NotImplementedError("my_op")
"""


def _scaled(values: str) -> str:
    return TEST.replace('device="cuda").mT}', f'device="cuda").mT, {values}}}').replace("(x):", "(x, alpha):")


class OnlyDefaults(Rule):
    """Scalar argument that is only tested at its default."""

    code = "TW411"
    severity = Severity.WARNING
    why = (
        "An implementation that swallows an argument, or takes it under another name, computes with the default: "
        "only another value tells."
    )
    advice = "Add a case that passes another value by keyword."
    VALID = ({"my_ops/interface.py": _STUB, PATH: _scaled('"alpha": 0.5')},)
    INVALID = (
        {"my_ops/interface.py": _STUB, PATH: TEST},
        {"my_ops/interface.py": _STUB, PATH: _scaled('"alpha": 1.0')},
    )

    def check_project(self, project: Project) -> Iterator[Finding]:
        signatures = _signatures(project)
        for module in project.checked:
            name = operator(module)
            if not is_operator_test(module) or name not in signatures:
                continue
            found = [each for each in tests(module) if each.name.startswith("test_op")]
            for parameter, default in _scalars(signatures[name]):
                if found and not _is_varied(module, name, signatures[name], parameter, default):
                    said = f"{parameter} of {name} is only tested at its default, {ast.unparse(default)}"
                    yield self.finding(module, found[0], said)


def _signatures(project: Project) -> dict[str, Function]:
    """Dispatching functions by name."""
    return {
        each.function.name: each.function
        for each in project.declarations
        if each.backend is None and each.function is not None
    }


def _scalars(function: Function) -> Iterator[tuple[str, ast.expr]]:
    """Parameters whose default is a number, a flag or a text."""
    positional = [*function.args.posonlyargs, *function.args.args]
    defaults = function.args.defaults
    pairs: list[tuple[ast.arg, ast.expr | None]] = list(
        zip(positional[len(positional) - len(defaults) :], defaults, strict=True)
    )
    pairs += zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    for argument, default in pairs:
        value = default.operand if isinstance(default, ast.UnaryOp) else default
        if (
            isinstance(value, ast.Constant)
            and value.value is not None
            and isinstance(default, ast.Constant | ast.UnaryOp)
        ):
            yield argument.arg, default


def _is_varied(module: Module, name: str, signature: Function, parameter: str, default: ast.expr) -> bool:
    """Whether the file gives the parameter any other value than its default, or one that cannot be told."""
    written = ast.unparse(default)
    given: list[ast.expr] = [
        each.value for call in module.nodes(ast.Call) for each in call.keywords if each.arg == parameter
    ]
    for display in module.nodes(ast.Dict):
        given += [
            value
            for key, value in zip(display.keys, display.values, strict=True)
            if isinstance(key, ast.Constant) and key.value == parameter
        ]
    for test in tests(module):
        for case in parametrized(module, test):
            if parameter in case.names:
                return True
    names = [each.arg for each in (*signature.args.posonlyargs, *signature.args.args)]
    for called, call in calls_of(module.tree):
        if called == name and parameter in names and len(call.args) > names.index(parameter):
            given.append(call.args[names.index(parameter)])
    return any(ast.unparse(each) != written and not _is_equal(each, default) for each in given)


def _is_equal(value: ast.expr, default: ast.expr) -> bool:
    try:
        return bool(ast.literal_eval(value) == ast.literal_eval(default))
    except ValueError:
        return False


class TightTolerance(Rule):
    """Tolerance below the rounding of a dtype."""

    code = "TW412"
    severity = Severity.WARNING
    why = (
        "A result that is right, and rounded once, is off by up to half of the spacing of its dtype: 2^-9 of its "
        "value in bfloat16, 2^-12 in float16. Below that only luck passes, and small values pass whatever they "
        "are."
    )
    advice = "Leave rtol and atol out, so that they follow the dtype, or choose them by dtype."
    snippet_path = PATH
    VALID = (
        TEST,
        TEST.replace("self.reference, kwargs)", "self.reference, kwargs, rtol=1e-2, atol=2e-2)"),
        TEST.replace("self.reference, kwargs)", "self.reference, kwargs, rtol=0, atol=0)"),
    )
    INVALID = (
        TEST.replace("self.reference, kwargs)", "self.reference, kwargs, rtol=1e-3, atol=1e-3)"),
        TEST.replace("    _shapes", '    _tolerances = {torch.bfloat16: {"rtol": 1e-4, "atol": 1e-5}}\n    _shapes'),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if not is_operator_test(module):
            return
        for display in module.nodes(ast.Dict):
            for key, tolerances in zip(display.keys, display.values, strict=True):
                dtype = module.names.torch(key) if key is not None else None
                numbers = [each.value for each in ast.walk(tolerances) if isinstance(each, ast.Constant)]
                known = [
                    float(each) for each in numbers if isinstance(each, int | float) and not isinstance(each, bool)
                ]
                if dtype in _ROUNDING and len(known) == 2 and 0 < max(known) < _ROUNDING[dtype]:
                    said = f"rtol and atol up to {max(known):g} are below what rounding to {dtype} costs"
                    yield self.finding(module, tolerances, said)
        for test in tests(module):
            dtypes = [each for each in _ROUNDING if each in _dtypes(module, test)]
            for name, call in calls_of(test):
                if name not in ("assertCorrectness", "assert_close", "allclose"):
                    continue
                given = {each.arg: each.value for each in call.keywords if each.arg in ("rtol", "atol")}
                values = [each.value for each in given.values() if isinstance(each, ast.Constant)]
                if len(values) != 2 or not all(isinstance(each, int | float) and each > 0 for each in values):
                    continue
                most = max(float(each) for each in values if isinstance(each, int | float))
                tight = [each for each in dtypes if most < _ROUNDING[each]]
                if tight:
                    said = f"rtol and atol up to {most:g} are below what rounding to {tight[0]} costs"
                    yield self.finding(module, call, said)


def _dtypes(module: Module, test: Function) -> set[str]:
    """Dtypes that a test is run with."""
    return {
        node.attr
        for each in parametrized(module, test)
        for value in each.values
        for node in ast.walk(value)
        if isinstance(node, ast.Attribute) and module.names.torch(node) in _ROUNDING
    }


class LargeShape(Rule):
    """Tensor of more than 8 GiB in a test."""

    code = "TW413"
    severity = Severity.WARNING
    why = "Continuous integration and laptops have GPUs of 16 or 24 GiB, and the reference needs its own copies."
    advice = "Use a smaller shape, or mark the case as large and skip it where the memory is missing."
    snippet_path = PATH
    VALID = (TEST, TEST.replace("(64, 4096)", "(16384, 16384)"))
    INVALID = (TEST.replace("(64, 4096)", "(131072, 65536)"),)

    def check(self, module: Module) -> Iterator[Finding]:
        if not is_operator_test(module):
            return
        for test in tests(module):
            if any("large" in ast.unparse(each) for each in test.decorator_list):
                continue
            for case in cases(module, test):
                found = max((_bytes(call, case) for call in _makers(module, test)), default=0)
                if found > _LIMIT:
                    where = next(iter(case.values()))
                    yield self.finding(module, where, f"{test.name} makes a tensor of {found / 2**30:.0f} GiB")
                    break


def _makers(module: Module, test: Function) -> list[ast.Call]:
    """Calls that make tensors, in a test and in the functions of the file that it calls."""
    called = {name for name, _ in calls_of(test)}
    helpers = [each for each in module.nodes(ast.FunctionDef) if each.name in called and each is not test]
    return [call for each in (test, *helpers) for name, call in calls_of(each) if name in _FACTORIES]


def _bytes(call: ast.Call, case: dict[str, ast.expr]) -> int:
    """Size of the tensor that a factory makes in a case, or 0 where it cannot be told."""
    sizes: list[int] = []
    for node in call.args:
        part = node.value if isinstance(node, ast.Starred) else node
        value = case.get(part.id, part) if isinstance(part, ast.Name) else part
        for each in value.elts if isinstance(value, ast.Tuple | ast.List) else [value]:
            size = case.get(each.id) if isinstance(each, ast.Name) else each
            if not isinstance(size, ast.Constant) or not isinstance(size.value, int):
                return 0
            sizes.append(size.value)
    dtype = next((each.value for each in call.keywords if each.arg == "dtype"), None)
    dtype = case.get(dtype.id, dtype) if isinstance(dtype, ast.Name) else dtype
    width = _BYTES.get(dtype.attr, 2) if isinstance(dtype, ast.Attribute) else 2
    return math.prod(sizes) * width if sizes else 0
