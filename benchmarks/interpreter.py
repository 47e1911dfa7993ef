"""Time the interpreter on small kernels, which is what tests run on it; `--json FILE` writes the results.

Each figure is the median of its repetitions. Run on a quiet machine: torch uses all cores.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from collections.abc import Iterator
from dataclasses import asdict
from dataclasses import dataclass
from pathlib import Path

import cuda.tile as ct
import torch

from tilewright.cutile.signature import signature
from tilewright.interpret.frontend import typed_kernel
from tilewright.interpret.launch import Launcher
from tilewright.interpret.translate.kernel import translate

LOG2_E = 1.4426950408889634


@ct.kernel
def empty(X):
    """Does nothing."""


@ct.kernel
def softmax(X, Y, width: ct.Constant[int]):
    """A row in one tile."""
    row = ct.bid(0)
    x = ct.load(X, (row, 0), (1, width), padding_mode=ct.PaddingMode.NEG_INF)
    powers = ct.exp(x - ct.max(x, axis=1, keepdims=True))
    ct.store(Y, (row, 0), powers / ct.sum(powers, axis=1, keepdims=True))


@ct.kernel
def matmul(A, B, C, size: ct.Constant[int]):
    """A square tile of C in each block."""
    row, column = ct.bid(0), ct.bid(1)
    total = ct.zeros((size, size), ct.float32)
    for k in range(ct.num_tiles(A, 1, (size, size))):
        total = ct.mma(ct.load(A, (row, k), (size, size)), ct.load(B, (k, column), (size, size)), total)
    ct.store(C, (row, column), ct.astype(total, C.dtype))


@ct.kernel
def attention(
    Q,
    K,
    V,
    Out,
    scale: float,
    size: ct.Constant[int],
    width: ct.Constant[int],
    causal: ct.Constant[bool],
):
    """Softmax of scores is kept up to date over tiles of K and V, as flash attention does."""
    block, head, batch = ct.bid(0), ct.bid(1), ct.bid(2)
    q = ct.load(Q, (batch, head, block, 0), (1, 1, size, width)).reshape((size, width))
    highest = ct.full((size, 1), -1e30, ct.float32)
    weights = ct.zeros((size, 1), ct.float32)
    total = ct.zeros((size, width), ct.float32)
    rows = block * size + ct.arange(size, dtype=ct.int32)[:, None]
    blocks = block + 1 if causal else ct.num_tiles(K, 2, (1, 1, size, width))
    for j in range(blocks):
        k = ct.load(K, (batch, head, j, 0), (1, 1, size, width)).reshape((size, width))
        scores = ct.mma(q, ct.transpose(k), ct.zeros((size, size), ct.float32)) * (scale * LOG2_E)
        if causal:
            scores = ct.where(rows >= j * size + ct.arange(size, dtype=ct.int32)[None, :], scores, -1e30)
        higher = ct.maximum(highest, ct.max(scores, axis=1, keepdims=True))
        powers = ct.exp2(scores - higher)
        shrink = ct.exp2(highest - higher)
        weights = weights * shrink + ct.sum(powers, axis=1, keepdims=True)
        v = ct.load(V, (batch, head, j, 0), (1, 1, size, width)).reshape((size, width))
        total = ct.mma(ct.astype(powers, v.dtype), v, total * shrink)
        highest = higher
    result = ct.astype(total / weights, Out.dtype)
    ct.store(Out, (batch, head, block, 0), result.reshape((1, 1, size, width)))


@ct.kernel
def count_down(Counts, Out):
    """Each block leaves the loop in an iteration of its own."""
    block = ct.bid(0)
    left = ct.load(Counts, (block,), ())
    total = ct.zeros((1, 64), ct.float32)
    while left > 0:
        total = total + 1.0
        left -= 1
    ct.store(Out, (block, 0), total)


@dataclass(frozen=True)
class Figure:
    """One measured time, and the limit that it should keep."""

    name: str
    milliseconds: float
    limit: float | None = None


def milliseconds(function: Callable[[], object], repetitions: int) -> float:
    """Median time of a call, after one to warm up."""
    function()
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def figures(repetitions: int) -> Iterator[Figure]:
    """Measure all, checking results first."""
    launcher = Launcher()

    def timed(name: str, limit: float | None, grid: tuple[int, ...], kernel: object, *arguments: object) -> Figure:
        run = lambda: launcher.launch(0, grid, kernel, arguments)
        return Figure(name, milliseconds(run, repetitions), limit)

    torch.manual_seed(0)
    x = torch.randn(64, 1000)
    y = torch.empty_like(x)
    yield Figure("front end, softmax", milliseconds(lambda: specialise(softmax, x, y, 1024), repetitions), 50)
    yield timed("empty launch", 0.05, (1,), empty, x)
    yield timed("softmax 64x1000", 3, (64,), softmax, x, y, 1024)
    torch.testing.assert_close(y, torch.softmax(x, 1))

    a, b = torch.randn(2, 128, 128).half()
    c = torch.empty_like(a)
    yield timed("matmul 128x128x128 fp16, tiles 32x32", 2, (4, 4), matmul, a, b, c, 32)
    torch.testing.assert_close(c, a @ b)

    q, k, v = torch.randn(3, 2, 4, 128, 64).half()
    o = torch.empty_like(q)
    for causal, name in ((False, "attention 2x4x128x64 fp16, tiles of 32"), (True, "the same, causal")):
        yield timed(name, 8, (4, 4, 2), attention, q, k, v, o, 0.125, 32, 64, causal)
        expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        torch.testing.assert_close(o, expected, atol=2e-3, rtol=2e-2)

    for exponent in range(8, 15):
        x = torch.randn(2**exponent, 64)
        y = torch.empty_like(x)
        yield timed(f"softmax of 2^{exponent} rows of 64", None, (2**exponent,), softmax, x, y, 64)

    for exponent in range(6, 13):
        counts = torch.randperm(2**exponent, dtype=torch.int32)
        y = torch.empty(2**exponent, 64)
        yield timed(f"loop that 2^{exponent} blocks leave one by one", None, (2**exponent,), count_down, counts, y)
        torch.testing.assert_close(y, counts[:, None].expand_as(y).float())


def specialise(kernel: object, *arguments: object) -> object:
    """Type-check and translate a kernel, which the first launch of each signature does."""
    parameters = signature(kernel, arguments, aligned=True).parameters
    return translate(typed_kernel(kernel._annotated_function, parameters, "sm_90"))  # type: ignore[attr-defined]


def main() -> None:
    """Print a table, and write it as JSON if asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to FILE")
    parser.add_argument("--repetitions", type=int, default=50)
    options = parser.parse_args()
    measured = []
    for figure in figures(options.repetitions):
        measured.append(figure)
        limit = "" if figure.limit is None else f"limit {figure.limit:g} ms"
        print(f"{figure.name:45}{figure.milliseconds:10.3f} ms   {limit}")
    if options.json:
        options.json.write_text(json.dumps([asdict(figure) for figure in measured], indent=1) + "\n")


if __name__ == "__main__":
    main()
