from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
ct = pytest.importorskip("cuda.tile")

from tilewright.aot.capture import Recorder  # noqa: E402
from tilewright.aot.capture import Subject  # noqa: E402
from tilewright.aot.capture import capture  # noqa: E402
from tilewright.aot.standin import OnMeta  # noqa: E402
from tilewright.aot.standin import StandIn  # noqa: E402
from tilewright.cutile.targets import select  # noqa: E402


@ct.kernel(occupancy=2)
def short(X):
    pass


@ct.kernel
def long(X):
    pass


@ct.kernel
def backward(X):
    pass


def cases(aligned, ragged, **attributes):
    def inputs(shape, dtype, device):
        return {"x": torch.randn(shape, dtype=dtype, device=device)}

    return SimpleNamespace(_aligned=aligned, _ragged=ragged, inputs=inputs, **attributes)


def captured(function, tests, kernels=("short",), dtype=torch.float32):
    recorder = Recorder()
    subject = Subject(function=lambda **arguments: function(recorder, **arguments), cases=tests, kernels=set(kernels))
    return capture(subject, recorder, dtype)


def by_length(recorder, x, flag=False):
    kernel = long if x.shape[-1] > 1000 or flag else short
    recorder.launch(None, (1,), kernel, (x,))


def test_first_shape_of_each_kind_is_captured():
    launches = captured(by_length, cases([(64,), (128,)], [(7,), (9,)]))
    assert [(x.arguments[0].shape, x.aligned) for x in launches][::2] == [((64,), True), ((7,), False)]


def test_further_shapes_are_tried_for_kernels_not_reached():
    launches = captured(by_length, cases([(64,), (128,), (4096,)], [(7,)]), kernels=("short", "long"))
    assert {(x.name, x.arguments[0].shape[0], x.aligned) for x in launches} == {
        ("short", 64, True),
        ("long", 4096, True),
        ("short", 7, False),
    }


def test_further_arguments_are_tried_for_kernels_not_reached():
    launches = captured(by_length, cases([(64,)], [(7,)], _arguments=[{"flag": True}]), kernels=("short", "long"))
    assert {x.name for x in launches} == {"short", "long"}


def test_further_arguments_are_tried_with_further_shapes():
    def needs_both(recorder, x, flag=False):
        recorder.launch(None, (1,), long if len(x) > 100 and flag else short, (x,))

    tests = cases([(64,), (128,)], [(7,), (129,)], _arguments=[{"flag": True}])
    assert {x.name for x in captured(needs_both, tests, kernels=("short", "long"))} == {"short", "long"}


def test_further_arguments_that_do_not_fit_further_shapes_are_left_out():
    def refuse(recorder, x, flag=False):
        if flag and len(x) > 100:
            raise ValueError("the flag is for short rows")
        recorder.launch(None, (1,), short, (x,))

    tests = cases([(64,), (128,)], [(7,), (129,)], _arguments=[{"flag": True}])
    assert {x.name for x in captured(refuse, tests, kernels=("short", "long"))} == {"short"}


def test_arguments_that_the_first_shape_refuses_are_an_error():
    def refuse(recorder, x, flag=False):
        if flag:
            raise ValueError("no flag")
        recorder.launch(None, (1,), short, (x,))

    with pytest.raises(ValueError, match="no flag"):
        captured(refuse, cases([(64,)], [(7,)], _arguments=[{"flag": True}]), kernels=("short", "long"))


def test_backward_is_captured():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, recorder):
            ctx.recorder = recorder
            recorder.launch(None, (1,), short, (x,))
            return torch.empty_like(x)

        @staticmethod
        def backward(ctx, grad):
            ctx.recorder.launch(None, (1,), backward, (grad,))
            return grad, None

    launches = captured(lambda recorder, x: Double.apply(x, recorder), cases([(8,)], [(7,)]), ("short", "backward"))
    assert [x.name for x in launches if x.aligned] == ["short", "short", "backward"]


def test_integers_have_no_backward():
    def inputs(shape, dtype, device):
        return {"x": torch.zeros(shape, dtype=dtype, device=device)}

    tests = SimpleNamespace(_aligned=[(8,)], _ragged=[(7,)], inputs=inputs)
    assert len(captured(by_length, tests, dtype=torch.int32)) == 2


def test_host_function_sees_tensors_on_a_gpu():
    def host(recorder, x):
        assert x.is_cuda
        assert not x.is_meta
        assert x.device == torch.device("cuda", 0)
        assert x.cuda() is x
        workspace = torch.zeros(4, device=x.device)
        assert torch.empty(3, device="cuda").device == workspace.to("cuda:0").device == x.device
        recorder.launch(None, (1,), short, (x,))

    assert captured(host, cases([(8,)], [(7,)]))


def test_reading_a_value_is_an_error():
    with pytest.raises(RuntimeError, match=r"item.*meta"):
        captured(lambda recorder, x: x.sum().item(), cases([(8,)], [(7,)]))


def test_tensors_are_themselves_again_afterwards():
    with OnMeta():
        x = torch.empty(3, device="cuda")
    assert x.is_meta


def test_hints_are_those_that_differ_from_the_default():
    launches = captured(by_length, cases([(64,)], [(4096,)]), ("short", "long"))
    assert {x.name: x.hints for x in launches} == {"short": "occupancy=2", "long": ""}


@pytest.mark.parametrize("grid", [[1], 1, (1.0,)])
def test_grid_that_is_no_tuple_of_integers_is_refused(grid):
    with pytest.raises(TypeError, match="tuple of integers"):
        Recorder().launch(None, grid, short, ())


@pytest.mark.parametrize("grid", [(0,), (2**24,), (1, 65536), (1, 1, 1, 1), (-1,)])
def test_grid_beyond_the_limits_is_refused(grid):
    with pytest.raises(ValueError, match="at most"):
        Recorder().launch(None, grid, short, ())


def test_stand_in_describes_the_target():
    gpu = StandIn(select("sm_120")[0])
    assert gpu.get_device_capability("cuda") == (12, 0)
    assert gpu.get_device_properties(0).multi_processor_count == 188


def test_stand_in_follows_a_change_of_target():
    gpu = StandIn(select("sm_120")[0])
    imported_by_name = gpu.get_device_capability
    gpu.target = select("sm_80")[0]
    assert imported_by_name() == (8, 0)
