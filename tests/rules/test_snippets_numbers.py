"""Kernels and packages that are said to give wrong numbers do, or are at fault in checking mode; valid ones do not.

What a kernel should compute goes by its name; what is passed to it is in its docstring.
"""

import ast
import importlib
import inspect
import shutil
import sys
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tilewright.interpret import enabled
from tilewright.rules.registry import all_rules
from tilewright.rules.rule import Proof
from tilewright.rules.rule import Rule

torch = pytest.importorskip("torch")
ct = pytest.importorskip("cuda.tile")
snippets = pytest.importorskip("tests.support.snippets")

from tilewright.interpret.check.findings import CheckError  # noqa: E402  # needs torch

RULES = [rule for rule in all_rules() if rule.proof is Proof.NUMBERS]
KERNELS = [rule for rule in RULES if type(rule).__module__.startswith("tilewright.rules.kernel.")]
PACKAGES = [rule for rule in RULES if type(rule).__module__.startswith("tilewright.rules.dispatch.")]
BACKEND = Path(__file__).parents[2] / "reference_ops" / "backend.py"
Tensors = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """The grid of a launch and what it should compute, by the arguments."""

    expected: Callable[[Tensors], Any]
    grid: Callable[[Tensors], tuple[int, ...]]


def rows(given: Tensors) -> tuple[int, ...]:
    return (snippets.LENGTHS["M"],)


def tiles(given: Tensors) -> tuple[int, ...]:
    return (ct.cdiv(given["X"].shape[0], given["TILE"]),)


def split(given: Tensors) -> tuple[int, ...]:
    return (given["X"].shape[0], ct.cdiv(given["X"].shape[1], given["TILE"]))


def split_sums(given: Tensors) -> Any:
    """Sums of the parts of a row that Y has room for."""
    x, width, room = given["X"], given["TILE"], given["Y"].shape[1]
    parts = torch.stack([each.sum(1) for each in x.split(width, 1)], 1)
    return parts.sum(1, keepdim=True) if room == 1 else torch.nn.functional.pad(parts, (0, room - parts.shape[1]))


def shifted_exp_sums(given: Tensors) -> Any:
    x = given["X"][:, : given["N"]]
    return (x - x.max(1, keepdim=True).values).exp().sum(1, keepdim=True)


def by_row(x: Any) -> Any:
    return x.reshape(snippets.LENGTHS["M"], -1)


EXPECTED = {
    "copy_kernel": Kernel(grid=tiles, expected=lambda given: given["X"]),
    "copy_rows_kernel": Kernel(grid=rows, expected=lambda given: given["X"]),
    "copy_tiles_kernel": Kernel(
        grid=lambda given: (given["X"].shape[0] * ct.cdiv(given["X"].shape[1], given["TILE"]),),
        expected=lambda given: given["X"],
    ),
    "half_kernel": Kernel(grid=tiles, expected=lambda given: given["X"] / 2),
    "third_kernel": Kernel(grid=tiles, expected=lambda given: given["X"] / 3),
    "double_kernel": Kernel(grid=rows, expected=lambda given: given["X"] * 2),
    "relu_kernel": Kernel(grid=tiles, expected=lambda given: given["X"].relu()),
    "clamp_kernel": Kernel(grid=tiles, expected=lambda given: given["X"].relu()),
    "softplus_kernel": Kernel(grid=tiles, expected=lambda given: torch.nn.functional.softplus(given["X"])),
    "softplus_add_kernel": Kernel(
        grid=tiles, expected=lambda given: torch.nn.functional.softplus(given["X"]) + given["Z"]
    ),
    "row_sum_kernel": Kernel(grid=rows, expected=lambda given: by_row(given["X"]).sum(1)),
    "row_max_kernel": Kernel(grid=rows, expected=lambda given: given["X"].max(1).values),
    "row_size_kernel": Kernel(grid=rows, expected=lambda given: given["X"].abs().max(1).values),
    "mean_kernel": Kernel(grid=rows, expected=lambda given: given["X"].mean(1)),
    "variance_kernel": Kernel(grid=rows, expected=lambda given: given["X"].var(1, correction=0)),
    "exp_sum_kernel": Kernel(grid=rows, expected=lambda given: given["X"].exp().sum(1)),
    "shifted_exp_sum_kernel": Kernel(grid=rows, expected=shifted_exp_sums),
    "softmax_kernel": Kernel(grid=rows, expected=lambda given: given["X"].softmax(1)),
    "cumsum_kernel": Kernel(grid=rows, expected=lambda given: given["X"].cumsum(1)),
    "split_sum_kernel": Kernel(grid=split, expected=split_sums),
    "transpose_kernel": Kernel(
        grid=lambda given: (
            ct.cdiv(given["X"].shape[0], given["TILE_M"]),
            ct.cdiv(given["X"].shape[1], given["TILE_N"]),
        ),
        expected=lambda given: given["X"].T,
    ),
    "product_kernel": Kernel(grid=lambda given: (1,), expected=lambda given: given["A"] @ given["B"]),
    "matmul_kernel": Kernel(
        grid=lambda given: tuple(ct.cdiv(n, given["TILE"]) for n in given["C"].shape),
        expected=lambda given: given["A"] @ given["B"],
    ),
}


def cases(found: list[tuple[Rule, int, Any]]) -> list[Any]:
    return [pytest.param(snippet, id=f"{rule.code}-{number}") for rule, number, snippet in found]


def valid(rules: list[Rule]) -> list[Any]:
    return cases([(rule, number, each) for rule in rules for number, each in enumerate(rule.VALID)])


def invalid(rules: list[Rule]) -> list[Any]:
    return cases([(rule, number, each) for rule in rules for number, each in enumerate(rule.INVALID)])


def inputs(text: str) -> Iterator[dict[str, Any]]:
    """Arguments for the kernel of a snippet: usual ones, negative ones, large ones and rows that begin with -inf."""
    docstring = ast.get_docstring(snippets.kernel_of(text))
    lengths = dict(snippets.LENGTHS)
    if "N <= TILE" in docstring:
        lengths["TILE"] = 128
    if "multiple of TILE" in docstring:
        lengths["N"] = 2 * lengths["TILE"]
    changes = [torch.clone, lambda x: -x.abs() - 1, lambda x: x.abs() * 8]
    if "top the largest" in docstring:
        changes.append(lambda x: x.index_fill(1, torch.arange(lengths["TILE"]), -torch.inf))
    if "or NaN" in docstring:
        changes.append(lambda x: x.index_fill(0, torch.tensor(3), torch.nan))
    for change in changes:
        _, values = snippets.arguments(text, lengths)
        generator = torch.Generator().manual_seed(0)
        for name, value in values.items():
            if isinstance(value, torch.Tensor):
                filled = torch.zeros_like(value)
                if name not in ("Y", "C"):
                    filled = change(torch.randn(value.shape, generator=generator)).to(value.dtype)
                values[name] = filled
        yield values


def is_right(tmp_path: Path, text: str, values: dict[str, Any]) -> bool:
    """Whether the kernel computes what its name says, to within the rounding of its result, and without a fault."""
    name = snippets.kernel_of(text).name
    wide = {key: each.double() if isinstance(each, torch.Tensor) else each for key, each in values.items()}
    expected = EXPECTED[name].expected(wide)
    with enabled(check=True):
        given = {key: each.cuda() if isinstance(each, torch.Tensor) else each for key, each in values.items()}
        kernel = getattr(snippets.load(tmp_path, text), name)
        try:
            ct.launch(torch.cuda.current_stream(), EXPECTED[name].grid(given), kernel, tuple(given.values()))
        except CheckError:
            return False
        result = given["C" if "C" in given else "Y"].cpu()
    tolerance = {torch.float32: 1e-5, torch.float16: 1e-3}[result.dtype]
    return torch.allclose(
        result.double(), expected.reshape(result.shape), rtol=tolerance, atol=tolerance, equal_nan=True
    )


@pytest.mark.parametrize("text", valid(KERNELS))
def test_a_valid_kernel_computes_what_it_should(tmp_path: Path, text: str) -> None:
    assert all(is_right(tmp_path, text, values) for values in inputs(text))


@pytest.mark.parametrize("text", invalid(KERNELS))
def test_an_invalid_kernel_does_not(tmp_path: Path, text: str) -> None:
    assert not all(is_right(tmp_path, text, values) for values in inputs(text))


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Mapping[str, str]], Any]]:
    """Imports a snippet that is a package, whose dispatcher is that of the reference operators."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(files: Mapping[str, str]) -> Any:
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(exist_ok=True)
            (tmp_path / path).write_text(text)
        shutil.copy(BACKEND, tmp_path / "my_ops" / "_registry.py")
        importlib.invalidate_caches()
        return importlib.import_module("my_ops")

    yield write
    for name in [each for each in sys.modules if each.partition(".")[0] == "my_ops"]:
        del sys.modules[name]


def scaled(x: Any, factor: float = 1.0, bias: float = 0.0, clamp: float | None = None) -> Any:
    """What the stubs promise."""
    result = x * factor + bias
    return result if clamp is None else result.clamp(max=clamp)


def computed(scale: Callable[..., Any]) -> Iterator[bool]:
    """Whether an operator gives what its stub says, called by position, by keyword and with its defaults."""
    x = torch.arange(4.0)
    parameters = inspect.signature(scale).parameters
    more = {name: value for name, value in {"factor": 3.0, "bias": 1.0, "clamp": 2.0}.items() if name in parameters}
    calls = [(tuple(more.values()), {}), ((), more)]
    if parameters["factor"].default is not None:  # else the backend chooses
        calls.append(((), {}))
    for args, kwargs in calls:
        try:
            yield torch.equal(scale(x, *args, **kwargs), scaled(x, **dict(zip(more, args, strict=False)), **kwargs))
        except TypeError:
            continue  # an error is no wrong number


@pytest.mark.parametrize("files", valid(PACKAGES))
def test_a_valid_package_computes_what_its_stub_says(imported: Callable[..., Any], files: Mapping[str, str]) -> None:
    right = list(computed(imported(files).scale))
    assert len(right) >= 2
    assert all(right)


@pytest.mark.parametrize("files", invalid(PACKAGES))
def test_an_invalid_package_does_not(imported: Callable[..., Any], files: Mapping[str, str]) -> None:
    assert not all(computed(imported(files).scale))


def test_swapped_arguments_give_another_difference(tmp_path: Path) -> None:
    rule = next(each for each in RULES if each.code == "TW306")
    with enabled():
        a, b = torch.rand(1500).cuda(), torch.rand(1500).cuda()
        assert torch.equal(snippets.load(tmp_path, rule.VALID[0]).subtract(a, b), a - b)
        for text in rule.INVALID:
            assert torch.equal(snippets.load(tmp_path, text).subtract(a, b), b - a)
