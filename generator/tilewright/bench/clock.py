"""How long a call takes on the GPU, and how much the GPU can do at best."""

from collections.abc import Callable
from typing import Any

import torch
import triton.testing

from tilewright.model.measurement import Spread

_LARGEST_COPY = 2**31  # bytes: far more than any cache holds
_SIDE = {2: 8192}  # of the matrices, by bytes of an element
_OTHER_SIDE = 4096
Clock = Callable[[Callable[[], Any]], Spread]  # milliseconds of a call


def measure(call: Callable[[], Any], milliseconds: int = 100) -> Spread:
    """How long a call takes, with cold caches, by as many calls as fit into a time."""
    low, median, high = triton.testing.do_bench(
        call, warmup=milliseconds // 4, rep=milliseconds, quantiles=[0.2, 0.5, 0.8]
    )
    return Spread(median=median, low=low, high=high)


def copy_rate(clock: Clock) -> float:
    """GB/s of a copy on the device, read plus written."""
    size = min(_LARGEST_COPY, int(torch.cuda.mem_get_info()[0]) // 8)
    source = torch.empty(size, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2e-6 * size / clock(lambda: target.copy_(source)).median


def matrix_rate(dtype: torch.dtype, clock: Clock) -> float | None:
    """TFLOP/s of torch's product of two large matrices; None where torch has none of this dtype."""
    side = _SIDE.get(dtype.itemsize, _OTHER_SIDE)
    try:
        a, b = (torch.randn((side, side), device="cuda").to(dtype) for _ in range(2))
        return 2 * side**3 * 1e-9 / clock(lambda: a @ b).median
    except (NotImplementedError, RuntimeError):
        return None
