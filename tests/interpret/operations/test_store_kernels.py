"""A store writes nothing beside its array: on a GPU that depends on how the compiler stores."""

import cuda.tile as ct
import pytest
import torch

from tilewright.interpret import enabled

MARK = 7
SIZES = [1, 3, 5, 15, 17, 42, 100, 1000]


@ct.kernel
def _store_row(X, TILE: ct.Constant[int], TMA: ct.Constant[bool]):
    i = ct.bid(0)
    ct.store(X, (i,), ct.full((TILE,), 1, X.dtype), allow_tma=TMA)


@ct.kernel
def _store_rows(X, TILE_M: ct.Constant[int], TILE_N: ct.Constant[int], TMA: ct.Constant[bool]):
    i, j = ct.bid(0), ct.bid(1)
    ct.store(X, (i, j), ct.full((TILE_M, TILE_N), 1, X.dtype), allow_tma=TMA)


@pytest.fixture(autouse=True)
def _interpreted():
    with enabled():
        yield


def is_only_here(memory, view):
    """Whether what is in the view is 1, and everything around it as it was."""
    expected = torch.full_like(memory, MARK)
    expected.as_strided(view.shape, view.stride(), view.storage_offset()).fill_(1)
    return torch.equal(memory, expected)


@pytest.mark.parametrize("tma", [True, False])
@pytest.mark.parametrize("tile", [16, 128])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.uint8], ids=str)
@pytest.mark.parametrize("size", SIZES)
def test_a_row_in_larger_memory(size, dtype, tile, tma):
    memory = torch.full((size + 64,), MARK, dtype=dtype)
    view = memory[32 : 32 + size]
    ct.launch(torch.cuda.current_stream(), (-(-size // tile),), _store_row, (view, tile, tma))
    assert is_only_here(memory, view)


@pytest.mark.parametrize("tma", [True, False])
@pytest.mark.parametrize("shape", [(42, 1), (5, 3), (33, 42), (7, 100), (3, 1000)], ids=str)
@pytest.mark.parametrize("width", [0, 64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_rows_in_larger_memory(dtype, width, shape, tma):
    rows, columns = shape
    memory = torch.full((rows + 2, -(-columns // 64) * 64 + 64) if width else (rows * columns + 64,), MARK, dtype=dtype)
    view = memory[1:-1, 32 : 32 + columns] if width else memory[32 : 32 + rows * columns].view(rows, columns)
    grid = (-(-rows // 16), -(-columns // 32))
    ct.launch(torch.cuda.current_stream(), grid, _store_rows, (view, 16, 32, tma))
    assert is_only_here(memory, view)
