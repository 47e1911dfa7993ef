from xml.etree import ElementTree

from tests.support import results
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
