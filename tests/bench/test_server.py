"""The process that measures, with the interpreter in place of a GPU and a clock that is told what to say."""

import sys
from types import SimpleNamespace

import pytest
import torch

from reference_ops import backend
from tests.benchmark import bench_matmul
from tests.benchmark import bench_rms_norm
from tests.benchmark import peers
from tilewright import interpret
from tilewright.bench import server
from tilewright.bench import workload
from tilewright.bench.clock import Spread

OPERATOR = {
    "name": "rms_norm",
    "function": "rms_norm",
    "package": "reference_ops",
    "backend": "reference_ops.backend",
    "benchmark": "tests.benchmark.bench_rms_norm",
    "peers": peers.__name__,
}
SPREAD = Spread(median=2.0, low=1.0, high=3.0)


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(server.clock, "_LARGEST_COPY", 4096)
    monkeypatch.setattr(bench_rms_norm, "SIZES", [(3, 40), (2, 5)])
    monkeypatch.setattr(bench_rms_norm, "DTYPES", [torch.float16, torch.float32])
    registered = dict(backend._REGISTRY["rms_norm"])
    workload._compiled.cache_clear()  # one test has its own torch.compile
    yield
    backend._REGISTRY["rms_norm"].clear()
    backend._REGISTRY["rms_norm"].update(registered)


@pytest.fixture
def serve():
    """Events of a request; `timed` are the results of the calls that were timed."""

    def run(against=("torch",), dtypes=("float16",), done=(), backward=False, **changed):
        events, timed = [], []

        def clock(call):
            timed.append(call())
            return SPREAD

        with interpret.enabled():
            server.serve(
                lambda event, **data: events.append(SimpleNamespace(event=event, **data)),
                operators=[{**OPERATOR, "done": list(done), **changed}],
                against=against and list(against),
                dtypes=list(dtypes),
                backward=backward,
                measure=clock,
            )
        return SimpleNamespace(events=events, timed=timed, measured=[e for e in events if e.event == "measured"])

    return run


def register(name):
    return backend.register_impl("rms_norm", name)


def test_every_problem_and_contestant(serve):
    found = serve()
    assert [(e.index, e.contestant, e.verdict) for e in found.measured] == [
        (0, "cutile", "ok"),
        (0, "torch", "ok"),
        (1, "cutile", "ok"),
        (1, "torch", "ok"),
    ]
    problems = [e for e in found.events if e.event == "problem"]
    assert [(e.size, e.dtype, e.unit) for e in problems] == [
        ({"M": 3, "N": 40}, "float16", "GB/s"),
        ({"M": 2, "N": 5}, "float16", "GB/s"),
    ]
    assert [e.work for e in problems] == [480, 40]  # read once and written once: 2 * M * N * 2 bytes
    assert found.measured[0].milliseconds == {"median": 2.0, "low": 1.0, "high": 3.0}


def test_end_of_an_operator_is_told(serve):
    assert [e.event for e in serve().events].index("complete") == len(serve().events) - 1


def test_limit_is_measured_in_the_same_run(serve):
    found = serve()
    (limits,) = (e for e in found.events if e.event == "limits")
    assert limits.copy == pytest.approx(2 * 4096 / 2e-3 / 1e9)  # read plus written, in two milliseconds


def test_all_registered_backends_and_torch_compile(serve, monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    for name in ("default", "other"):  # TileGym registers the stub as default
        register(name)(lambda x, weight: bench_rms_norm.reference_rms_norm(x, weight))
    found = serve(against=None)
    assert [e.contestant for e in found.measured[: len(found.measured) // 2]] == [
        "cutile",
        "torch",
        *(name for name in ("tilegym", "liger") if name in [e.contestant for e in found.measured]),
        "other",
        "compile",
    ]


def test_name_stands_for_its_variants(serve):
    for name in ("other", "other_fast", "otherwise"):
        register(name)(lambda x, weight: bench_rms_norm.reference_rms_norm(x, weight))
    assert [e.contestant for e in serve(against=["other"]).measured[:3]] == ["cutile", "other", "other_fast"]


def test_wrong_result_is_not_timed(serve):
    register("other")(lambda x, weight: x)
    found = serve(against=["other"])
    assert [e.verdict for e in found.measured] == ["ok", "wrong", "ok", "wrong"]
    assert found.measured[1].milliseconds is None
    assert len(found.timed) == 3  # the copy and the operator's two


def test_peer_that_fails(serve):
    @register("other")
    def refuse(x, weight):
        raise ValueError("not this shape")

    found = serve(against=["other"])
    assert (found.measured[1].verdict, found.measured[1].error) == ("failed", "ValueError: not this shape")


def test_peer_that_is_not_installed(serve):
    @register("other")
    def missing(x, weight):
        import no_such_package_anywhere

        return no_such_package_anywhere.rms_norm(x, weight)

    found = serve(against=["other", "unheard_of"])
    assert [e.verdict for e in found.measured[1:3]] == ["missing", "missing"]
    assert "no_such_package_anywhere" in found.measured[1].error
    assert found.measured[2].error == "no implementation of it is registered"


def test_what_is_done_is_not_done_again(serve):
    found = serve(done=[(0, "cutile"), (1, "torch")])
    assert [(e.index, e.contestant) for e in found.measured] == [(0, "torch"), (1, "cutile")]


def test_contestant_is_announced_before_it_is_called(serve):
    kinds = [(e.event, e.contestant) for e in serve().events if hasattr(e, "contestant")]
    assert kinds[:2] == [("begin", "cutile"), ("measured", "cutile")]


def test_nothing_to_compare_with(serve, monkeypatch):
    def run_out_of_memory(M, N, dtype, device):
        raise MemoryError("too large")

    monkeypatch.setattr(bench_rms_norm, "inputs", run_out_of_memory)
    found = serve()
    assert {e.verdict for e in found.measured} == {"failed"}
    assert found.measured[0].error == "PyTorch gives no result to compare with: MemoryError: too large"


def test_gpu_that_a_contestant_left_unusable_ends_the_process(serve, monkeypatch):
    def fail():
        raise RuntimeError("an illegal memory access was encountered")

    register("other")(lambda x, weight: monkeypatch.setattr(torch.cuda, "synchronize", fail))
    with pytest.raises(RuntimeError, match="illegal memory access"):
        serve(against=["other"])


def test_inputs_are_the_same_in_every_process(serve):
    first, second = serve(), serve()
    for one, other in zip(first.timed[1:], second.timed[1:], strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_preparing_calls_everything_and_tells_only_that_it_is_alive(monkeypatch):
    called, events = [], []

    @register("other")
    def other(x, weight):
        called.append(tuple(x.shape))
        return bench_rms_norm.reference_rms_norm(x, weight)

    @register("failing")
    def failing(x, weight):
        raise ValueError("not this shape")

    with interpret.enabled():
        server.prepare_all(
            lambda event, **data: events.append((event, data.get("contestant"))),
            operators=[{**OPERATOR, "done": []}],
            against=["failing", "other"],
            dtypes=["float16"],
        )
    begun = [("begin", "cutile"), ("begin", "failing"), ("begin", "other")]
    assert events == [*begun, *begun, ("prepared", None)]
    assert set(called) == {(3, 40), (2, 5)}


def test_gradients_are_timed_and_checked(serve):
    @register("other")
    def other(x, weight):  # has the result, and half of the gradient
        y = bench_rms_norm.reference_rms_norm(x, weight)
        return y / 2 + (y / 2).detach()

    found = serve(against=["torch", "other"], backward=True)
    assert [e.verdict for e in found.measured] == ["ok", "ok", "wrong"] * 2
    problems = [e for e in found.events if e.event == "problem"]
    assert [(e.backward, e.work) for e in problems] == [(True, 720), (True, 60)]  # 3 * M * N * 2 bytes


def test_arguments_that_a_peer_overwrites_are_made_again(serve):
    @register("other")
    def overwrite(x, weight):
        y = bench_rms_norm.reference_rms_norm(x, weight)
        x.data.zero_()
        return y

    found = serve(against=["other", "torch"], backward=True)
    assert [(e.contestant, e.verdict) for e in found.measured if e.contestant == "torch"] == [("torch", "ok")] * 2


def test_operator_without_gradients(serve):
    changed = {"name": "matmul", "function": "matmul", "benchmark": "tests.benchmark.bench_matmul"}
    (refused,) = (e for e in serve(backward=True, **changed).events if e.event == "refused")
    assert "bench_matmul.py has no flops_backward" in refused.error


def test_dtype_that_the_benchmark_does_not_have(serve):
    (refused,) = (e for e in serve(dtypes=["int8"]).events if e.event == "refused")
    assert "it has float16, float32" in refused.error


def test_benchmark_of_another_form(serve, tmp_path, monkeypatch):
    (tmp_path / "bench_of_my_own.py").write_text("def inputs(n, dtype, device): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    (refused,) = (e for e in serve(benchmark="bench_of_my_own").events if e.event == "refused")
    assert "bench_of_my_own.py has no reference_rms_norm" in refused.error
    sys.modules.pop("bench_of_my_own")


def test_product_of_matrices_is_the_limit_of_flops(serve, monkeypatch):
    monkeypatch.setattr(server.clock, "_SIDE", {2: 64})
    monkeypatch.setattr(bench_matmul, "SIZES", [(16, 16, 16)])
    found = serve(name="matmul", function="matmul", benchmark="tests.benchmark.bench_matmul")
    (limits,) = (e for e in found.events if e.event == "limits")
    assert limits.matrix == {"float16": pytest.approx(2 * 64**3 / 2e-3 / 1e12)}  # flops in two milliseconds
    (problem,) = (e for e in found.events if e.event == "problem")
    assert (problem.work, problem.unit) == (2 * 16**3, "TFLOP/s")
