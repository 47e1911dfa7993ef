"""Rules about what a benchmark runs and measures."""

import ast
from collections.abc import Iterator

from tilewright.rules.benchmarks.examples import BENCHMARK
from tilewright.rules.benchmarks.reports import benchmarks
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.rule import Rule
from tilewright.rules.source import Function
from tilewright.rules.source import Module

PATH = "tests/benchmark/bench_my_op.py"
_TIMERS = ("do_bench", "do_bench_cudagraph", "profile_with_l2flush")
_ASSERTIONS = ("assert_close", "allclose", "assertCorrectness", "assert_allclose", "assert_equal")


def _calls(node: ast.AST, names: tuple[str, ...]) -> list[ast.Call]:
    found = []
    for each in ast.walk(node):
        if isinstance(each, ast.Call):
            name = each.func.attr if isinstance(each.func, ast.Attribute) else getattr(each.func, "id", "")
            if name in names:
                found.append(each)
    return found


class FallbackReference(Rule):
    """Reference that is registered as the backend that others fall back to."""

    code = "TW505"
    severity = Severity.ERROR
    why = (
        "An operator without an implementation for a backend falls back to the one called pytorch: with the "
        "reference there, the reference is measured, or compared, with itself."
    )
    advice = 'Register it as "torch".'
    snippet_path = PATH
    VALID = (BENCHMARK,)
    INVALID = (
        BENCHMARK.replace('@register_impl("my_op", "torch")', '@register_impl("my_op", "pytorch")'),
        BENCHMARK.replace('@register_impl("my_op", "torch")\n', "")
        + '\nregister_impl("my_op", backend="pytorch")(reference_my_op)\n',
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if not (module.is_test or module.is_benchmark):
            return
        others = [node for node in module.nodes(ast.Constant) if node.value == "pytorch"]
        for call in module.nodes(ast.Call):
            if module.names.backend(call.func) != "register_impl":
                continue
            for value in (*call.args[1:2], *(each.value for each in call.keywords if each.arg == "backend")):
                if isinstance(value, ast.Constant) and value.value == "pytorch":
                    # Where the lines of the plot use the name as well, both must change
                    fix = Fix('Register it as "torch"', (module.replacement(value, '"torch"'),))
                    said = (
                        "the reference is registered as pytorch, which missing implementations fall back to: "
                        "write torch"
                    )
                    yield self.finding(module, value, said, fix=fix if len(others) == 1 else None)


class UnverifiedTiming(Rule):
    """Benchmark that measures without looking at the result."""

    code = "TW506"
    severity = Severity.WARNING
    why = "A kernel that computes nothing is the fastest: a number says something only of a result that is right."
    advice = (
        "Call torch.testing.assert_close(fn(), ref(), ...) before the timer; it also compiles and tunes outside of it."
    )
    snippet_path = PATH
    VALID = (BENCHMARK,)
    INVALID = (
        BENCHMARK.replace("    torch.testing.assert_close(fn(), ref(), rtol=1e-2, atol=1e-2)\n", ""),
        BENCHMARK.replace("    torch.testing.assert_close(fn(), ref(), rtol=1e-2, atol=1e-2)\n", "").replace(
            "    return total", "    torch.testing.assert_close(fn(), ref(), rtol=1e-2, atol=1e-2)\n    return total"
        ),
        BENCHMARK.replace(
            "    torch.testing.assert_close(fn(), ref()", "    ref = fn\n    torch.testing.assert_close(fn(), ref()"
        ),
        BENCHMARK.replace(
            "    torch.testing.assert_close(fn(), ref()",
            "    expected = fn()\n    torch.testing.assert_close(fn(), expected",
        ),
        BENCHMARK.replace(
            "    torch.testing.assert_close(fn(), ref(), rtol=1e-2, atol=1e-2)\n",
            "    ref = fn\n    check(fn(), ref())\n",
        )
        + "\n\ndef check(actual, expected):\n    torch.testing.assert_close(actual, expected)\n",
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for function in benchmarks(module):
            timed = _calls(function, _TIMERS)
            if not timed:
                continue
            comparisons = [*_calls(function, _ASSERTIONS), *_checks_elsewhere(module, function)]
            checked = [each.lineno for each in comparisons]
            checked += [node.lineno for node in ast.walk(function) if isinstance(node, ast.Assert)]
            first = min(timed, key=lambda each: each.lineno)
            if not any(line < first.lineno for line in checked):
                yield self.finding(
                    module, first, f"{function.name} measures a result that was not compared before: assert first"
                )
            for call in comparisons:
                if len(call.args) > 1 and _said(function, call.args[0]) == _said(function, call.args[1]):
                    said = (
                        f"{ast.unparse(call.args[0])} is compared with itself ({ast.unparse(call.args[1])}): "
                        "compare with the reference"
                    )
                    yield self.finding(module, call, said)


def _said(function: Function, node: ast.expr, depth: int = 8) -> str:
    """An expression as text, with names of the function that are assigned once replaced by what they stand for."""
    if isinstance(node, ast.Name) and depth:
        given = [
            each.value
            for each in ast.walk(function)
            if isinstance(each, ast.Assign)
            and any(isinstance(name, ast.Name) and name.id == node.id for name in each.targets)
        ]
        if given and isinstance(given[-1], ast.Name | ast.Call):
            return _said(function, given[-1], depth - 1)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args and not node.keywords:
        return f"{_said(function, node.func, depth)}()"
    return ast.unparse(node)


def _checks_elsewhere(module: Module, function: Function) -> Iterator[ast.Call]:
    """Calls of functions of the module that assert."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called = module.functions.get(node.func.id)
            if called is not None and (
                _calls(called, _ASSERTIONS) or any(isinstance(each, ast.Assert) for each in ast.walk(called))
            ):
                yield node


class IgnoredBackend(Rule):
    """Benchmark that measures one backend under all names."""

    code = "TW507"
    severity = Severity.ERROR
    why = (
        "Every line of the plot then shows the same backend, and the operator seems as fast as what it is "
        "compared with."
    )
    advice = "Call the operator with backend=backend."
    snippet_path = PATH
    VALID = (BENCHMARK,)
    INVALID = (BENCHMARK.replace(", backend=backend)", ")"),)

    def check(self, module: Module) -> Iterator[Finding]:
        lines = {
            keyword.value.value
            for call in module.nodes(ast.Call)
            for keyword in call.keywords
            if keyword.arg == "line_arg" and isinstance(keyword.value, ast.Constant)
        }
        for function in benchmarks(module):
            for argument in function.args.args:
                used = any(isinstance(node, ast.Name) and node.id == argument.arg for node in ast.walk(function))
                if argument.arg in lines and not used:
                    yield self.finding(
                        module, argument, f"{function.name} takes {argument.arg} and never uses it: pass it on"
                    )


class NoEntryPoint(Rule):
    """Benchmark that does nothing when it is run."""

    code = "TW509"
    severity = Severity.WARNING
    why = (
        "Benchmarks are run as scripts: without an entry point the file is imported, prints nothing and counts as done."
    )
    advice = 'End the file with `if __name__ == "__main__": bench_my_op.run(print_data=True)`.'
    snippet_path = PATH
    VALID = (BENCHMARK,)
    INVALID = (BENCHMARK[: BENCHMARK.index("\n\nif __name__")],)

    def check(self, module: Module) -> Iterator[Finding]:
        found = list(benchmarks(module))
        if found and not any("__main__" in ast.unparse(node.test) for node in module.nodes(ast.If)):
            runs = "".join(f"\n    {each.name}.run(print_data=True)" for each in found)
            end = len(module.lines)
            text = module.lines[-1]
            start = "\n\n\n" if text else "\n\n"
            edit = module.insertion(end, len(text) + 1, f'{start}if __name__ == "__main__":{runs}\n')
            fix = Fix("Run the benchmark", (edit,))
            yield self.finding(
                module, found[0], f"nothing runs {found[0].name}: end the file with a call of its run", fix=fix
            )
