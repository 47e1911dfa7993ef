"""The device functions of the table, in the fp32 arithmetic that they are written in, are PyTorch's in fp64."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

torch = pytest.importorskip("torch")
TABLE = yaml.safe_load((Path(__file__).parents[2] / "template/_partials/functions.yml").read_text(encoding="utf-8"))
WRITTEN = sorted(name for name, entry in TABLE.items() if "helper" in entry)


class Tile(torch.Tensor):
    """A tensor with the method that tiles have."""

    def astype(self, dtype: torch.dtype) -> torch.Tensor:
        return self.to(dtype)


def truediv(a: Any, b: Any, **_hints: object) -> Any:
    """Division by the hardware's reciprocal, which is zero for large divisors."""
    return torch.where(abs(b) > 2.0**126, 0.0, a / b)


CT = SimpleNamespace(
    **{name: getattr(torch, name) for name in ("abs", "exp", "log", "tanh", "where")},
    exp2=lambda x, **_hints: torch.exp2(x),
    maximum=lambda a, b: torch.fmax(a, torch.as_tensor(b)),  # these ignore NaN
    minimum=lambda a, b: torch.fmin(a, torch.as_tensor(b)),
    truediv=truediv,
    RoundingMode=SimpleNamespace(APPROX=None),
)


def every_bfloat16() -> torch.Tensor:
    bits = torch.arange(2**16, dtype=torch.int32).to(torch.int16)
    return bits.view(torch.bfloat16).float()


@pytest.mark.parametrize("name", WRITTEN)
def test_agrees_with_pytorch(name):
    scope = {"ct": CT}
    for entry in TABLE.values():
        exec(entry.get("helper", ""), scope)
    x = torch.cat([every_bfloat16(), torch.randn(2**12, generator=torch.Generator().manual_seed(0))])
    others = {"leaky_relu": (0.1,), "clamp": (-1.0, 2.0)}.get(name, (x.flip(0),) * (TABLE[name]["args"] - 1))
    found = scope[TABLE[name]["cutile"]](x.as_subclass(Tile), *others)
    wide = [other.double() if isinstance(other, torch.Tensor) else other for other in others]
    expected = eval(TABLE[name]["torch"])(x.double(), *wide)
    # The absolute error is that of the tails of erf and its relatives, relative to what they are multiplied with.
    atol = 1e-6 if name in ("gelu", "gelu_tanh", "ndtr") else 1e-36
    torch.testing.assert_close(found.as_subclass(torch.Tensor), expected.float(), rtol=2e-6, atol=atol, equal_nan=True)
