"""cuTile backend of histc."""

import functools
from typing import Any

import cuda.tile as ct
import torch

from ..backend import register_impl

ConstInt = ct.Constant[int]

MOST = 256  # bins that are counted in registers
HELD = 16  # words of 8 bins that a lane has at most; for more bins further blocks read the same elements
LANES = 128  # elements of a step, each counted by a lane of its own, of which 16 bits hold the sum
STEPS = 15  # of a round, which 4 bits of a word hold
ROUNDS = 17  # of a block, at most, which 8 bits of a word hold
BLOCKS = 512  # with fewer blocks they have fewer rounds, to keep the whole GPU busy
TILE = 1024  # elements that are counted in memory at once, where there are more bins
MANY_BLOCKS = 1024  # that count in memory
COPIES = 64  # of the counts in memory, so that blocks seldom meet in one
ROOM = 2**20  # counts of all copies together, at most
HINTS = {  # by the words of 8 bins that a lane has; chosen by the registers that the compiler reports
    1: {"occupancy": 7, "num_worker_warps": 4},
    2: {"occupancy": 7, "num_worker_warps": 4},
    4: {"occupancy": 6, "num_worker_warps": 4},
    8: {"occupancy": 5, "num_worker_warps": 4},
    16: {"occupancy": ct.ByTarget(sm_120=2, sm_121=2, default=3), "num_worker_warps": 4},
}
MANY_HINTS = {"occupancy": 4, "num_worker_warps": 4}


def _places(tx, inside, low, high, bins):
    """Bin of each element, found as PyTorch finds it; -1 of one that is in none."""
    tx = tx.astype(ct.float32)
    inside = inside & (tx >= low) & (tx <= high)
    place = ct.where(inside, (tx - low) * bins.astype(ct.float32) / (high - low), 0.0)
    return ct.where(inside, ct.minimum(place.astype(ct.int32), bins - 1), -1)


def _rows(tiles):
    """Tiles (1, N) as the rows of one."""
    if ct.static_eval(len(tiles) == 1):
        return tiles[0]
    pairs = ()
    for i in ct.static_iter(range(0, len(tiles), 2)):
        pairs += (ct.cat((tiles[i], tiles[i + 1]), 0),)
    return _rows(pairs)


def _add(Count, copy, places, counts):
    """Add to a copy of the counts; places outside of them are left out."""
    ct.atomic_add(Count, (copy, places), counts, memory_order=ct.MemoryOrder.RELAXED)


def _round(X, start, rest, lane, r):
    """Elements of all steps of a round."""
    insides = ()
    for step in ct.static_iter(range(STEPS)):  # all known before the first load
        insides += ((r * STEPS + step) * LANES + lane < rest,)
    txs = ()
    for step in ct.static_iter(range(STEPS)):
        txs += (ct.gather(X, start + ((r * STEPS + step) * LANES + lane), mask=insides[step], check_bounds=False),)
    return txs


@ct.kernel
def _histc_kernel(X: ct.IndexedWithInt64, Count, low: float, high: float, bins: int, rounds: int, WORDS: ConstInt):
    """Add the counts of `rounds` * STEPS * LANES elements of X (N,) in WORDS * 8 bins to Count (1, bins).

    Each lane has counts of its own: 8 bins in the nibbles of a word, for as many elements as a nibble can count,
    then 4 bins in the bytes of each of two words. The lanes meet once, at the end.
    """
    start = ct.int64(ct.bid(0)) * (rounds * STEPS * LANES)
    rest = X.shape[0] - start
    above = ct.bid(1) * WORDS  # words of smaller bins, which other blocks count
    lane = ct.arange(LANES, dtype=ct.int32)
    none = ()
    for _ in ct.static_iter(range(WORDS)):
        none += (ct.zeros((LANES,), ct.int32),)
    even, odd = none, none
    txs = _round(X, start, rest, lane, 0)
    for r in range(rounds):
        after = _round(X, start, rest, lane, ct.minimum(r + 1, rounds - 1))  # under way while these are counted
        nibbles = none
        for step in ct.static_iter(range(STEPS)):
            place = _places(txs[step], (r * STEPS + step) * LANES + lane < rest, low, high, bins)
            word, one = (place >> 3) - above, 1 << ((place & 7) * 4)
            counted = ()
            for w in ct.static_iter(range(WORDS)):
                counted += (nibbles[w] + ct.where(word == w, one, 0),)
            nibbles = counted
        evens, odds = (), ()
        for w in ct.static_iter(range(WORDS)):
            evens += (even[w] + (nibbles[w] & 0x0F0F0F0F),)
            odds += (odd[w] + ((nibbles[w] >> 4) & 0x0F0F0F0F),)
        even, odd = evens, odds
        txs = after

    first = (above + ct.arange(WORDS, dtype=ct.int32)) * 8
    for parity in ct.static_iter(range(2)):
        rows = ()
        for w in ct.static_iter(range(WORDS)):
            rows += ((odd if parity else even)[w][None, :],)
        counts = _rows(rows)
        for byte in ct.static_iter(range(2)):
            pair = ct.sum((counts >> (8 * byte)) & 0x00FF00FF, 1)  # of this byte, and of the second one after it
            place = first + (parity + 2 * byte)
            _add(Count, 0, place, pair & 0xFFFF)
            _add(Count, 0, place + 4, (pair >> 16) & 0xFFFF)


@ct.kernel(**MANY_HINTS)
def _histc_many_kernel(X: ct.IndexedWithInt64, Count: ct.IndexedWithInt64, low: float, high: float, bins: int):
    """Add elements of X (N,) to Count (copies, bins), one by one."""
    tiles = ct.cdiv(X.shape[0], TILE)
    for j in range(ct.bid(0), tiles, ct.num_blocks(0)):
        start = ct.int64(j) * TILE
        offset = ct.arange(TILE, dtype=ct.int32)
        inside = offset < X.shape[0] - start
        tx = ct.gather(X, start + offset, mask=inside, check_bounds=False)
        _add(Count, ct.bid(0) % Count.shape[0], _places(tx, inside, low, high, bins), 1)


_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def _power_of_two(n):
    """Smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()


@functools.cache
def _hinted(words):
    """Kernel with the hints for so many words of a lane."""
    return _histc_kernel.replace_hints(**HINTS[words])


def _flat(x):
    """The elements of `x` in the order of memory, which counts do not depend on; a copy only where they have gaps."""
    order = sorted(range(x.ndim), key=x.stride, reverse=True)
    return x.permute(order).reshape(-1)


def _count(x, bins, ends):
    """Counts (bins,), in int64, of the elements of `x` (N,), between the two `ends`."""
    n = x.shape[0]
    if not n:
        return torch.zeros(bins, dtype=torch.int64, device=x.device)
    few = bins <= MOST
    copies = 1 if few else max(min(COPIES, ROOM // bins), 1)
    count = torch.zeros((copies, bins), dtype=torch.int32 if n < 2**31 else torch.int64, device=x.device)
    arguments = (x, count, *ends, bins)
    with torch.cuda.device(x.device):
        stream = torch.cuda.current_stream(x.device)
        if few:
            rounds = min(ct.cdiv(n, STEPS * LANES * BLOCKS), ROUNDS)
            words = min(_power_of_two(ct.cdiv(bins, 8)), HELD)
            grid = (ct.cdiv(n, rounds * STEPS * LANES), ct.cdiv(bins, 8 * words))
            ct.launch(stream, grid, _hinted(words), (*arguments, rounds, words))
        else:
            grid = (min(ct.cdiv(n, TILE), MANY_BLOCKS),)
            ct.launch(stream, grid, _histc_many_kernel, arguments)
    return count.sum(0)


def _ends(x, low, high, bins):
    """Ends of all bins together as the kernels take them."""
    wide = torch.float32
    for name, end in (("min", low), ("max", high)):
        if not isinstance(end, int | float):
            raise TypeError(f"{name} is {end!r}; it must be a number")
    ends = torch.tensor([low, high], dtype=wide)
    if ends[0] == ends[1] and x.numel():
        ends = torch.stack(x.aminmax()).to(ends)
    if ends[0] == ends[1]:
        ends = ends + torch.tensor([-1, 1])
    low, high = ends.tolist()
    most = torch.finfo(wide).max
    if not 0 < (high - low) * bins <= most:
        found = f"bins are from {low} to {high}"
        raise ValueError(f"{found}; max must be greater than min, and (max - min) * bins finite in {wide}")
    return low, high


@register_impl("histc", backend="cutile")
def histc(
    x: torch.Tensor,
    bins: int = 100,
    min: float = 0,
    max: float = 0,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Counts of the elements in equal bins between two limits."""
    if kwargs:
        raise TypeError(f"histc got unexpected arguments: {', '.join(kwargs)}")
    if not isinstance(x, torch.Tensor) or x.dtype not in _DTYPES:
        found = getattr(x, "dtype", type(x).__name__)
        raise TypeError(f"x is {found}; it must be a tensor of float32, float16, bfloat16")
    if not x.is_cuda:
        raise ValueError(f"x is on {x.device}; it must be on a CUDA device")
    if not isinstance(bins, int):
        raise TypeError(f"bins is {bins!r}; it must be an int")
    if not 0 < bins < 2**31:
        raise ValueError(f"bins is {bins}; it must be positive, and less than 2**31")
    dtype = torch.float32 if x.element_size() == 2 else x.dtype  # 16 bits could not hold most counts
    if out is not None and (tuple(out.shape) != (bins,) or out.dtype != dtype or out.device != x.device):
        found = f"{tuple(out.shape)} of {out.dtype} on {out.device}"
        raise ValueError(f"out is {found}; it must be ({bins},) of {dtype} on {x.device}")
    x = _flat(x)
    ends = _ends(x, min, max, bins)
    count = _count(x, bins, ends)
    return count.to(dtype) if out is None else out.copy_(count)
