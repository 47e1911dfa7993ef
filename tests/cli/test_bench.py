"""`tilewright bench` times operators beside their peers."""

import functools
import json
import os
import threading
from pathlib import Path

import jsonschema
import pytest

from tests.support import bench_child
from tests.support.hosts import scale_add
from tilewright import report
from tilewright.bench import run
from tilewright.verify import device
from tilewright.verify.device import Devices
from tilewright.verify.device import Gpu


@pytest.fixture
def operator(here):
    """The current folder is a host with one operator."""
    return scale_add(here)


@pytest.fixture
def gpu(monkeypatch):
    """There is a GPU, and what measures on it is acted out; of the operator it says what it says of `fine`."""
    monkeypatch.setattr(device, "find_gpus", lambda: Devices(gpus=(Gpu(name="A GPU", arch="sm_90"),)))
    act = functools.partial(run.Bench, command=(bench_child.__file__,))
    monkeypatch.setattr(run, "Bench", act)


def test_without_a_gpu(operator, tilewright, monkeypatch):
    monkeypatch.setattr(device, "find_gpus", lambda: Devices(why_none="no GPU"))
    result = tilewright("bench", "scale_add")
    assert result.exit_code == 3
    assert result.stderr.splitlines() == [
        "error: no GPU to time operators on",
        "expected an NVIDIA GPU, with a driver, and a PyTorch that was built for it",
        "run this on a machine with one; what is missing here: tilewright doctor",
    ]


def test_table_and_file(operator, gpu, tilewright, here):
    result = tilewright("bench", "scale_add", "--json", "found.json")
    assert result.exit_code == 0, result.output
    assert [line.split() for line in result.stdout.splitlines()] == [
        *(["scale_add", "dtype", "unit", "limit", "cutile", "of", "limit", "of", "best", "peer", "torch"],),
        ["2x3", "float16", "GB/s", "8", "4", "±22.5%", "0.50", "2.00", "2", "±22.5%"],
    ]
    document = json.loads((here / "found.json").read_text())
    jsonschema.validate(document, _schema())
    assert document["surroundings"]["gpu"] == "A GPU"
    assert document["surroundings"]["versions"]["torch"]


def test_a_run_that_is_ended_keeps_what_it_has(operator, gpu, tilewright, here, monkeypatch):
    whole = run.Bench.func.run

    def ended(self, operators):
        yield from whole(self, operators)
        raise KeyboardInterrupt

    monkeypatch.setattr(run.Bench.func, "run", ended)
    assert tilewright("bench", "scale_add", "--json", "found.json").exit_code != 0
    document = json.loads((here / "found.json").read_text())
    jsonschema.validate(document, _schema())
    assert [measured["name"] for measured in document["operators"]] == ["scale_add"]
    assert not list(here.glob("*.part"))


def test_a_pipe_takes_the_document_and_stays(operator, gpu, tilewright, here):
    pipe = here / "pipe"
    os.mkfifo(pipe)
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()), daemon=True)
    reader.start()
    assert tilewright("bench", "scale_add", "--json", "pipe").exit_code == 0
    reader.join(10)
    assert pipe.is_fifo()
    jsonschema.validate(json.loads(found[0]), _schema())


def test_a_link_leads_to_the_file_that_is_written(operator, gpu, tilewright, here):
    (here / "link.json").symlink_to("found.json")
    assert tilewright("bench", "scale_add", "--json", "link.json").exit_code == 0
    assert (here / "link.json").is_symlink()
    jsonschema.validate(json.loads((here / "found.json").read_text()), _schema())


def test_gradients(operator, gpu, tilewright, here):
    result = tilewright("bench", "scale_add", "--backward", "--json", "found.json")
    assert result.stdout.startswith("scale_add backward ")
    (measured,) = json.loads((here / "found.json").read_text())["operators"]
    assert [problem["backward"] for problem in measured["problems"]] == [True]


def test_gradients_of_all_operators_that_have_some(operator, gpu, tilewright):
    assert tilewright("bench", "--backward").exit_code == 5
    benchmark = operator.path(operator.benchmark)
    benchmark.write_text(f"{benchmark.read_text()}\n\ndef gradients(fn, kwargs): ...\n")
    assert tilewright("bench", "--backward").stdout.startswith("scale_add backward ")


def test_several_processes_prepare(operator, gpu, tilewright, here):
    assert tilewright("bench", "--jobs", "2").exit_code == 0
    assert (here / "prepared-scale_add").exists()


def test_document_on_stdout(operator, gpu, tilewright):
    result = tilewright("bench", "--json", "-")
    assert [each["name"] for each in json.loads(result.stdout)["operators"]] == ["scale_add"]


def test_folder_of_the_file_is_looked_for_before_hours_of_measuring(operator, gpu, tilewright):
    result = tilewright("bench", "--json", "nowhere/found.json")
    assert result.exit_code == 2
    assert "nowhere is not a folder" in result.stderr


def test_operator_that_is_wrong_is_a_finding(operator, gpu, tilewright, monkeypatch):
    monkeypatch.setenv("ACT", "wrong")
    result = tilewright("bench", "scale_add")
    assert result.exit_code == 1
    assert "cutile wrong (everywhere): not close" in result.stdout


def test_nothing_to_time(here, gpu, tilewright):
    (here / ".tilewright").mkdir()
    (here / ".tilewright/host.yml").write_text("layout: standalone\npackage: my_ops\n")
    assert tilewright("bench").exit_code == 5


def _schema():
    return json.loads((Path(report.__file__).parent / "schemas/bench.schema.json").read_text())
