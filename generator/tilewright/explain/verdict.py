"""Tell an error of the algorithm from rounding."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor
    from torch import dtype as DType

_ROUNDING = 64  # units in the last place that a sum or a product of matrices may well cost
_LOWER = (("float16 or tfloat32", 2.0**-9), ("bfloat16", 2.0**-6))  # about four units of each


def verdict(left: "Tensor", right: "Tensor", wrong: "Tensor", *, dtype: "DType", scattered: bool) -> str:
    """One line that begins with `rounding` or `algorithm`; `left` is the result, `right` the reference, in fp64."""
    if not bool(wrong.any()):
        return "rounding: all elements are within the tolerance"
    found, wanted = left[wrong], right[wrong]
    finite = found.isfinite() & wanted.isfinite()
    if not bool(finite.all()):
        return _not_finite(found, wanted)
    if not bool(found.any()):
        return "algorithm: the wrong elements are all 0, as where nothing was stored"
    if left.ndim > 1 and left.shape[-1] == left.shape[-2] and _close(left.mT, right):
        return "algorithm: the result is the transpose of the reference"
    factor = _factor(found, wanted)
    if factor is not None:
        return f"algorithm: the wrong elements are {factor:.6g} times the reference"
    return _by_size(left, right, dtype, scattered=scattered)


def _not_finite(found: "Tensor", wanted: "Tensor") -> str:
    if bool((~found.isfinite() & wanted.isfinite()).any()):
        return (
            "algorithm: NaN or inf where the reference has a number, as from padding, an overflow or unwritten memory"
        )
    return "algorithm: the reference has NaN or inf where the result has another value"


def _by_size(left: "Tensor", right: "Tensor", dtype: "DType", *, scattered: bool) -> str:
    """Errors in relation to the values around: a value that happens to be small has no smaller error than others."""
    import torch

    finite = left.isfinite() & right.isfinite()
    found, wanted = left[finite], right[finite]
    typical = float(wanted.abs().mean())
    if not dtype.is_floating_point or not typical:
        return "algorithm: the values differ"
    error = float(((found - wanted).abs() / wanted.abs().clamp(min=typical)).max())
    units = error / torch.finfo(dtype).eps
    name = str(dtype).removeprefix("torch.")
    if units <= _ROUNDING:
        return (
            f"rounding: at most {units:.2g} units in the last place of {name}; the tolerance is below what that costs"
        )
    for lower, level in _LOWER if scattered and torch.finfo(dtype).bits > 16 else ():
        if error <= level:
            return f"rounding: errors of {units:.2g} units, as if a step were computed in {lower}"
    return f"algorithm: errors of {units:.2g} units in the last place of {name}"


def _factor(found: "Tensor", wanted: "Tensor") -> float | None:
    """What all wrong elements were multiplied with, if that is one number other than about 1."""
    chosen = wanted.abs() > 0
    if int(chosen.sum()) < 3:
        return None
    ratio = found[chosen] / wanted[chosen]
    middle = float(ratio.median())
    alike = bool(((ratio - middle).abs() <= 1e-2 * abs(middle)).all())
    return middle if alike and abs(middle - 1) > 0.1 else None


def _close(left: "Tensor", right: "Tensor") -> bool:
    import torch

    return bool(torch.allclose(left, right, rtol=1e-2, atol=1e-2 * float(right.abs().mean())))
