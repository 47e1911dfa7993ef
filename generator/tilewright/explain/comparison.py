"""Compare two tensors so that an error of the algorithm can be told from rounding; never keeps whole tensors."""

from dataclasses import dataclass
from typing import TYPE_CHECKING
from typing import Any

from tilewright.explain.places import places
from tilewright.explain.verdict import verdict

if TYPE_CHECKING:
    from torch import Tensor

_MOST = 2**24  # elements that are looked at
_WORST = 3


@dataclass(frozen=True, kw_only=True)
class Worst:
    """One element that differs."""

    index: tuple[int, ...]
    actual: float
    expected: float


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How far a result is from its reference; errors are those of elements that are finite on both sides."""

    shape: tuple[int, ...]
    dtype: str
    compared: int  # elements: the first 2**24 of longer tensors
    mismatched: int
    unexpected: int  # elements that are NaN or inf on one side only
    max_absolute: float
    mean_absolute: float
    max_relative: float
    mean_relative: float
    places: tuple[str, ...]  # what the mismatched elements have in common
    worst: tuple[Worst, ...]
    verdict: str


def compare(actual: "Tensor", expected: "Tensor", *, rtol: float, atol: float) -> Comparison:
    """Compare two real tensors of one shape, on any device.

    Raises:
        ValueError: The shapes differ.
    """
    import torch

    if actual.shape != expected.shape:
        raise ValueError(f"shapes differ: {tuple(actual.shape)} and {tuple(expected.shape)}")
    left, right = _numbers(actual), _numbers(expected)
    finite = left.isfinite() & right.isfinite()
    same = (left == right) | (left.isnan() & right.isnan())
    error = torch.where(finite, (left - right).abs(), 0.0)
    size = torch.where(finite, right.abs(), 0.0)
    wrong = ~same & (~finite | (error > atol + rtol * size))
    relative = torch.where(error > 0, error / size, 0.0)
    where = places(wrong)
    return Comparison(
        shape=tuple(actual.shape),
        dtype=str(actual.dtype).removeprefix("torch."),
        compared=error.numel(),
        mismatched=int(wrong.sum()),
        unexpected=int((~finite & ~same).sum()),
        max_absolute=_largest(error),
        mean_absolute=_mean(error),
        max_relative=_largest(relative),
        mean_relative=_mean(relative[relative.isfinite()]),
        places=where,
        worst=_worst(left, right, torch.where(wrong, torch.where(finite, error, torch.inf), -1.0)),
        verdict=verdict(left, right, wrong, dtype=actual.dtype, scattered=not where),
    )


def _numbers(tensor: "Tensor") -> "Tensor":
    """The elements in double precision on the CPU, cut along the first axes where there are very many."""
    import torch

    part = tensor.detach()
    for axis in range(part.ndim):
        if part.numel() > _MOST:
            part = part.narrow(axis, 0, max(part.shape[axis] * _MOST // part.numel(), 1))
    return part.to(device="cpu", dtype=torch.float64)


def _largest(values: "Tensor") -> float:
    return float(values.max()) if values.numel() else 0.0


def _mean(values: "Tensor") -> float:
    return float(values.mean()) if values.numel() else 0.0


def _worst(left: "Tensor", right: "Tensor", badness: "Tensor") -> tuple[Worst, ...]:
    import torch

    flat: Any = badness.flatten()
    largest = flat.topk(min(_WORST, flat.numel()))
    chosen = [place for place, bad in zip(largest.indices.tolist(), largest.values.tolist(), strict=True) if bad >= 0]
    return tuple(
        Worst(
            index=tuple(int(each) for each in torch.unravel_index(torch.tensor(place), badness.shape)),
            actual=float(left.flatten()[place]),
            expected=float(right.flatten()[place]),
        )
        for place in chosen
    )
