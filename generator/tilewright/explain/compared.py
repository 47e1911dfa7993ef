"""Find the tensors that `torch.testing.assert_close` compared in the traceback of its failure, and sum them up."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from tilewright.explain.comparison import compare
from tilewright.explain.summary import lines

_WHERE = "torch.testing._comparison"
_FUNCTION = "assert_close"


def summed_up(trace: TracebackType | None) -> str:
    """The summary of the first pair of tensors that is not close, or nothing."""
    given = _given(trace)
    if given is None:
        return ""
    for actual, expected in _pairs(given["actual"], given["expected"]):
        if _comparable(actual, expected):
            found = compare(actual, expected, **_tolerances(given, actual, expected))
            if found.mismatched:
                return "\n".join(lines(found))
    return ""


def _given(trace: TracebackType | None) -> Mapping[str, Any] | None:
    """The arguments of the comparison; it need not be the last function of the traceback."""
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code.co_name == _FUNCTION and frame.f_globals.get("__name__") == _WHERE:
            return frame.f_locals
        trace = trace.tb_next
    return None


def _pairs(actual: Any, expected: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        yield from ((actual[key], expected[key]) for key in actual if key in expected)
    elif isinstance(actual, Sequence) and isinstance(expected, Sequence):
        yield from zip(actual, expected, strict=False)
    else:
        yield actual, expected


def _comparable(actual: Any, expected: Any) -> bool:
    import torch

    return all(
        isinstance(each, torch.Tensor)
        and each.layout is torch.strided
        and not each.is_quantized
        and not each.is_complex()
        and each.device.type != "meta"
        for each in (actual, expected)
    ) and bool(actual.shape == expected.shape)


def _tolerances(given: Mapping[str, Any], actual: Any, expected: Any) -> dict[str, float]:
    """Those that were given, or those that PyTorch takes by itself."""
    import torch

    if given["rtol"] is not None and given["atol"] is not None:
        return {"rtol": given["rtol"], "atol": given["atol"]}
    rtol, atol = torch.testing._comparison.default_tolerances(actual, expected)
    return {"rtol": rtol, "atol": atol}
