"""Pieces of source that the examples of several rules are made of."""

KERNEL = """
import cuda.tile as ct
import torch

ConstInt = ct.Constant[int]


@ct.kernel
def _double_kernel(X, Y, TILE: ConstInt):
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (TILE,)) * 2)


"""

LAUNCH = "ct.launch(torch.cuda.current_stream(x.device), grid, _double_kernel, (x, y, 1024))"

# A function that launches the kernel over two flat tensors
WITH_LAUNCHER = f"""{KERNEL}def _launch(x, y):
    if y.numel():
        grid = (ct.cdiv(y.numel(), 1024),)
        {LAUNCH}


"""

TUNED_KERNEL = """
import cuda.tile as ct
import torch
from cuda.tile.tune import exhaustive_search

ConstInt = ct.Constant[int]
_CONFIGS = (1, 2, 4)
_tuned = {}


@ct.kernel
def _double_kernel(X, Y, N: ConstInt, TILE: ConstInt):
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (TILE,)) * 2)


"""


def search(key: str, *, bounded: bool = True) -> str:
    """A function that tunes its kernel, and keeps the result under a key."""
    indent = "    " if bounded else ""
    timeout = "        with ct.compiler_timeout(10):\n" if bounded else ""
    return f"""{TUNED_KERNEL}def double(x):
    y = torch.empty_like(x)
    n = x.numel()
    if n == 0:
        return y
    stream = torch.cuda.current_stream(x.device)
    grid = (ct.cdiv(n, 1024),)
    key = {key}
    if key not in _tuned:
{timeout}{indent}        found = exhaustive_search(
{indent}            _CONFIGS,
{indent}            stream,
{indent}            lambda occupancy: grid,
{indent}            _double_kernel,
{indent}            lambda occupancy: (x, y, n, 1024),
{indent}            lambda occupancy: dict(occupancy=occupancy),
{indent}        )
        _tuned[key] = _double_kernel.replace_hints(occupancy=found.best.config)
    ct.launch(stream, grid, _tuned[key], (x, y, n, 1024))
    return y
"""


COMPLETE_SEARCH = search("(n, x.dtype, str(x.device))")
