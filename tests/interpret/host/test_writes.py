"""What is known to be unwritten where launches are checked."""

import numpy as np
import pytest
import torch

from tilewright.cutile.targets import select
from tilewright.interpret.check.unwritten import unwritten_bytes
from tilewright.interpret.host.emulation import emulated_device
from tilewright.interpret.host.writes import note_writes


@pytest.fixture(autouse=True)
def gpu():
    with emulated_device(select("sm_90")[0], lambda *_: None, observe=note_writes):
        yield


def unwritten(x):
    """The elements of a contiguous tensor that nobody has written, by their index."""
    flags = unwritten_bytes(x.data_ptr())
    return [] if flags is None else flags.view(-1, x.element_size())[:, 0].nonzero().flatten().tolist()


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.empty(4, device="cuda"),
        lambda: torch.empty(4),
        lambda: torch.empty_like(torch.ones(4, device="cuda")),
        lambda: torch.empty_strided((4,), (1,), device="cuda", dtype=torch.float16),
        lambda: torch.ones(1, device="cuda").new_empty(4),
    ],
)
def test_memory_that_was_only_allocated(make):
    assert unwritten(make()) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(4, device="cuda"),
        lambda: torch.ones(4, device="cuda") * 2,
        lambda: torch.ones(4, device="cuda").clone(),
        lambda: torch.empty(4, device="cuda", out=torch.zeros(4, device="cuda")),
    ],
)
def test_memory_with_results(make):
    assert unwritten(make()) == []


@pytest.mark.parametrize(
    ("write", "left"),
    [
        (lambda x: x.fill_(1), []),
        (lambda x: x.zero_(), []),
        (lambda x: x[1:3].copy_(torch.ones(2)), [0, 3]),
        (lambda x: x.view(2, 2)[0].add_(1), [2, 3]),
        (lambda x: x.__setitem__(slice(0, 4, 2), 1.0), [1, 3]),
        (lambda x: x.__setitem__(torch.tensor([1]), 1.0), []),  # which elements is not looked at
        (lambda x: x.__setitem__(x == 0, 1.0), []),
        (lambda x: torch.add(x, 1, out=x), []),
        (lambda x: torch.add(x[:2], 1, out=x[2:]), [0, 1]),
        (lambda x: torch.nn.init.normal_(x), []),
        (lambda x: torch.nn.init.uniform_(tensor=x[:1]), [1, 2, 3]),
        (lambda x: torch._foreach_zero_([x[:1], x[3:]]), [1, 2]),
        (lambda x: x.__iadd__(1), []),
        (lambda x: x + 1, [0, 1, 2, 3]),
        (lambda x: x.__repr__(), [0, 1, 2, 3]),
    ],
)
def test_what_a_function_writes_is_written(write, left):
    x = torch.empty(4, device="cuda")
    write(x)
    assert unwritten(x) == left


def test_numpy_may_write():
    x = torch.empty(4)
    np.asarray(x)[:] = 1
    assert unwritten(x) == []
