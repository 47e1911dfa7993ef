"""Stores write nothing beside their array, but for those of sums and products that the compiler makes with TMA.

On a GPU (see tests/support/on_gpu.py) this tells when what is beside such arrays is no longer overwritten, which
`_overruns` of rendered operators, checking mode and the rule TW243 go by.
"""

import cuda.tile as ct
import pytest
import torch

from tests.support.computing_kernels import launch
from tilewright.interpret.launch import Launcher

MARK = 7.0
ZERO = ct.PaddingMode.ZERO
TILE = 16
ON_GPU = Launcher.launch.__module__ == "tests.support.on_gpu"  # where that is a plugin of this run


@ct.kernel
def store_sums(X, Y, TMA: ct.Constant[bool]):
    i = ct.bid(0)
    tx = ct.load(X, (i, 0), (TILE, 32), padding_mode=ZERO)
    ct.store(Y, (i,), ct.sum(tx, axis=1).astype(Y.dtype), allow_tma=TMA)


@ct.kernel
def store_product(A, B, Y, TMA: ct.Constant[bool]):
    i, j = ct.bid(0), ct.bid(1)
    ta = ct.load(A, (i, 0), (TILE, 32), padding_mode=ZERO)
    tb = ct.load(B, (0, j), (32, TILE), padding_mode=ZERO)
    ct.store(Y, (i, j), ct.mma(ta, tb, ct.zeros((TILE, TILE), ct.float32)).astype(Y.dtype), allow_tma=TMA)


@ct.kernel
def store_copy(X, Y, TMA: ct.Constant[bool]):
    i, j = ct.bid(0), ct.bid(1)
    ct.store(Y, (i, j), ct.load(X, (i, j), (TILE, TILE), padding_mode=ZERO), allow_tma=TMA)


def whole_numbers(*shape):
    torch.manual_seed(0)
    return torch.randint(-3, 4, shape).to(torch.bfloat16)


def grid_of(shape):
    return tuple(-(-size // TILE) for size in shape)


def beside(memory, view, expected):
    """How many elements of the memory around the view are no longer as they were; the view must be as expected."""
    assert torch.equal(view, expected.to(view.dtype))
    before = torch.full_like(memory, MARK)
    before.as_strided(view.shape, view.stride(), view.storage_offset()).copy_(view)
    return int((memory != before).sum())


def overrun(length, dtype, tma):
    """Elements that TMA overwrites behind each row, on a GPU that has it."""
    uses_tma = tma and ON_GPU and torch.cuda.get_device_capability() >= (9, 0)
    return -length % (16 // dtype.itemsize) if uses_tma else 0


def rows_in(layout, rows, columns, dtype):
    """Memory with marks, and rows in it: with nothing between them, or in wider rows."""
    if layout == "dense":
        memory = torch.full((rows * columns + 64,), MARK, dtype=dtype)
        return memory, memory[32 : 32 + rows * columns].view(rows, columns)
    memory = torch.full((rows + 2, (columns // 64 + 2) * 64), MARK, dtype=dtype)
    return memory, memory[1:-1, 32 : 32 + columns]


BY_DTYPE = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
BY_TMA = pytest.mark.parametrize("tma", [True, False], ids=["tma", "plain"])
BY_LAYOUT = pytest.mark.parametrize("layout", ["dense", "wider"])


@BY_TMA
@BY_DTYPE
@pytest.mark.parametrize("size", [3, 5, 42, 100, 131, 1001])
def test_sums_in_larger_memory(size, dtype, tma):
    x = whole_numbers(size, 32)
    memory = torch.full((size + 64,), MARK, dtype=dtype)
    view = memory[32 : 32 + size]
    launch(store_sums, x, view, tma, grid=grid_of((size,)), arch="sm_90")
    assert beside(memory, view, x.float().sum(1)) == overrun(size, dtype, tma)


@BY_TMA
@BY_DTYPE
@BY_LAYOUT
@pytest.mark.parametrize("shape", [(70, 37), (1, 37), (70, 64), (1, 64)], ids=str)
def test_products_in_larger_memory(shape, layout, dtype, tma):
    rows, columns = shape
    a, b = whole_numbers(rows, 32), whole_numbers(32, columns)
    memory, view = rows_in(layout, rows, columns, dtype)
    launch(store_product, a, b, view, tma, grid=grid_of(shape), arch="sm_90")
    # Where rows of such a length lie one behind the other their stride rules TMA out.
    rows_beside = rows if layout == "wider" or rows == 1 else 0
    assert beside(memory, view, a.float() @ b.float()) == rows_beside * overrun(columns, dtype, tma)


@BY_TMA
@BY_LAYOUT
@pytest.mark.parametrize("shape", [(70, 37), (1, 37)], ids=str)
def test_copies_in_larger_memory(shape, layout, tma):
    x = whole_numbers(*shape)
    memory, view = rows_in(layout, *shape, x.dtype)
    launch(store_copy, x, view, tma, grid=grid_of(shape), arch="sm_90")
    assert beside(memory, view, x) == 0
