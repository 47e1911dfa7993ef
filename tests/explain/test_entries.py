"""Every known error is recognised by what it is about, and its right example is right."""

import ast
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support.snippets import arguments
from tests.support.snippets import load
from tilewright.explain.entry import Entry
from tilewright.explain.explanation import explain
from tilewright.explain.matching import matches
from tilewright.explain.registry import TOPICS
from tilewright.explain.registry import all_entries
from tilewright.rules.registry import all_rules

ct = pytest.importorskip("cuda.tile")

SUPPORT = Path(__file__).parents[1] / "support"
HEAD = "import math\n\nimport cuda.tile as ct\n\n"
ENTRIES = tuple(all_entries().values())
KERNELS = tuple(entry for entry in ENTRIES if re.search(r"@ct\.kernel\s+def", entry.wrong))
SAMPLES = [(entry, sample) for entry in ENTRIES for sample in entry.samples]
SEEDS = {
    "TypeError: missing Constant annotation": "size-not-constant",
    "ValueError: tile dimension not power of 2": "size-not-power-of-two",
    "IndexError: index 5 is out of bounds for a tile": "illegal-access",
    "CUDA error: an illegal memory access was encountered": "illegal-access",
    "CUDA error: unknown error": "cuda-error",
    "Validation FAIL: max diff = 0.5": "not-close",
}


def by_name(entries: tuple[Entry, ...]) -> list:
    return [pytest.param(entry, id=entry.name) for entry in entries]


def compile_kernel(folder: Path, snippet: str) -> None:
    from cuda.tile.compilation import export_kernel

    from tilewright.cutile.signature import signature

    text = HEAD + dedent(snippet)
    name, values = arguments(text)
    kernel = getattr(load(folder, text), name)
    signatures = [signature(kernel, list(values.values()), aligned=True)]
    export_kernel(kernel, signatures, io.BytesIO(), gpu_code="sm_100", output_format="cubin")


@pytest.mark.parametrize("entry", by_name(KERNELS))
def test_the_compiler_says_of_a_wrong_kernel_what_is_recognised(entry: Entry, tmp_path: Path) -> None:
    with pytest.raises(ct.TileError) as caught:
        compile_kernel(tmp_path, entry.wrong)
    text = f"{type(caught.value).__name__}: {caught.value}"
    assert [match.entry.name for match in matches(text)] == [entry.name]


@pytest.mark.parametrize("entry", by_name(KERNELS))
def test_the_right_kernel_compiles(entry: Entry, tmp_path: Path) -> None:
    compile_kernel(tmp_path, entry.right)


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler to build the stand-in of the driver")
def test_refused_launches_are_recognised(tmp_path: Path) -> None:
    library = tmp_path / "libcuda.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, SUPPORT / "stub_libcuda.c"], check=True)
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}
    command = [sys.executable, SUPPORT / "refused_launches.py"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    said = json.loads(done.stdout)
    recognised = {
        name: {matches(text)[0].entry.name for text in texts if matches(text)} for name, texts in said.items()
    }
    assert recognised == {name: {name} for name in said}, said


@pytest.mark.parametrize(("entry", "sample"), [pytest.param(*each, id=each[0].name) for each in SAMPLES])
def test_samples_are_recognised_as_their_own(entry: Entry, sample: str) -> None:
    assert [match.entry.name for match in matches(sample)] == [entry.name]


def test_every_error_has_a_message_that_is_tried() -> None:
    assert [entry.name for entry in ENTRIES if not entry.samples and entry not in KERNELS] == []


@pytest.mark.parametrize(("text", "name"), SEEDS.items())
def test_common_problems_are_known_by_the_words_that_people_use(text: str, name: str) -> None:
    assert explain(text).errors[0].entry.name == name


def test_names_are_unique_words() -> None:
    names = [entry.name for topic in TOPICS for entry in topic.entries]
    assert len(names) == len(set(names)) == len(ENTRIES)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)


def test_rules_of_an_error_exist() -> None:
    known = {rule.code for rule in all_rules()}
    assert {code for entry in ENTRIES for code in entry.rules} <= known


@pytest.mark.parametrize(
    "entry", by_name(tuple(each for each in ENTRIES if "import" in each.right or "=" in each.right))
)
def test_python_examples_parse(entry: Entry) -> None:
    for snippet in (entry.wrong, entry.right):
        text = dedent(snippet).strip()
        if text.startswith(("@", "with ")) and "\n" not in text:
            text += "\ndef kernel(): ..."
        if not re.match(r"(pip|pytest|nvidia-smi|tilewright|cd) ?", text):
            ast.parse(text)
