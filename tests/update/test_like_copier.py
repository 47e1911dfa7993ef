"""The outcome is that of `copier update`, byte for byte, wherever that has one."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck
from hypothesis import Phase
from hypothesis import given
from hypothesis import settings

from tests.support.releases import commit
from tests.support.releases import contents
from tests.support.releases import make_host
from tests.support.tiny_template import write_release
from tests.update.edits import Triple
from tests.update.edits import triples
from tilewright.config import find_host
from tilewright.update import carry_out
from tilewright.update import plan_update

FOLDER = "my_ops/some_op"
# A failing example names its files; to shrink it would take minutes.
QUICKLY = settings(
    deadline=None, suppress_health_check=list(HealthCheck), database=None, phases=(Phase.explicit, Phase.generate)
)


def compare(files: list[Triple]) -> int:
    """Update one operator both ways; returns in how many files copier found no conflict."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kept = {f"file_{number}.py": triple for number, triple in enumerate(files)}
        source = write_release(folder / "template", "1.0.0", {path: each[0] for path, each in kept.items()})
        make_host(folder / "ours", source, {"op": "some_op"})
        for path, (_, owner, _) in kept.items():
            target = folder / "ours" / FOLDER / path
            target.write_bytes(owner) if owner is not None else target.unlink()
        (folder / "ours" / "unrelated.txt").write_text("so that there is something to commit")
        commit(folder / "ours")
        shutil.copytree(folder / "ours", folder / "theirs")
        write_release(
            folder / "template", "2.0.0", {path: each[2] for path, each in kept.items() if each[2] is not None}
        )
        carry_out(plan_update(find_host(folder / "ours"), source, ["some_op"]))
        subprocess.run(
            [sys.executable, "-m", "copier", "update", "-q", "--defaults", "-a", ".tilewright/ops/some_op.yml"],
            cwd=folder / "theirs",
            check=True,
            capture_output=True,
        )
        return equal(contents(folder / "ours"), contents(folder / "theirs"), kept)


def equal(ours: dict[str, bytes], theirs: dict[str, bytes], files: dict[str, Triple]) -> int:
    compared = 0
    for path, (base, owner, template) in files.items():
        place = f"{FOLDER}/{path}"
        if b"<<<<<<< before updating" in theirs.get(place, b""):
            continue
        if template is None and owner not in (None, base):
            continue  # copier removes the file with the edits; here it stays and is a conflict
        compared += 1
        assert ours.get(place) == theirs.get(place), f"{base!r} {owner!r} {template!r}"
    record = ".tilewright/ops/some_op.yml"
    assert ours[record] == theirs[record]
    return compared


@settings(QUICKLY, max_examples=1, derandomize=True)
@given(triples())
def test_a_few_combinations_of_edits_and_changes(files):
    compare(files)


@pytest.mark.slow
def test_many_combinations_of_edits_and_changes():
    compared = 0

    @settings(QUICKLY, max_examples=60)
    @given(triples())
    def many(files):
        nonlocal compared
        compared += compare(files)

    many()
    assert compared >= 200
