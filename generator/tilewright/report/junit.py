"""Results as JUnit XML, which continuous integration shows."""

from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from xml.etree.ElementTree import SubElement

from tilewright.model.kernel import Compilation
from tilewright.model.outcome import StepOutcome
from tilewright.model.outcome import Verdict


def verify(outcomes: Mapping[str, Sequence[StepOutcome]]) -> Element:
    """A suite for each operator, a case for each step."""
    root = Element("testsuites", name="tilewright verify")
    for name, steps in outcomes.items():
        suite = SubElement(root, "testsuite", name=name)
        for outcome in steps:
            case = _case(suite, name, outcome.step, outcome.seconds)
            if outcome.verdict is Verdict.FAILED:
                _failure(case, outcome.detail, outcome.data.get("problems", ()))
            elif outcome.verdict is not Verdict.OK:
                SubElement(case, "skipped", message=f"{outcome.verdict}: {outcome.detail}")
    return _counted(root)


def compilation(result: Compilation) -> Element:
    """One suite, a case for each compiled kernel."""
    root = Element("testsuites", name="tilewright compile")
    suite = SubElement(root, "testsuite", name=result.op)
    for kernel in result.kernels:
        name = f"{kernel.kernel}[{kernel.arch}-{kernel.dtype}-{kernel.signature}]"
        case = _case(suite, result.op, name, kernel.seconds)
        if kernel.error:
            _failure(case, kernel.error)
    for failure in result.failures:
        case = _case(suite, result.op, f"capture[{failure.arch}-{failure.dtype}]")
        if failure in result.refused:
            SubElement(case, "skipped", message=failure.error)
        else:
            _failure(case, failure.error)
    for kernel_name in result.unreached:
        _failure(_case(suite, result.op, f"{kernel_name}[reached]"), "no shape of the tests launches it")
    return _counted(root)


def write(root: Element, path: Path) -> None:
    """Write the document, making the folder that it goes into."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _case(suite: Element, operator: str, name: str, seconds: float = 0.0) -> Element:
    return SubElement(suite, "testcase", classname=operator, name=name, time=f"{seconds:.3f}")


def _failure(case: Element, message: str, lines: Sequence[str] = ()) -> None:
    SubElement(case, "failure", message=message).text = "\n".join(lines)


def _counted(root: Element) -> Element:
    """The numbers that readers of the format expect on every suite."""
    for suite in root:
        suite.set("tests", str(len(suite)))
        suite.set("failures", str(len(suite.findall("testcase/failure"))))
        suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
        suite.set("time", f"{sum(float(case.get('time', 0)) for case in suite):.3f}")
    return root
