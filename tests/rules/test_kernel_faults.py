"""Faults put into our own kernels, one at a time, are nearly all found from the source."""

from pathlib import Path

import pytest

from tilewright.rules.engine import check_sources
from tilewright.rules.finding import Severity

OPERATORS = Path(__file__).parents[2] / "reference_ops"
LEAST = 0.85
FAULTS = [
    (
        "softmax",
        "    t = ct.load(A, index, tile, padding_mode=ct.PaddingMode.ZERO, allow_tma=False)",
        "    t = ct.load(A, index, tile, allow_tma=False)",
    ),
    ("softmax", "txs[-1], -math.inf)", "txs[-1], 0.0)"),
    ("softmax", "* TILE_N, _load(X, (m, r, j), tile), -math.inf)", "* TILE_N, _load(X, (m, r, j), tile), 0.0)"),
    (
        "softmax",
        "        tx = ct.where(lane < X.shape[2] - ct.int64(j) * TILE_N, _load(X, (m, r, j), tile), -math.inf)",
        "        tx = _load(X, (m, r, j), tile)",
    ),
    ("softmax", "    txs = (*txs[:-1], ct.where(lane < X.shape[2] - (TILES - 1) * TILE_N, txs[-1], -math.inf))\n", ""),
    (
        "softmax",
        "_load(X, (m, r, j), (TILE_M, TILE_R, TILE_N))",
        "_load(X, (m, r, j * TILE_N), (TILE_M, TILE_R, TILE_N))",
    ),
    (
        "softmax",
        "ct.store(dX, (m, r, j), tdx.astype(dX.dtype), allow_tma=False)",
        "ct.store(dX, (m, r, j * TILE_N), tdx.astype(dX.dtype), allow_tma=False)",
    ),
    (
        "softmax",
        "new = ct.maximum(top, ct.max(tx, 2, keepdims=True))",
        "new = ct.max(top, ct.max(tx, 2, keepdims=True))",
    ),
    (
        "softmax",
        "    return t.astype(ct.static_eval(ct.float64 if A.dtype == ct.float64 else ct.float32))",
        "    return t",
    ),
    ("softmax", "ct.exp2(t * LOG2E, flush_to_zero=True)", "math.exp2(t * LOG2E)"),
    ("softmax", "ct.exp2(t * LOG2E, flush_to_zero=True)", "ct.softmax(t * LOG2E)"),
    ("softmax", "lane = ct.arange(TILE_N, dtype=ct.int32)", "lane = ct.arange(0, TILE_N)"),
    ("softmax", "lane = ct.arange(TILE_N, dtype=ct.int32)", "lane = ct.arange(TILE_N)"),
    ("softmax", "base = ct.where(new == -math.inf, 0.0, new)", "base = new"),
    (
        "softmax",
        "ct.store(Y, (m, r, j), (tys[j] * scale).astype(Y.dtype), allow_tma=False)",
        "ct.store(Y, (m, r), (tys[j] * scale).astype(Y.dtype), allow_tma=False)",
    ),
    (
        "softmax",
        'TILE_M: ConstInt, TILE_R: ConstInt, TILE_N: ConstInt, TILES: ConstInt):\n    """Rows along N of X',
        'TILE_M, TILE_R: ConstInt, TILE_N: ConstInt, TILES: ConstInt):\n    """Rows along N of X',
    ),
    ("softmax", "top = ct.max(top, 2, keepdims=True)", "top = top.max(2, keepdims=True)"),
    ("softmax", "scale = 1.0 / ct.sum(total, 2, keepdims=True)", "scale = 1.0 / ct.sum(total, dim=2, keepdims=True)"),
    ("softmax", "total = ct.zeros((TILE_M, TILE_R, 1), ACC)", "total = 0"),
    (
        "matmul",
        "ta = ct.load(A, (i, m, k), (1, TILE_M, TILE_K), padding_mode=ZERO)",
        "ta = ct.load(A, (i, m, k), (1, TILE_M, TILE_K))",
    ),
    (
        "matmul",
        "tb = ct.load(B, (i, k, n), (1, TILE_K, TILE_N), padding_mode=ZERO)",
        "tb = ct.load(B, (i, k, n), (1, TILE_K, TILE_N))",
    ),
    ("matmul", "(i, m, k), (1, TILE_M, TILE_K)", "(i, m * TILE_M, k), (1, TILE_M, TILE_K)"),
    ("matmul", "(i, k, n), (1, TILE_K, TILE_N)", "(i, k * TILE_K, n), (1, TILE_K, TILE_N)"),
    ("matmul", "tacc = ct.mma(ta, tb, tacc)", "ct.mma(ta, tb, tacc)"),
    ("matmul", "tacc = ct.mma(ta, tb, tacc)", "tacc = tacc + ta @ tb"),
    ("matmul", "tacc = ct.mma(ta, tb, tacc)", "tacc = tacc + ct.matmul(ta, tb)"),
    ("matmul", "tacc = ct.zeros((TILE_M, TILE_N), ct.float32)", "tacc = ct.zeros((TILE_M, TILE_N), ct.float16)"),
    ("matmul", ".reshape((TILE_M, TILE_K))", ""),
    ("matmul", "tacc.astype(Out.dtype).reshape((1, TILE_M, TILE_N))", "tacc.astype(Out.dtype)"),
    ("matmul", "tacc.astype(Out.dtype).reshape", "tacc.reshape"),
    ("matmul", "ct.store(Out, (i, m, n)", "ct.store(Out, (i, m, 0)"),
    (
        "matmul",
        "padding_mode=ZERO).reshape((TILE_M, TILE_K))",
        "padding_mode=ct.PaddingMode.NEG_INF).reshape((TILE_M, TILE_K))",
    ),
    (
        "gelu",
        "rows = i * TILE[0] + ct.arange(TILE[0], dtype=ct.int32)",
        "rows = i + ct.arange(TILE[0], dtype=ct.int32)",
    ),
    (
        "gelu",
        "columns = j * TILE[1] + ct.arange(TILE[1], dtype=ct.int32)",
        "columns = j + ct.arange(TILE[1], dtype=ct.int32)",
    ),
    ("gelu", "return tile.astype(ct.float32)", "return tile"),
    ("gelu", "ct.exp2(-0.72134752 * x * x, flush_to_zero=True)", "ct.erf(x)"),
    ("gelu", "index = (ct.bid(1), ct.bid(0))", "index = (ct.bid(1) * TILE[0], ct.bid(0) * TILE[1])"),
    (
        "gelu",
        "ct.scatter(Out, _place(Out, TILE), tout.astype(Out.dtype))",
        "ct.scatter(Out, _place(Out, TILE), tout.astype(Out.dtype), check_bounds=False)",
    ),
    ("gelu", "i, j = ct.bid(1), ct.bid(0)", "i, j = ct.bid(3), ct.bid(0)"),
    ("gelu", "STRIDED: ConstBool,\n", "STRIDED: ConstBool,\n    N: ConstBool,\n"),
    (
        "layer_norm",
        "t = ct.load(A, index, tile, padding_mode=ct.PaddingMode.ZERO, allow_tma=False)",
        "t = ct.load(A, index, tile, allow_tma=False)",
    ),
    ("layer_norm", "        tx = ct.where(lane < X.shape[1] - ct.int64(j) * TILE_N, tx, 0.0)\n", ""),
    ("layer_norm", "    txs = (*centered[:-1], ct.where(inside, centered[-1], 0.0))", "    txs = centered"),
    ("layer_norm", "mean = _sum(txs) / X.shape[1]", "mean = _sum(txs) / (TILE_N * TILES)"),
    (
        "layer_norm",
        "shift = ct.sum(total, 1, keepdims=True) / X.shape[1]",
        "shift = ct.sum(total, 1, keepdims=True) / TILE_N",
    ),
    ("layer_norm", "rstd = ct.rsqrt(_dot(txs, txs)", "rstd = ct.static_rsqrt(_dot(txs, txs)"),
    (
        "layer_norm",
        "ct.store(Y, index, tx.astype(Y.dtype), allow_tma=False)",
        "ct.store(Y, index, tx.to(Y.dtype), allow_tma=False)",
    ),
    ("rms_norm", "padding_mode=ct.PaddingMode.ZERO, ", ""),
    ("row_sum", "PADDING = ct.PaddingMode.ZERO", "PADDING = ct.PaddingMode.NEG_INF"),
    ("row_sum", "padding_mode=PADDING, ", ""),
    ("row_sum", "acc = ct.full(tile, 0, ACC)", "acc = 0"),
    ("row_sum", "acc = ct.full(tile, 0, ACC)", "acc = ct.full(tile, value=0, dtype=ACC)"),
    (
        "row_sum",
        "index = (b, k, i) if AXIS == 1 else (b, i, k)",
        "index = (b, k * TILE_K, i) if AXIS == 1 else (b, i, k * TILE_K)",
    ),
    (
        "row_sum",
        "ct.store(Y, index, ty.astype(Y.dtype), allow_tma=False)",
        "ct.store(Y, (b, 0, i), ty.astype(Y.dtype), allow_tma=False)",
    ),
    ("argmax", "return ct.gather(X, index, padding_value=-math.inf)", "return ct.gather(X, index, padding_value=0)"),
    (
        "argmax",
        "return ct.gather(X, index, padding_value=-math.inf)",
        "return ct.gather(X, index, padding_mode=-math.inf)",
    ),
    (
        "argmax",
        "                tx = ct.where(lane < valid, tx, -math.inf)",
        "                tx = ct.where(lane < valid, tx, 0.0)",
    ),
]


def is_found(operator: str, before: str, after: str) -> bool:
    path = OPERATORS / operator / "cutile.py"
    text = path.read_text(encoding="utf-8")
    assert before in text, f"{operator} has no {before!r} any more: choose another fault"
    report = check_sources({path: text.replace(before, after, 1)})
    return any(each.severity is not Severity.INFO for each in report.findings)


def test_nearly_all_faults_are_found() -> None:
    missed = [fault for fault in FAULTS if not is_found(*fault)]
    assert 1 - len(missed) / len(FAULTS) >= LEAST, missed


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
