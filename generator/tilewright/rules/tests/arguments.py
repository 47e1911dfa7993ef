"""Rule about arguments that tests leave at their defaults."""

import ast
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
                    said = f"{parameter} of {name} is only tested at its default, {ast.unparse(default)}: pass another"
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
