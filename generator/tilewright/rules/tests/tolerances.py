"""Rules about tolerances and sizes of a test."""

import ast
import math
from collections.abc import Iterator

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.rule import Rule
from tilewright.rules.source import Function
from tilewright.rules.source import Module
from tilewright.rules.tests.cases import calls_of
from tilewright.rules.tests.cases import cases
from tilewright.rules.tests.cases import is_operator_test
from tilewright.rules.tests.cases import parametrized
from tilewright.rules.tests.cases import tests
from tilewright.rules.tests.examples import TEST

PATH = "tests/ops/test_my_op.py"
_ROUNDING = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24}  # of a value, at most
_BYTES = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "int8": 1, "uint8": 1}
_LIMIT = 8 * 2**30
_FACTORIES = ("randn", "rand", "empty", "zeros", "ones", "full")


class TightTolerance(Rule):
    """Tolerance below the rounding of a dtype."""

    code = "TW412"
    severity = Severity.WARNING
    why = (
        "Rounding to a dtype once moves a result by up to 2^-8 of its value in bfloat16, and 2^-11 in float16. "
        "Where rtol and atol together are less, a kernel that is right fails for values around 1, and zeros pass "
        "for small ones."
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
                if dtype in _ROUNDING and len(known) == 2 and 0 < sum(known) < _ROUNDING[dtype]:
                    said = (
                        f"rtol and atol are {sum(known):g} together, less than rounding to {dtype} costs: "
                        "leave them out"
                    )
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
                both = sum(float(each) for each in values if isinstance(each, int | float))
                tight = [each for each in dtypes if both < _ROUNDING[each]]
                if tight:
                    said = (
                        f"rtol and atol are {both:g} together, less than rounding to {tight[0]} costs: leave them out"
                    )
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
                    yield self.finding(
                        module, where, f"{test.name} makes a tensor of {found / 2**30:.0f} GiB: use a smaller shape"
                    )
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
