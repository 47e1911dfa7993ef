"""What is often written wrong in kernels is found from the source."""

from pathlib import Path

import pytest

from tilewright.rules.engine import check_sources
from tilewright.rules.finding import Severity

HEAD = """
import math
import cuda.tile as ct
import torch
import triton

ConstInt = ct.Constant[int]
"""

SOFTMAX_ZERO_PAD = """
@ct.kernel
def k(x, y, TILE: ConstInt):
    row = ct.bid(0)
    t = ct.load(x, index=(row, 0), shape=(1, TILE), padding_mode=ct.PaddingMode.ZERO)
    t = ct.astype(t, ct.float32)
    m = ct.max(t, axis=1, keepdims=True)
    e = ct.exp(t - m)
    s = ct.sum(e, axis=1, keepdims=True)
    ct.store(y, index=(row, 0), tile=ct.astype(e / s, y.dtype))
def softmax(x):
    y = torch.empty_like(x)
    M, N = x.shape
    TILE = triton.next_power_of_2(N)
    ct.launch(torch.cuda.current_stream(), (M,), k, (x, y, TILE))
    return y
"""

GATHER_MAX = """
@ct.kernel
def k(x, y, TILE: ConstInt):
    row = ct.bid(0)
    offs = ct.arange(TILE, dtype=ct.int32)
    t = ct.gather(x, (row, offs))
    ct.scatter(y, row, ct.max(t))
def f(x):
    y = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
    TILE = 1 << (x.shape[1] - 1).bit_length()
    ct.launch(torch.cuda.current_stream(), (x.shape[0],), k, (x, y, TILE))
"""

PARTIAL_SUM = """
@ct.kernel
def k(x, y, B: ConstInt):
    i = ct.bid(0)
    t = ct.load(x, (i,), (B,)).astype(ct.float32)
    ct.store(y, (i,), ct.sum(t))
def f(x):
    n = x.numel()
    B = 1024
    grid = (ct.cdiv(n, B),)
    y = torch.empty(grid, device=x.device, dtype=torch.float32)
    ct.launch(torch.cuda.current_stream(), grid, k, (x, y, B))
"""

RMSNORM_DIVISOR = """
@ct.kernel
def k(x, w, y, eps: ct.Constant[float], B: ConstInt):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (1, B), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    ms = ct.sum(t * t, axis=1, keepdims=True) * (1.0 / B)
    ct.store(y, (i, 0), (t * ct.rsqrt(ms + eps)).astype(y.dtype))
def f(x, w, eps):
    M, N = x.shape
    y = torch.empty_like(x)
    ct.launch(torch.cuda.current_stream(), (M,), k, (x, w, y, eps, 2 ** math.ceil(math.log2(N))))
"""

ELEMENTWISE_ELEM_INDEX = """
@ct.kernel
def k(x, y, n, B: ConstInt):
    off = ct.bid(0) * B
    ct.store(y, index=(off,), tile=ct.load(x, index=(off,), shape=(B,)))
"""

LITERAL_BLOCK = """
@ct.kernel
def k(x, y):
    i = ct.bid(0)
    t = ct.load(x, (i * 1024,), (1024,))
    ct.store(y, (i * 1024,), t)
"""

LOOP_ELEM = """
@ct.kernel
def k(A, B, C, TM: ConstInt, TN: ConstInt, TK: ConstInt):
    m, n = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    for kk in range(0, A.shape[1], TK):
        a = ct.load(A, (m, kk), (TM, TK), padding_mode=ct.PaddingMode.ZERO)
        b = ct.load(B, (kk, n), (TK, TN), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(a, b, acc)
    ct.store(C, (m, n), acc.astype(C.dtype))
"""

ATTENTION_V_UNPADDED = """
@ct.kernel
def k(Q, K, V, O, S: int, TM: ConstInt, TN: ConstInt, D: ConstInt):
    i = ct.bid(0)
    q = ct.load(Q, (i, 0), (TM, D), padding_mode=ct.PaddingMode.ZERO)
    m = ct.full((TM, 1), -1e30, ct.float32)
    l = ct.zeros((TM, 1), ct.float32)
    acc = ct.zeros((TM, D), ct.float32)
    for j in range(ct.cdiv(S, TN)):
        kt = ct.load(K, (j, 0), (TN, D), padding_mode=ct.PaddingMode.ZERO)
        s = ct.mma(q, ct.transpose(kt), ct.zeros((TM, TN), ct.float32))
        cols = j * TN + ct.arange(TN, dtype=ct.int32)
        s = ct.where(cols[None, :] < S, s, -math.inf)
        new = ct.maximum(m, ct.max(s, 1, keepdims=True))
        p = ct.exp(s - new)
        a = ct.exp(m - new)
        l = l * a + ct.sum(p, 1, keepdims=True)
        v = ct.load(V, (j, 0), (TN, D))
        acc = ct.mma(p.astype(V.dtype), v, acc * a)
        m = new
    ct.store(O, (i, 0), (acc / l).astype(O.dtype))
"""

ATTENTION_NO_MASK = """
@ct.kernel
def k(Q, K, V, O, S: int, TM: ConstInt, TN: ConstInt, D: ConstInt):
    i = ct.bid(0)
    q = ct.load(Q, (i, 0), (TM, D), padding_mode=ct.PaddingMode.ZERO)
    m = ct.full((TM, 1), -1e30, ct.float32)
    l = ct.zeros((TM, 1), ct.float32)
    acc = ct.zeros((TM, D), ct.float32)
    for j in range(ct.cdiv(S, TN)):
        kt = ct.load(K, (j, 0), (TN, D), padding_mode=ct.PaddingMode.ZERO)
        s = ct.mma(q, ct.transpose(kt), ct.zeros((TM, TN), ct.float32))
        new = ct.maximum(m, ct.max(s, 1, keepdims=True))
        p = ct.exp(s - new)
        a = ct.exp(m - new)
        l = l * a + ct.sum(p, 1, keepdims=True)
        v = ct.load(V, (j, 0), (TN, D), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(p.astype(V.dtype), v, acc * a)
        m = new
    ct.store(O, (i, 0), (acc / l).astype(O.dtype))
"""

FP16_SUM = """
@ct.kernel
def k(x, y, B: ConstInt):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (1, B), padding_mode=ct.PaddingMode.ZERO)
    ct.store(y, (i, 0), ct.sum(t, axis=1, keepdims=True))
"""

RAW_DIM = """
@ct.kernel
def k(x, y, N: ConstInt):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (1, N))
    ct.store(y, (i, 0), t)
def f(x, y):
    M, N = x.shape
    ct.launch(torch.cuda.current_stream(), (M,), k, (x, y, N))
"""

SPLIT_K_RACE = """
@ct.kernel
def k(A, B, C, TM: ConstInt, TN: ConstInt, TK: ConstInt, SPLIT: ConstInt):
    m, n, s = ct.bid(0), ct.bid(1), ct.bid(2)
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    for kk in range(s, ct.cdiv(A.shape[1], TK), SPLIT):
        a = ct.load(A, (m, kk), (TM, TK), padding_mode=ct.PaddingMode.ZERO)
        b = ct.load(B, (kk, n), (TK, TN), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(a, b, acc)
    ct.store(C, (m, n), acc.astype(C.dtype))
"""

FLAT_ROWS = """
@ct.kernel
def k(x, y, N: ConstInt, TILE: ConstInt):
    row = ct.bid(0)
    offs = row * N + ct.arange(TILE, dtype=ct.int32)
    t = ct.gather(x, offs).astype(ct.float32)
    ct.scatter(y, row, ct.sum(t))
def f(x):
    y = torch.empty(x.shape[0], device=x.device, dtype=torch.float32)
    M, N = x.shape
    ct.launch(torch.cuda.current_stream(), (M,), k, (x.view(-1), y, N, triton.next_power_of_2(N)))
"""

GELU_HALF = """
@ct.kernel
def k(x, y, B: ConstInt):
    i = ct.bid(0)
    t = ct.load(x, (i,), (B,))
    ct.store(y, (i,), 0.5 * t * (1.0 + ct.tanh(0.79788 * (t + 0.044715 * t * t * t))))
"""

CUMSUM = """
@ct.kernel
def k(x, y, B: ConstInt):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (1, B)).astype(ct.float32)
    ct.store(y, (i, 0), ct.cumsum(t).astype(y.dtype))
"""

FROM_IMPORT = """
from cuda.tile import bid, load, store
@ct.kernel
def k(x, y, B: ConstInt):
    off = bid(0) * B
    store(y, (off,), load(x, (off,), (B,)))
"""

TRANSPOSED_STORE_INDEX = """
@ct.kernel
def k(x, y, TM: ConstInt, TN: ConstInt):
    i, j = ct.bid(0), ct.bid(1)
    t = ct.load(x, (i, j), (TM, TN))
    ct.store(y, (i, j), ct.transpose(t))
"""

WRONG = {
    "softmax zero pad": (SOFTMAX_ZERO_PAD, {"TW212", "TW211"}),
    "gather max": (GATHER_MAX, {"TW211"}),
    "partial sum": (PARTIAL_SUM, {"TW210"}),
    "rmsnorm divisor": (RMSNORM_DIVISOR, {"TW213"}),
    "elementwise elem index": (ELEMENTWISE_ELEM_INDEX, {"TW201"}),
    "literal block": (LITERAL_BLOCK, {"TW201"}),
    "loop elem": (LOOP_ELEM, {"TW201"}),
    "attention v unpadded": (ATTENTION_V_UNPADDED, {"TW210"}),
    "attention no mask": (ATTENTION_NO_MASK, {"TW212", "TW211"}),
    "fp16 sum": (FP16_SUM, {"TW230"}),
    "raw dim": (RAW_DIM, {"TW220"}),
    "split k race": (SPLIT_K_RACE, {"TW203"}),
    "flat rows": (FLAT_ROWS, {"TW217"}),
    "gelu half": (GELU_HALF, {"TW232"}),
    "cumsum": (CUMSUM, {"TW252"}),
    "from import": (FROM_IMPORT, {"TW201"}),
    "transposed store index": (TRANSPOSED_STORE_INDEX, {"TW205"}),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_often_written_wrong_is_found(name: str) -> None:
    text, codes = WRONG[name]
    report = check_sources({Path("operator.py"): HEAD + text})
    assert codes <= {each.code for each in report.findings}


def severities(code: str, text: str) -> list[Severity]:
    report = check_sources({Path("operator.py"): HEAD + text})
    return [each.severity for each in report.findings if each.code == code]


@pytest.mark.parametrize(("condition", "count"), [("TWICE", 1), ("not TWICE", 1), ("j == 0", 0)])
def test_stores_that_all_blocks_or_none_make_are_a_race(condition: str, count: int) -> None:
    text = """
@ct.kernel
def k(x, y, B: ConstInt, TWICE: ct.Constant[bool]):
    i, j = ct.bid(0), ct.bid(1)
    t = ct.load(x, (i, j), (1, B))
    if {condition}:
        ct.store(y, (i, 0), t + t)
"""
    assert len(severities("TW203", text.format(condition=condition))) == count


@pytest.mark.parametrize(("index", "count"), [("m, 0", 1), ("0, n", 1), ("m, n", 0), ("ct.bid(0), n", 0)])
def test_a_store_needs_both_parts_of_a_number_or_all_of_it(index: str, count: int) -> None:
    text = """
@ct.kernel
def k(x, y, B: ConstInt):
    across = ct.cdiv(x.shape[1], B)
    m, n = ct.bid(0) // across, ct.bid(0) % across
    ct.store(y, ({index}), ct.load(x, (m, n), (1, B)))
"""
    assert len(severities("TW203", text.format(index=index))) == count


SCORES = "ct.load(x, (ct.bid(0), j), (16, B), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)"
PRODUCTS = "ct.mma(ct.load(q, (ct.bid(0), 0), (16, 16)), ct.load(x, (0, j), (16, B)), ct.zeros((16, B), ct.float32))"


@pytest.mark.parametrize(
    ("scores", "shift", "expected"),
    [
        (SCORES, "new", [Severity.WARNING]),
        (PRODUCTS, "new", [Severity.INFO]),
        (SCORES, "ct.where(ct.abs(new) == math.inf, 0.0, new)", []),
    ],
)
def test_rows_that_a_mask_may_empty(scores: str, shift: str, expected: list[Severity]) -> None:
    text = f"""
@ct.kernel
def k(q, x, y, n: int, B: ConstInt):
    top = ct.full((16, 1), -math.inf, ct.float32)
    total = ct.zeros((16, 1), ct.float32)
    for j in range(ct.cdiv(n, B)):
        t = {scores}
        t = ct.where(j * B + ct.arange(B, dtype=ct.int32)[None, :] < n, t, -math.inf)
        new = ct.maximum(top, ct.max(t, 1, keepdims=True))
        shift = {shift}
        total = total * ct.exp(top - shift) + ct.sum(ct.exp(t - shift), 1, keepdims=True)
        top = new
    ct.store(y, (ct.bid(0), 0), total.astype(y.dtype))
"""
    assert severities("TW216", text) == expected


@pytest.mark.parametrize(("axes", "count"), [((1,), 0), ((0,), 1), ((1, 0), 0)])
def test_sums_beside_that_of_a_softmax_may_be_along_another_axis(axes: tuple[int, ...], count: int) -> None:
    sums = "".join(f"    ct.store(y, ({axis}, 0), ct.sum(e, {axis}, keepdims=True))\n" for axis in axes)
    text = f"""
@ct.kernel
def k(x, y, B: ConstInt):
    t = ct.load(x, (0, 0), (B, B))
    e = ct.exp(t - ct.max(t, 1, keepdims=True))
{sums}"""
    assert len(severities("TW254", text)) == count
