"""Rules about tests that cannot fail."""

import ast
import re
from collections.abc import Iterator

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.rule import Rule
from tilewright.rules.source import Function
from tilewright.rules.source import Module
from tilewright.rules.tests.cases import calls_of
from tilewright.rules.tests.cases import is_operator_test
from tilewright.rules.tests.cases import operator
from tilewright.rules.tests.cases import tests
from tilewright.rules.tests.examples import TEST

PATH = "tests/ops/test_my_op.py"
_COMPARISON = "self.assertCorrectness(my_op, self.reference, kwargs)"  # in the example
_ASSERTS = re.compile(r"(?i)assert|check|compare|verify|validate|raises|warns|fail|allclose")


class NoAssertion(Rule):
    """Test that asserts nothing."""

    code = "TW405"
    severity = Severity.ERROR
    why = "A test without an assertion passes whatever the kernel computes."
    advice = "Compare with a reference: self.assertCorrectness(...) or torch.testing.assert_close(...)."
    snippet_path = PATH
    VALID = (TEST, TEST.replace(_COMPARISON, "assert my_op(**kwargs).isfinite().all()"))
    INVALID = (TEST.replace(_COMPARISON, "my_op(**kwargs)"),)

    def check(self, module: Module) -> Iterator[Finding]:
        if not is_operator_test(module):
            return
        functions = {each.name: each for each in module.nodes(ast.FunctionDef)}
        for test in tests(module):
            if not test.name.startswith("test_perf") and not _asserts(test, functions, 4):
                yield self.finding(module, test, f"{test.name} asserts nothing: compare with a reference")


def _asserts(function: Function, functions: dict[str, ast.FunctionDef], depth: int) -> bool:
    if any(isinstance(node, ast.Assert) for node in ast.walk(function)):
        return True
    for name, _ in calls_of(function):
        called = functions.get(name)
        if called is None:
            if _ASSERTS.search(name):
                return True
        elif depth and called is not function and _asserts(called, functions, depth - 1):
            return True
    return False


class CircularReference(Rule):
    """Reference that calls the operator under test."""

    code = "TW406"
    severity = Severity.ERROR
    why = "The operator is then compared with itself, and every result is right."
    advice = "Compute the reference with PyTorch alone."
    snippet_path = PATH
    VALID = (TEST,)
    INVALID = (
        TEST.replace("return x * 2", "return my_op(x)"),
        TEST.replace("return x * 2", "return my_op(x, backend='torch')"),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if not (is_operator_test(module) or module.is_benchmark):
            return
        names = {operator(module), *_tested(module)} - {None}
        for function in module.nodes(ast.FunctionDef):
            if not re.search(r"(?i)(^|_)ref(erence)?(_|$)", function.name):
                continue
            for name, call in calls_of(function):
                meaning = module.names.resolve(call.func) or ""
                if name in names and meaning and not meaning.startswith(("torch", "numpy")):
                    yield self.finding(
                        module,
                        call,
                        f"{function.name} calls {name}, which it is to be compared with: use PyTorch alone",
                    )


def _tested(module: Module) -> Iterator[str]:
    """Operators that are compared by `assertCorrectness`."""
    for name, call in calls_of(module.tree):
        if name == "assertCorrectness" and call.args:
            function = call.args[0]
            yield function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
