"""On code that nobody here wrote, every finding was looked at, and nearly all are true."""

import importlib.metadata
import importlib.util
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilewright.rules.engine import Report
from tilewright.rules.engine import check_files
from tilewright.rules.finding import Severity

VERDICTS = Path(__file__).with_name("tilegym")
RELEASE = "1.5.1"
ROW = re.compile(
    r"^\| (?P<code>TW\d{3}) \| `?(?P<place>[\w/]+\.py:\d+)`? \|.*\| (?P<verdict>true|false)(?:, [^|]+)? \|",
    re.MULTILINE,
)
LEAST = {Severity.ERROR: 0.95, Severity.WARNING: 0.80}
KNOWN = {  # defects of the release that were known before there were rules
    ("TW101", "ops/cutile/gemma_attention_decode.py"),  # the attention scale is swallowed
    ("TW103", "ops/cutile/fp8_quantization_matmul.py"),  # another order of a quantized matmul
    ("TW103", "ops/cutile/rope.py"),
    ("TW102", "ops/cutile/layer_norm_legacy.py"),
    ("TW106", "ops/cutile/silu_and_mul.py"),
    ("TW106", "ops/cutile/linear_gluact_linear.py"),
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def package() -> Path:
    spec = importlib.util.find_spec("tilegym")
    if spec is None or importlib.metadata.version("tilegym") != RELEASE:
        pytest.skip(f"tilegym {RELEASE} is not installed: the verdicts are about its lines")
    return Path(str(spec.origin)).parent


@pytest.fixture(scope="module")
def report(package: Path) -> Report:
    return check_files(sorted(package.rglob("*.py")))


def verdicts() -> Iterator[tuple[tuple[str, str], str]]:
    for page in sorted(VERDICTS.glob("*.md")):
        for row in ROW.finditer(page.read_text(encoding="utf-8")):
            yield (row["code"], row["place"]), row["verdict"]


def places(report: Report, package: Path, *severities: Severity) -> Counter[tuple[str, str]]:
    return Counter(
        (finding.code, f"{finding.path.relative_to(package).as_posix()}:{finding.line}")
        for finding in report.findings
        if finding.severity in severities
    )


def test_every_error_and_warning_was_looked_at(report: Report, package: Path) -> None:
    assert places(report, package, Severity.ERROR, Severity.WARNING).keys() - dict(verdicts()).keys() == set()


@pytest.mark.parametrize("severity", LEAST)
def test_findings_are_true(report: Report, package: Path, severity: Severity) -> None:
    judged = dict(verdicts())
    found = places(report, package, severity)
    true = sum(count for place, count in found.items() if judged.get(place) == "true")
    assert true / found.total() >= LEAST[severity]


def test_known_defects_are_found(report: Report, package: Path) -> None:
    found = {(code, place.rpartition(":")[0]) for code, place in places(report, package, *Severity)}
    assert found >= KNOWN
