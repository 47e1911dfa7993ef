"""What this repository ships and renders gives no finding of severity error or warning."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tilewright.catalogue.families import read_families
from tilewright.model.host import Layout
from tilewright.render import locate
from tilewright.render import render
from tilewright.rules.engine import Report
from tilewright.rules.engine import check_files
from tilewright.rules.engine import check_sources
from tilewright.rules.finding import Severity

ROOT = Path(__file__).parents[2]


def bad(report: Report) -> list[str]:
    return [
        f"{finding.path}:{finding.line}: {finding.code} {finding.message}"
        for finding in report.findings
        if finding.severity is not Severity.INFO
    ]


def answers() -> Iterator[dict[str, object]]:
    """Every variant of every family, with a gradient where there is one."""
    for family in read_families(locate().partials):
        for variant in [each.name for each in family.variants] or [""]:
            for backward in {False, family.backward}:
                chosen = {"family": family.name, "backward": backward} | ({"variant": variant} if variant else {})
                yield {"op": f"{family.name}_{variant or 'plain'}_{backward}".lower(), **chosen}
    yield {"op": "formula", "family": "elementwise", "formula": "alpha * x + exp(-y ** 2), alpha=1.0", "backward": True}


def test_the_reference_operators() -> None:
    folders = [ROOT / "reference_ops", ROOT / "tests/ops", ROOT / "tests/benchmark"]
    assert bad(check_files(path for folder in folders for path in folder.rglob("*.py"))) == []


def rendered(layout: Layout, each: dict[str, object], folder: Path) -> dict[Path, str]:
    rendering = render(locate(), {**each, "layout": layout}, folder)
    return {Path(file.path): file.content.decode() for file in rendering.files if file.path.suffix == ".py"}


@pytest.mark.parametrize("layout", ["tilegym", "single_file"])
def test_other_layouts(layout: Layout, tmp_path: Path) -> None:
    sources = rendered(layout, {"op": "my_op", "family": "softmax", "backward": True}, tmp_path)
    assert sources
    assert bad(check_sources(sources)) == []


SHIFTED = "s = sigmoid(alpha * x); grad * s * (1 + alpha * x * (1 - s))"


@pytest.mark.parametrize(
    "each",
    [
        {"family": "attention", "dtypes": ["bfloat16"]},
        {"family": "gemv", "dtypes": ["float64"]},
        {
            "family": "elementwise",
            "formula": "shift + x * sigmoid(alpha * x); shift = 0.5; alpha = 2.0",
            "grad_formula": SHIFTED,
        },
    ],
    ids=["one dtype", "no half precision", "scalar without a part in the gradient"],
)
def test_answers_of_which_nothing_is_said(each: dict[str, object], tmp_path: Path) -> None:
    assert check_sources(rendered("standalone", {"op": "my_op", **each}, tmp_path)).findings == ()


@pytest.mark.slow
def test_every_family_with_one_dtype(tmp_path: Path) -> None:
    sources: dict[Path, str] = {}
    for family in read_families(locate().partials):
        for dtype in family.default_dtypes:
            each = {"op": f"{family.name}_{dtype}", "family": family.name, "dtypes": [dtype]}
            sources |= rendered("standalone", each, tmp_path)
    assert bad(check_sources(sources)) == []


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["standalone", "tilegym", "single_file"])
def test_every_rendered_operator(layout: Layout, tmp_path: Path) -> None:
    sources: dict[Path, str] = {}
    for each in answers():
        sources |= rendered(layout, each, tmp_path)
    assert len(sources) > 20
    assert bad(check_sources(sources)) == []
