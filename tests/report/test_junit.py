from dataclasses import replace
from xml.etree import ElementTree

from tests.support import results
from tilewright.model.kernel import CaptureFailure
from tilewright.report import junit


def written(root, path):
    junit.write(root, path)
    return ElementTree.parse(path).getroot()


def test_steps_are_cases(tmp_path):
    root = written(junit.verify({"gelu": results.STEPS}), tmp_path / "new folder" / "verify.xml")
    (suite,) = root
    assert suite.attrib == {"name": "gelu", "tests": "6", "failures": "1", "skipped": "3", "time": "1.500"}
    assert [case.get("name") for case in suite] == ["stub", "kernel", "registration", "tests", "benchmark", "verify"]
    (failure,) = suite.iter("failure")
    assert (failure.get("message"), failure.text) == ("a: mend it", "a: mend it\nb")
    assert [skipped.get("message") for skipped in suite.iter("skipped")] == [
        "skipped: no GPU",
        "n/a: no baseline exists",
        "skipped: no compiler",
    ]


def test_compilations_are_cases(tmp_path):
    (suite,) = written(junit.compilation(results.COMPILATION), tmp_path / "compile.xml")
    assert (suite.get("tests"), suite.get("failures")) == ("4", "3")
    assert [case.get("name") for case in suite if case.find("failure") is not None] == [
        "_gelu_kernel[sm_90-float16-unaligned]",
        "capture[sm_80-float32]",
        "_gelu_long_kernel[reached]",
    ]


def test_an_architecture_that_is_refused_is_skipped(tmp_path):
    refusal = CaptureFailure(arch="sm_80", dtype="float16", error="no float8", refused=True)
    compilation = replace(results.COMPILATION, failures=(refusal,))
    (suite,) = written(junit.compilation(compilation), tmp_path / "compile.xml")
    (case,) = (case for case in suite if case.get("name") == "capture[sm_80-float16]")
    assert case.find("skipped").get("message") == "no float8"
    assert case.find("failure") is None
