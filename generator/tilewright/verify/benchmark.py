"""Step 5: the benchmark checks before it times, and its table is one that reports can read."""

import ast
from collections.abc import Iterator

from tilewright.model.operator import Operator
from tilewright.model.outcome import StepOutcome
from tilewright.verify.child import last_line
from tilewright.verify.child import run_python
from tilewright.verify.outcomes import failed
from tilewright.verify.outcomes import ok
from tilewright.verify.outcomes import skipped_without_gpu
from tilewright.verify.reading import called
from tilewright.verify.reading import parse
from tilewright.verify.session import Session
from tilewright.verify.tests import backend_imports

_UNITS = ("-GBps", "-TFLOPS")
_LIMIT = 1800  # seconds


def problems(operator: Operator) -> Iterator[str]:
    """What is wrong with it, as far as the file shows."""
    file = operator.benchmark
    tree = parse(operator, file)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {called(node) for node in ast.walk(tree) if isinstance(node, ast.expr)}
    if "perf_report" not in names:
        yield f"{file} does not use triton.testing.perf_report: reports read its tables"
    if not names & {"assert_close", "assertCorrectness", "allclose"}:
        yield f"{file} times without checking: call torch.testing.assert_close before do_bench"
    for call in calls:
        arguments = {keyword.arg: keyword.value for keyword in call.keywords}
        plot_name = arguments.get("plot_name")
        if plot_name is not None and not _end(plot_name).endswith(_UNITS):
            yield f"{file}:{plot_name.lineno} plot_name must end in {' or '.join(_UNITS)}: reports read no other table"
        for name in ("x_names", "line_names"):
            for text in _strings(arguments.get(name)):
                if " " in text:
                    yield f"{file}:{call.lineno} {name} has {text!r}: reports split the header at spaces"
    if not any(isinstance(node, ast.If) and "__main__" in ast.unparse(node.test) for node in tree.body):
        yield f'{file} does nothing when it is run: add `if __name__ == "__main__":`'
    yield from backend_imports(operator, tree, str(file))


def _end(node: ast.expr) -> str:
    """Last constant part of a text, or nothing where it is computed."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=[*_, last]):
            return _end(last)
        case ast.BinOp(op=ast.Add(), right=right):
            return _end(right)
    return ""


def _strings(node: ast.expr | None) -> list[str]:
    if node is None:
        return []
    return [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def run(operator: Operator, session: Session) -> StepOutcome:
    """Run it where there is a GPU."""
    if not session.devices.gpus:
        return skipped_without_gpu("benchmark", session.devices)
    done = run_python(operator, [str(operator.benchmark)], limit=_LIMIT)
    tables = [line for line in done.stdout.splitlines() if line.endswith(tuple(f"{unit}:" for unit in _UNITS))]
    if done.returncode or not tables:
        return failed(
            "benchmark", [f"python {operator.benchmark}: {last_line(done) if done.returncode else 'printed no table'}"]
        )
    return ok("benchmark", f"{len(tables)} tables", output=done.stdout)
