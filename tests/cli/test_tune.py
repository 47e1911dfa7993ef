"""`tilewright tune` finds the tiles and hints of an operator's table."""

import functools
import json
import shutil
from pathlib import Path

import jsonschema
import pytest

from tests.support import tune_child
from tests.support.hosts import scale_add
from tests.tune.conftest import KERNEL
from tests.tune.conftest import TUNE
from tilewright import render
from tilewright import report
from tilewright.render import locate
from tilewright.tune import run
from tilewright.tune.laboratory import Laboratory
from tilewright.verify import device
from tilewright.verify.device import Devices
from tilewright.verify.device import Gpu


@pytest.fixture
def operator(here, tmp_path, monkeypatch):
    """The current folder is a host with an operator of a family that can be tuned; its children are acted out."""
    operator = scale_add(here)
    operator.path(operator.kernel).write_text(KERNEL)
    (here / ".tilewright/ops/scale_add.yml").write_text("op: scale_add\nfamily: made_up\n")
    template = tmp_path / "template"
    shutil.copytree(locate().template, template / "template")
    (template / "template/_partials/made_up").mkdir()
    (template / "template/_partials/made_up/tune.yml").write_text(TUNE)
    monkeypatch.setattr(render, "locate", lambda: render.Source(root=template, recorded=None))
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TIMED", str(tmp_path / "timed"))
    monkeypatch.setenv("COMPILED", str(tmp_path / "compiled"))
    act = functools.partial(Laboratory, command=(tune_child.__file__,))
    monkeypatch.setattr(run.tune, "__defaults__", (act, None, lambda: None))
    return operator


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(device, "find_gpus", lambda: Devices(gpus=(Gpu(name="A GPU", arch="sm_90"),)))


def kernel(operator):
    return operator.path(operator.kernel).read_text()


def test_without_a_gpu(operator, tilewright, monkeypatch):
    monkeypatch.setattr(device, "find_gpus", lambda: Devices(why_none="no GPU"))
    result = tilewright("tune", "scale_add")
    assert result.exit_code == 3
    assert result.stderr.splitlines() == [
        "error: no GPU to tune on",
        "expected an NVIDIA GPU, with a driver, and a PyTorch that was built for it",
        "run this on a machine with one; without one, by what the compiler reports: "
        "tilewright tune scale_add --arch SM_XX",
    ]


def test_an_unknown_operator_is_refused_before_a_gpu_is_looked_for(operator, tilewright, monkeypatch):
    monkeypatch.setattr(device, "driver_version", lambda: None)
    result = tilewright("tune", "scale_ad")
    assert result.exit_code == 2
    assert "has no operator 'scale_ad'" in result.stderr


def test_outside_of_a_repository_no_gpu_is_looked_for(tmp_path, tilewright, monkeypatch):
    monkeypatch.setattr(device, "driver_version", lambda: None)
    monkeypatch.chdir(tmp_path)
    result = tilewright("tune", "scale_add")
    assert result.exit_code == 2
    assert "GPU" not in result.stderr


def test_table_is_written_and_shown(operator, gpu, tilewright):
    result = tilewright("tune", "scale_add", "--dtypes", "f16")
    assert result.exit_code == 0, result.output
    assert "_Config(64, 32)" in kernel(operator)
    row = next(line for line in result.stdout.splitlines() if line.startswith("CONFIGS[2][9][1]"))
    assert " ".join(row.split()).startswith(
        "CONFIGS[2][9][1] sm_90 float16 tile=32 depth=64 tile=64 depth=32 measuring 76.7% "
    )
    assert "tilewright verify scale_add" in result.stderr


@pytest.mark.parametrize("option", ["--dry-run", "--diff"])
def test_nothing_is_written_without_being_asked(operator, gpu, tilewright, option):
    before = kernel(operator)
    result = tilewright("tune", "scale_add", "--dtypes", "f16", option)
    assert result.exit_code == 0, result.output
    assert kernel(operator) == before
    assert ("9: (_Config(16, most=8), _Config(64, 32))" in result.stdout) == (option == "--diff")
    assert ("CONFIGS[2][9][1]" in result.stdout) == (option == "--dry-run")


@pytest.mark.parametrize("options", [[], ["--diff"], ["--arch", "sm_100"]])
def test_document(operator, gpu, tilewright, options):
    result = tilewright("tune", "scale_add", "--dtypes", "f16", "--json", *options)
    document = json.loads(result.stdout)
    schema = json.loads((Path(report.__file__).parent / "schemas/tune.schema.json").read_text())
    jsonschema.validate(document, schema)
    assert (document["gpu"] is None) == ("--arch" in options)
    assert document["written"] == ("--diff" not in options)


def test_other_architecture_needs_no_gpu(operator, tilewright, monkeypatch):
    monkeypatch.setattr(device, "find_gpus", lambda: Devices(why_none="no GPU"))
    result = tilewright("tune", "scale_add", "--dtypes", "f16", "--arch", "sm_100")
    assert result.exit_code == 0, result.output
    assert "the compiler's report" in result.stdout


def test_sizes_of_a_file(operator, gpu, tilewright, here):
    (here / "sizes.txt").write_text("# short\n8\n")
    tilewright("tune", "scale_add", "--dtypes", "f16", "--shapes", "sizes.txt")
    assert "_Config(64, depth=32, most=8)" in kernel(operator)


@pytest.mark.parametrize("text", ["", "# none\n", "4096 by 64\n"])
def test_file_without_sizes(operator, gpu, tilewright, here, text):
    (here / "sizes.txt").write_text(text)
    result = tilewright("tune", "scale_add", "--shapes", "sizes.txt")
    assert result.exit_code == 2
    assert "sizes.txt has no sizes" in result.stderr


def test_family_without_a_table(operator, gpu, tilewright, here):
    (here / ".tilewright/ops/scale_add.yml").write_text("op: scale_add\nfamily: elementwise\n")
    result = tilewright("tune", "scale_add")
    assert result.exit_code == 2
    assert "the family elementwise has no table to tune" in result.stderr


def test_operator_of_nobody_s_template(operator, gpu, tilewright, here):
    (here / ".tilewright/ops/scale_add.yml").unlink()
    result = tilewright("tune", "scale_add")
    assert result.exit_code == 2
    assert "no operator scale_add that tilewright made" in result.stderr
