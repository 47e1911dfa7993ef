"""Several operators are verified at once, and told of in their order."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from tilewright.model.outcome import StepOutcome
from tilewright.model.outcome import Verdict
from tilewright.verify import session as sessions
from tilewright.verify import several
from tilewright.verify.device import Devices
from tilewright.verify.device import Gpu
from tilewright.verify.importing import Registered
from tilewright.verify.session import Session
from tilewright.verify.several import verify_all


@pytest.fixture
def operators(operator):
    return [replace(operator, name=name) for name in ("slow", "quick", "last")]


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    monkeypatch.setattr(sessions, "find_gpus", lambda: Devices(why_none="no GPU"))
    monkeypatch.setattr(sessions, "registered", lambda operators: {})


def takes_a_while(operator, _session):
    time.sleep(0.5 if operator.name == "slow" else 0)
    yield StepOutcome(step=operator.name, verdict=Verdict.OK, data={"process": os.getpid()})


def test_the_outcomes_come_in_the_order_of_the_operators(operators, monkeypatch):
    monkeypatch.setattr(several, "verify", takes_a_while)
    found = [(op.name, *outcomes) for op, outcomes in verify_all(operators, Session(operators, jobs=3))]
    assert [(name, outcome.step) for name, outcome in found] == [(op.name, op.name) for op in operators]


def test_an_operator_need_not_wait_for_another(operators, monkeypatch):
    monkeypatch.setattr(several, "verify", takes_a_while)
    outcomes = {op.name: next(iter(taken)) for op, taken in verify_all(operators, Session(operators, jobs=2))}
    processes = {name: outcome.data["process"] for name, outcome in outcomes.items()}
    assert processes["quick"] == processes["last"] != processes["slow"]
    assert os.getpid() not in processes.values()


def test_the_processes_share_the_cores_and_leave_interrupts_to_the_one_that_started_them(operators, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)

    def say(_operator, _session):
        ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        yield StepOutcome(
            step="stub", verdict=Verdict.OK, data={"threads": os.environ["OMP_NUM_THREADS"], "ignored": ignored}
        )

    monkeypatch.setattr(several, "verify", say)
    outcomes = [next(iter(taken)).data for _, taken in verify_all(operators, Session(operators))]
    assert outcomes == [{"threads": "2", "ignored": True}] * 3


@pytest.mark.parametrize("jobs", [1, 4])
def test_a_gpu_is_for_one_operator_alone_and_each_outcome_is_told_at_once(operators, monkeypatch, jobs):
    gpu = Devices(gpus=(Gpu(name="any", arch="sm_90"),)) if jobs > 1 else Devices(why_none="no GPU")
    monkeypatch.setattr(sessions, "find_gpus", lambda: gpu)
    taken = []

    def steps(operator, _session):
        for step in ("stub", "kernel"):
            taken.append((operator.name, step))
            yield StepOutcome(step=step, verdict=Verdict.OK)

    monkeypatch.setattr(several, "verify", steps)
    _first, outcomes = next(verify_all(operators, Session(operators, jobs=jobs)))
    next(iter(outcomes))
    assert taken == [("slow", "stub")]


def test_what_is_under_way_is_ended_with_the_one_that_asked_for_it(operators, monkeypatch, tmp_path):
    pid = tmp_path / "pid"
    program = f"import os, pathlib, time; pathlib.Path({str(pid)!r}).write_text(str(os.getpid())); time.sleep(600)"
    begun = tmp_path / "last"

    def forever(operator, _session):
        if operator.name == "quick":
            try:
                subprocess.run([sys.executable, "-c", program], check=True)
            finally:
                time.sleep(0.5)  # the pool says it once more meanwhile
                (tmp_path / "ended").touch()
        elif operator.name == "last":
            begun.touch()
            time.sleep(600)
        while not (pid.exists() and pid.read_text()):
            time.sleep(0.01)
        yield StepOutcome(step="stub", verdict=Verdict.OK)

    monkeypatch.setattr(several, "verify", forever)
    found = verify_all(operators, Session(operators, jobs=2))
    next(found)
    while not begun.exists():
        time.sleep(0.01)
    found.close()
    assert (tmp_path / "ended").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_the_package_is_imported_once(operators, monkeypatch):
    asked = []

    def answer(operators):
        asked.append([operator.name for operator in operators])
        return {operator.name: Registered(backends=("cutile",), exported=True) for operator in operators}

    monkeypatch.setattr(sessions, "registered", answer)
    session = Session([*operators, replace(operators[0], name="missing", declared=False)], jobs=2)
    assert {session.registered(operator).backends for operator in operators} == {("cutile",)}
    assert asked == [["slow", "quick", "last"]]


def test_the_processes_are_shared_among_the_operators(operators, monkeypatch):
    asked = []
    monkeypatch.setattr(sessions, "compile_operator", lambda _operator, *, jobs, **_others: asked.append(jobs))
    for count in (1, 2, 3):
        Session(operators[:count], jobs=6).compile(operators[0])
    assert asked == [6, 3, 2]
