"""Rules about tests that do not run, or with whatever backend is set."""

import ast
from collections.abc import Iterator

from tilewright.rules.finding import Edit
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.rule import Rule
from tilewright.rules.source import Function
from tilewright.rules.source import Module
from tilewright.rules.tests.cases import calls_of
from tilewright.rules.tests.cases import is_operator_test
from tilewright.rules.tests.cases import parametrized
from tilewright.rules.tests.cases import tests
from tilewright.rules.tests.examples import TEST

PATH = "tests/ops/test_my_op.py"


class UnselectedTest(Rule):
    """Test whose name continuous integration does not select."""

    code = "TW401"
    severity = Severity.WARNING
    why = (
        "TileGym's continuous integration runs `pytest tests/ops tests/suites -k test_op`: a test of another name"
        " is green because nobody runs it."
    )
    advice = "Call it test_op_..., or test_perf_... for a measurement."
    snippet_path = PATH
    VALID = (TEST, TEST.replace("def test_op(", "def test_op_ragged("))
    INVALID = (TEST.replace("def test_op(", "def test_ragged("),)

    def check(self, module: Module) -> Iterator[Finding]:
        if not is_operator_test(module) or "test_op" in module.path.name:
            return
        for test in tests(module):
            owner = module.parent(test)
            inside = owner.name if isinstance(owner, ast.ClassDef) else ""
            if "test_op" in f"{inside} {test.name}".lower() or test.name.startswith("test_perf"):
                continue
            renamed = f"test_op_{test.name.removeprefix('test_')}"
            span = module.span(test)
            edit = Edit(
                line=span.line, column=span.column, end_line=span.end_line, end_column=span.end_column, text=renamed
            )
            fix = Fix(f"Call it {renamed}", (edit,))
            yield self.finding(module, test, f"{test.name} is not selected by -k test_op: call it test_op_...", fix=fix)


class BackendImport(Rule):
    """Test that imports the implementation instead of the operator."""

    code = "TW402"
    severity = Severity.WARNING
    why = (
        "What users call is the dispatching function: a test of the implementation passes although it is "
        "registered under another name, or never."
    )
    advice = "Import the operator from the package: from tilegym.ops import my_op."
    snippet_path = PATH
    VALID = (TEST,)
    INVALID = (
        TEST.replace("from my_ops import my_op", "from my_ops.my_op.cutile import my_op"),
        TEST.replace("from my_ops import my_op", "from tilegym.ops.cutile.my_op import my_op"),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if not is_operator_test(module):
            return
        for node in module.nodes(ast.ImportFrom):
            if "cutile" in (node.module or "").split("."):
                yield self.finding(
                    module, node, f"the test imports from {node.module}, not from the package: import it there"
                )
        for each in module.nodes(ast.Import):
            if any("cutile" in alias.name.split(".") for alias in each.names):
                yield self.finding(module, each, f"the test imports {each.names[0].name}: import the package")


class UnguardedBackend(Rule):
    """Test that sets a backend that may not be there."""

    code = "TW403"
    severity = Severity.WARNING
    why = (
        "Where a backend cannot be imported, set_backend raises: the test fails instead of being skipped with a reason."
    )
    advice = "Ask is_backend_available(backend) and call pytest.skip before set_backend(backend)."
    snippet_path = PATH
    VALID = (TEST,)
    INVALID = (TEST.replace("        if not is_backend_available(backend):\n            pytest.skip(backend)\n", ""),)

    def check(self, module: Module) -> Iterator[Finding]:
        if not is_operator_test(module):
            return
        for name, call in calls_of(module.tree):
            function = module.function_of(call)
            if name != "set_backend" or function is None or not (call.args or call.keywords):
                continue
            guarded = any(isinstance(each, ast.Try) for each in module.ancestors(call)) or any(
                other == "is_backend_available" for other, _ in calls_of(function)
            )
            if not guarded:
                said = ast.unparse(call)
                yield self.finding(module, call, f"{said} is not preceded by is_backend_available: ask, and skip")


class NoBackend(Rule):
    """Test that runs with whatever backend is set."""

    code = "TW404"
    severity = Severity.WARNING
    why = (
        "Which backend runs then depends on the test before. The failing one may never run at all, because "
        "missing implementations fall back to another."
    )
    advice = 'Parametrize: @pytest.mark.parametrize("backend", _backends), and call set_backend(backend).'
    snippet_path = PATH
    VALID = (TEST,)
    INVALID = (
        TEST.replace('    @pytest.mark.parametrize("backend", _backends)\n', "")
        .replace(", backend)", ")")
        .replace("        if not is_backend_available(backend):\n            pytest.skip(backend)\n", "")
        .replace("        set_backend(backend)\n", ""),
        TEST.replace("        set_backend(backend)\n", ""),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if not is_operator_test(module):
            return
        for test in tests(module):
            if not test.name.startswith(("test_op", "test_perf")):
                continue
            names = {name for each in parametrized(module, test) for name in each.names}
            arguments = {each.arg for each in test.args.args}
            said = {*names, *arguments}
            if any(each in said for each in ("backend", "framework", "impl")) or _sets_backend(module, test):
                continue
            yield self.finding(
                module, test, f"{test.name} is not parametrized over backends and sets none: take backend, and set it"
            )
        if not _uses_backends(module):
            for test in tests(module):
                if "backend" in {each.arg for each in test.args.args}:
                    yield self.finding(
                        module, test, f"{test.name} takes backend, and nothing in the file sets it: call set_backend"
                    )
                    break


def _uses_backends(module: Module) -> bool:
    """Whether anything in the file sets a backend, or passes one on to an operator."""
    return any(
        name in ("set_backend", "use_backend") or any(keyword.arg == "backend" for keyword in call.keywords)
        for name, call in calls_of(module.tree)
    )


def _sets_backend(module: Module, test: Function) -> bool:
    """Whether a test, or the setup of its class or file, chooses a backend."""
    owner = module.parent(test)
    setups = [each for each in module.nodes(ast.FunctionDef) if "setup" in each.name.lower() or _is_fixture(each)]
    near = [each for each in setups if module.parent(each) in (owner, module.tree)]
    if any(name in ("set_backend", "use_backend") for each in (test, *near) for name, _ in calls_of(each)):
        return True
    return any(keyword.arg == "backend" for _, call in calls_of(test) for keyword in call.keywords)


def _is_fixture(function: Function) -> bool:
    return any("fixture" in ast.unparse(each) for each in function.decorator_list)
