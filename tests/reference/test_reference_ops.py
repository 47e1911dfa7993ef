"""The reference operators are what the template makes of their recorded answers, byte for byte."""

from pathlib import Path

import pytest
import yaml

from tilewright.render import Batch

ROOT = Path(__file__).parents[2]
ANSWERS = sorted((ROOT / ".tilewright/ops").glob("*.yml"))
# Files of a host that this repository, being one, has as the template makes them.
HOST_FILES = [
    "reference_ops/__init__.py",
    "reference_ops/backend.py",
    "tests/__init__.py",
    "tests/common.py",
    "tests/conftest.py",
    "tests/ops/__init__.py",
]
# Renders what copier renders (tests/render/test_batch.py), and keeps what it has compiled.
BATCH = Batch(ROOT / "template")


def test_there_are_reference_operators_of_every_family() -> None:
    families = {yaml.safe_load(path.read_text())["family"] for path in ANSWERS}
    assert families == {path.parent.name for path in (ROOT / "template/_partials").glob("*/family.yml")}


@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: path.stem)
def test_an_operator_equals_its_render(path: Path) -> None:
    recorded = yaml.safe_load(path.read_text())
    assert recorded["_src_path"] == "."
    answers = {key: value for key, value in recorded.items() if not key.startswith("_")}
    rendering = BATCH.render(answers, Path("/nowhere"), source="", recorded=False)
    rendered = {file.path.as_posix(): file.content for file in rendering.files}
    op = recorded["op"]
    own = [
        f"reference_ops/{op}/__init__.py",
        f"reference_ops/{op}/interface.py",
        f"reference_ops/{op}/cutile.py",
        f"tests/ops/test_{op}.py",
        f"tests/benchmark/bench_{op}.py",
    ]
    for name in own + HOST_FILES:
        assert (ROOT / name).read_bytes() == rendered[name], f"{name}: run make reference"
