"""What torch.cuda says of the emulated device."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tilewright.cutile.targets import TARGETS
from tilewright.interpret.host.emulation import emulated_device


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_device_is_one_of_the_architecture(target):
    with emulated_device(target, lambda *_: None):
        assert torch.cuda.is_available()
        assert (torch.cuda.device_count(), torch.cuda.current_device()) == (1, 0)
        assert torch.cuda.get_device_capability() == target.capability
        properties = torch.cuda.get_device_properties("cuda")
        assert (properties.major, properties.minor) == target.capability
        assert properties.multi_processor_count == target.multiprocessors
        assert properties.name == torch.cuda.get_device_name(0)
        assert target.name in properties.name


@pytest.mark.usefixtures("gpu")
def test_memory():
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total == torch.cuda.get_device_properties().total_memory
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.memory_allocated() == torch.cuda.max_memory_allocated() == 0


@pytest.mark.usefixtures("gpu")
def test_streams():
    default, other = torch.cuda.current_stream(), torch.cuda.Stream()
    assert default is torch.cuda.default_stream("cuda")
    assert default.cuda_stream == 0 != other.cuda_stream
    with torch.cuda.stream(other):
        assert torch.cuda.current_stream("cuda:0") is other
        with ThreadPoolExecutor(1) as pool:  # each thread chooses for itself
            assert pool.submit(torch.cuda.current_stream).result() is default
    assert torch.cuda.current_stream() is default
    other.wait_stream(default)
    other.synchronize()
    torch.zeros(1, device="cuda").record_stream(other)
    assert other.query()
    assert isinstance(other, torch.cuda.Stream)


@pytest.mark.usefixtures("gpu")
def test_events_measure_time():
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with pytest.raises(RuntimeError, match="recorded"):
        start.elapsed_time(end)
    start.record()
    time.sleep(0.01)
    end.record(torch.cuda.current_stream())
    end.synchronize()
    assert start.elapsed_time(end) >= 10
    assert torch.cuda.current_stream().record_event().query()


@pytest.mark.usefixtures("gpu")
def test_device_is_chosen():
    with torch.cuda.device("cuda:0"):
        torch.cuda.set_device(0)
    for function in (torch.cuda.device, torch.cuda.set_device):
        with pytest.raises(RuntimeError, match="invalid device ordinal 3"):
            function(3)


@pytest.mark.usefixtures("gpu")
def test_random_numbers_repeat():
    def numbers():
        return torch.rand(3, device="cuda").tolist()

    for seed in (torch.manual_seed, torch.cuda.manual_seed, torch.cuda.manual_seed_all):
        seed(7)
        first = numbers()
        seed(7)
        assert numbers() == first
    assert torch.cuda.initial_seed() == 7
    state = torch.cuda.get_rng_state()
    second = numbers()
    torch.cuda.set_rng_state(state)
    assert numbers() == second
    with torch.random.fork_rng():
        inside = numbers()
    assert numbers() == inside


@pytest.mark.usefixtures("gpu")
def test_a_stream_is_current_inside_of_it():
    outer, inner = torch.cuda.Stream(), torch.cuda.Stream()
    with outer, inner as chosen:
        assert torch.cuda.current_stream() is inner is chosen
        with outer:
            assert torch.cuda.current_stream() is outer
        assert torch.cuda.current_stream() is inner
    assert torch.cuda.current_stream() is torch.cuda.default_stream()


@pytest.mark.usefixtures("gpu")
def test_graphs_are_refused():
    with pytest.raises(NotImplementedError, match="CUDA graphs are not emulated"):
        torch.cuda.CUDAGraph()
    with pytest.raises(NotImplementedError, match="CUDA graphs are not emulated"):
        torch.cuda.make_graphed_callables(torch.nn.Linear(2, 2).cuda(), (torch.ones(2, 2, device="cuda"),))


@pytest.mark.usefixtures("gpu")
def test_marks_for_profilers_are_taken():
    with torch.cuda.nvtx.range("outer"):
        torch.cuda.nvtx.range_push("inner")
        assert torch.cuda.nvtx.range_pop() == 0
        torch.cuda.nvtx.mark("point")


def test_accelerator_is_the_device(gpu):
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator().type == "cuda"
    assert torch.accelerator.current_stream() is torch.cuda.current_stream()
    torch.accelerator.synchronize()
    dataset = torch.utils.data.TensorDataset(torch.arange(8.0))
    batches = [batch for (batch,) in torch.utils.data.DataLoader(dataset, batch_size=4, pin_memory=True)]
    assert [batch.is_cuda for batch in batches] == [False, False]
    assert torch.cat(batches).cuda().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
