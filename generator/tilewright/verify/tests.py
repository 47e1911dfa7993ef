"""Step 4: tests compare the operator with PyTorch, and enough of them run."""

import ast
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from tilewright.cutile.toolchain import INSTALL
from tilewright.cutile.toolchain import is_installed
from tilewright.explain.failures import TITLE
from tilewright.model.operator import Operator
from tilewright.model.outcome import StepOutcome
from tilewright.verify.advice import with_advice
from tilewright.verify.child import last_line
from tilewright.verify.child import run_python
from tilewright.verify.outcomes import failed
from tilewright.verify.outcomes import ok
from tilewright.verify.outcomes import skipped
from tilewright.verify.reading import functions
from tilewright.verify.reading import imported_modules
from tilewright.verify.reading import parse
from tilewright.verify.session import Session

_CONTRACT = ("_backends", "_dtypes", "_aligned", "_ragged", "inputs", "reference")
_LIMIT = 1800  # seconds


def problems(operator: Operator) -> Iterator[str]:
    """What is wrong with them, as far as the file shows."""
    tree = parse(operator, operator.test)
    names = [function.name for function in functions(tree) if function.name.startswith("test")]
    if not any(name.startswith("test_op") for name in names):
        yield f"{operator.test} has no test named test_op...: continuous integration runs no others"
    for name in names:
        if not name.startswith(("test_op", "test_perf")):
            yield f"{operator.test} continuous integration never runs {name}: call it test_op_..."
    yield from backend_imports(operator, tree, str(operator.test))
    if operator.template_version:
        yield from _contract(operator, tree)


def backend_imports(operator: Operator, tree: ast.Module, file: str) -> Iterator[str]:
    """An import of the backend's module hides that the operator is not registered."""
    for module in imported_modules(tree):
        if "cutile" in module.split("."):
            public = operator.host.operators_module
            yield f"{file} imports {module.strip('.')}: import {operator.function} from {public} instead"


def _contract(operator: Operator, tree: ast.Module) -> Iterator[str]:
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name.startswith("Test_")]
    if not classes:
        yield f"{operator.test} has no class Test_...: it holds the cases that the operator is compiled for"
        return
    defined = {name for statement in classes[0].body for name in _names(statement)}
    missing = [name for name in _CONTRACT if name not in defined]
    if missing:
        yield f"{operator.test} {classes[0].name} lacks {', '.join(missing)}: the operator is compiled for these cases"


def _names(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.FunctionDef(name=name):
            yield name
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


def run(operator: Operator, session: Session) -> StepOutcome:
    """Run them: on the GPU if there is one, else in the interpreter."""
    place, options = "", list[str]()
    if not session.devices.gpus:
        missing = [module for module in ("torch", "cuda.tile") if not is_installed(module)]
        if missing:
            reason = f"{session.devices.why_none}, and no interpreter: {' and '.join(missing)} not installed: {INSTALL}"
            return skipped("tests", reason, missing="compiler")
        place, options = " in the interpreter", _interpreted(session)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "junit.xml")
        # The plugin is named for environments in which none is loaded of itself.
        command = ["-m", "pytest", "-q", "-p", "tilewright", *options, str(operator.test), f"--junit-xml={report}"]
        done = run_python(operator, command, limit=_LIMIT)
        if not report.is_file():
            return failed("tests", [f"pytest did not run: {last_line(done)}"])
        counts = read_junit(report)
    device = "interpreter" if place else "gpu"
    data = {"device": device, "passed": counts.passed, "failed": counts.failed, "skipped": counts.skipped}
    if counts.failed or not counts.passed:
        why = counts.first_failure or f"no test ran, {counts.skipped} skipped: {counts.first_skip}"
        found = failed("tests", [f"{counts.failed} of {counts.total} tests{place}: {why}"], **data)
        return with_advice(found, counts.first_text or why, counts.comparison)
    skips = f", {counts.skipped} skipped" if counts.skipped else ""
    return ok("tests", f"{counts.passed} passed{place}{skips}", **data)


def _interpreted(session: Session) -> list[str]:
    """Options for pytest."""
    return ["--tile-device=interpret", f"--tile-arch={session.interpreted_arch}"]


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What came of the tests of one run."""

    passed: int
    failed: int
    skipped: int
    first_failure: str = ""
    first_skip: str = ""
    first_text: str = ""  # all that the first failure said
    comparison: str = ""  # summary of the tensors that differ there

    @property
    def total(self) -> int:
        """All tests, run or not."""
        return self.passed + self.failed + self.skipped


def read_junit(report: Path) -> Counts:
    """Counts of a JUnit file; errors while collecting count as failures."""
    failures: list[str] = []
    skips: list[str] = []
    total, text, comparison = 0, "", ""
    for case in ElementTree.parse(report).iter("testcase"):
        total += 1
        for child in case:
            line = f"{case.get('name')}: {(child.get('message') or '').split(chr(10))[0]}"
            if child.tag in ("failure", "error"):
                if not failures:
                    text, comparison = child.text or "", _comparison(case)
                failures.append(line)
            elif child.tag == "skipped":
                skips.append(child.get("message") or "")
    return Counts(
        passed=total - len(failures) - len(skips),
        failed=len(failures),
        skipped=len(skips),
        first_failure=failures[0] if failures else "",
        first_skip=skips[0] if skips else "",
        first_text=text,
        comparison=comparison,
    )


def _comparison(case: ElementTree.Element) -> str:
    """What the plugin of pytest says of tensors that are not close."""
    found = (each.get("value") for each in case.iter("property") if each.get("name") == TITLE)
    return next(filter(None, found), "")
