"""Say what the places of wrong elements have in common: one row, the last tile, edges of blocks, whole blocks."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

_BLOCKS = tuple(2**power for power in range(13, 3, -1))  # lengths of tiles, the largest first


def places(wrong: "Tensor") -> tuple[str, ...]:
    """What is true of all wrong elements; nothing where they are scattered, everywhere or nowhere."""
    if not bool(wrong.any()):
        return ()
    found = [place for axis, hit in enumerate(_by_axis(wrong)) if (place := _place(hit, f"axis {axis}"))]
    if not found and wrong.ndim > 1:
        flat = _place(wrong.flatten(), "the tensor read as one row")
        found = [flat] if flat else []
    return tuple(found)


def _by_axis(wrong: "Tensor") -> Iterator["Tensor"]:
    """For each axis, whether there is a wrong element at each of its indices."""
    for axis in range(wrong.ndim):
        yield wrong.movedim(axis, 0).reshape(wrong.shape[axis], -1).any(dim=1)


def _place(hit: "Tensor", axis: str) -> str:
    length = hit.numel()
    indices = hit.nonzero().flatten()
    first, last = int(indices[0]), int(indices[-1])
    if len(indices) == length:
        return ""
    if first == last:
        return f"only at index {first} of {axis} (length {length})"
    if len(indices) == last - first + 1:
        return _range(first, last, length, axis)
    return _edges(indices, axis) or _blocks(hit, axis)


def _range(first: int, last: int, length: int, axis: str) -> str:
    text = f"only at indices {first} to {last} of {axis} (length {length})"
    if last == length - 1:
        tile = next((block for block in _BLOCKS if first % block == 0), None)
        hangs_over = tile is not None and length % tile and length - first < tile
        return text + (": the last tile, which hangs over" if hangs_over else ": its end")
    return text + (": its beginning" if first == 0 else "")


def _edges(indices: "Tensor", axis: str) -> str:
    """Indices that are all the first, or all the last, of blocks."""
    for block in _BLOCKS:
        rests = set((indices % block).tolist())
        if rests in ({0}, {block - 1}):
            which = "first" if rests == {0} else "last"
            return f"only at the {which} index of blocks of {block} along {axis}: their edges"
    return ""


def _blocks(hit: "Tensor", axis: str) -> str:
    """Whole blocks that are wrong beside whole blocks that are right."""
    for block in _BLOCKS:
        whole = hit[: len(hit) // block * block].reshape(-1, block)
        rest = hit[whole.numel() :]
        uniform = bool((whole.all(dim=1) | ~whole.any(dim=1)).all()) and bool(rest.all() | ~rest.any())
        if len(whole) > 1 and uniform:
            return f"in whole blocks of {block} along {axis}: {int(whole.any(dim=1).sum())} of {len(whole)} are wrong"
    return ""
