"""Rendered files read as if written by hand: ruff finds nothing to say, for every combination of answers."""

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import ROOT
from .conftest import rendered

LONG_NAME = "a23456789_123456789_123456789_123456789_123456789_123456789"
FAMILIES = sorted(path.parent.name for path in (ROOT / "template/_partials").glob("*/family.yml"))
RULES = "E,W,F,I,B,UP,RUF,C4"
SETTINGS = ["--isolated", "--no-cache", "--line-length", "120"]
ISORT = [
    *("--config", 'lint.isort.known-first-party = ["my_ops", "tilegym"]'),
    *("--config", "lint.isort.force-single-line = true"),
]


def combinations() -> dict[str, dict[str, Any]]:
    """Answers by operator name; the name says what they are."""
    found: dict[str, dict[str, Any]] = {f"default_{family}": {"family": family} for family in FAMILIES}
    formulas = {
        "one": "gelu(x)",
        "scalars": "alpha * x + beta, alpha=1.0, beta=-2.5",
        "locals": "t = x * y; u = sigmoid(t) ** 2; where(u > 0.5, u, -t) / (1 + z**2)",
        "four": "a * b + c * d",
        "powers": "-x ** 2 + x ** -2 + exp(-y ** -x ** 2) - (-x) ** y ** 2 * 2 ** -exp(x) ** 2",
    }
    for name, formula in formulas.items():
        found[f"elementwise_{name}"] = {"family": "elementwise", "formula": formula}
    found["elementwise_gradient"] = {"family": "elementwise", "formula": "x * y", "grad_formula": "grad * y; grad * x"}
    variants = {
        "gated": ["silu_and_mul", "gelu_and_mul", "swiglu"],
        "softmax": ["softmax", "log_softmax"],
        "row_norm": ["rms_norm", "layer_norm", "add_rms_norm"],
        "rope": ["half", "interleaved"],
        "channel_norm": ["group_norm", "instance_norm", "batch_norm"],
        "cross_entropy": ["cross_entropy", "linear_cross_entropy"],
        "embedding": ["embedding", "gather", "scatter_add"],
    }
    for family, names in variants.items():
        for variant, backward in itertools.product(names, [False, True]):
            op = f"{family}_{variant}_backward" if backward else f"{family}_{variant}"
            found[op] = {"family": family, "variant": variant, "backward": backward}
    for precision in ["tf32", "3xtf32"]:
        found[f"linear_cross_entropy_{precision}"] = {
            **found["cross_entropy_linear_cross_entropy_backward"],
            "precision": precision,
        }
    found[LONG_NAME.replace("a", "l")] = found["cross_entropy_linear_cross_entropy_backward"]
    for variant, precision in itertools.product(["lstm", "gru"], ["ieee", "tf32", "3xtf32"]):
        found[f"recurrent_{variant}_{precision}"] = {"family": "recurrent", "variant": variant, "precision": precision}
    found[LONG_NAME.replace("a", "g")] = {"family": "recurrent", "variant": "gru"}
    for backward in [False, True]:
        found["dropout_backward" if backward else "dropout_forward"] = {"family": "dropout", "backward": backward}
    for variant in ["sum", "mean", "max", "min", "prod", "argmax", "argmin", "logsumexp"]:
        found[f"reduction_{variant}"] = {"family": "reduction", "variant": variant}
    for variant, dtypes in itertools.product(
        ["cumsum", "cumprod", "cummax", "cummin"], [["bfloat16"], ["int32", "float64"]]
    ):
        found[f"scan_{variant}_{dtypes[0]}"] = {"family": "scan", "variant": variant, "dtypes": dtypes}
    for precision, bias, epilogue in itertools.product(
        ["ieee", "tf32", "3xtf32"], [False, True], ["", "relu(acc) * scale"]
    ):
        op = f"matmul_{precision}" + ("_bias" if bias else "") + ("_epilogue" if epilogue else "")
        found[op] = {"family": "matmul", "precision": precision, "bias": bias, "epilogue": epilogue}
    found["matmul_bmm"] = {"family": "matmul", "variant": "bmm", "dtypes": ["float64", "bfloat16"]}
    found["matmul_bmm_epilogue"] = {"family": "matmul", "variant": "bmm", "bias": True, "epilogue": "relu(acc) * scale"}
    found["matmul_bmm_scalars"] = {**found["matmul_bmm"], "epilogue": "alpha * acc + beta; alpha = 2.0; beta = 0.1"}
    for bias, epilogue, dtype in itertools.product(
        [False, True],
        ["", "relu(acc) * scale", "acc * sigmoid(acc) * alpha, alpha=2.0"],
        ["float8_e4m3fn", "float8_e5m2"],
    ):
        op = f"scaled_{dtype}" + ("_bias" if bias else "") + {"r": "_scale", "a": "_alpha"}.get(epilogue[:1], "")
        found[op] = {"family": "scaled_matmul", "bias": bias, "epilogue": epilogue, "dtypes": [dtype]}
    for variant, bias, epilogue in itertools.product(
        ["conv1d", "conv2d", "conv3d"],
        [False, True],
        ["", "relu(acc) * scale", "acc * sigmoid(acc) * alpha, alpha=2.0"],
    ):
        op = f"conv_{variant}" + ("_bias" if bias else "") + {"r": "_scale", "a": "_alpha"}.get(epilogue[:1], "")
        found[op] = {"family": "conv", "variant": variant, "bias": bias, "epilogue": epilogue}
        transposed = variant.replace("conv", "conv_transpose")
        found[f"transpose_{op}"] = {**found[op], "family": "conv_transpose", "variant": transposed}
    for variant, rank in itertools.product(
        ["max_pool", "max_pool_with_indices", "avg_pool", "adaptive_max_pool", "adaptive_avg_pool"], [1, 2, 3]
    ):
        found[f"pool_{variant}_{rank}"] = {"family": "pool", "variant": variant, "rank": rank}
    for family, precision in itertools.product(
        ["attention", "attention_decode", "grouped_matmul"], ["ieee", "tf32", "3xtf32"]
    ):
        found[f"{family}_{precision}"] = {"family": family, "precision": precision}
    for family in FAMILIES:
        if "bfloat16" in yaml.safe_load((ROOT / f"template/_partials/{family}/family.yml").read_text())["dtypes"]:
            found[f"{family}_half"] = {"family": family, "dtypes": ["float16", "bfloat16"]}
    for variant, dtypes in itertools.product(
        ["transpose", "permute", "cat", "pad"], [["bfloat16"], ["int32", "float64"]]
    ):
        found[f"movement_{variant}_{dtypes[0]}"] = {"family": "movement", "variant": variant, "dtypes": dtypes}
    for variant, dtypes in itertools.product(["fp8", "int8"], [["bfloat16"], ["float32", "float16"]]):
        found[f"quantize_{variant}_{dtypes[0]}"] = {"family": "quantize", "variant": variant, "dtypes": dtypes}
    for variant in variants["embedding"]:
        dtypes = ["int32", "float64"] if variant == "gather" else ["int64"]
        found[f"embedding_{variant}_integers"] = {"family": "embedding", "variant": variant, "dtypes": dtypes}
    for dtypes in [["float64"], ["int64"], ["bfloat16"], ["float32", "int32"], ["bfloat16", "float64", "int64"]]:
        found[f"histogram_histc_{'_'.join(dtypes)}"] = {"family": "histogram", "variant": "histc", "dtypes": dtypes}
    for dtypes in [["int64"], ["int32"], ["int32", "int64"]]:
        name = f"histogram_bincount_{'_'.join(dtypes)}"
        found[name] = {"family": "histogram", "variant": "bincount", "dtypes": dtypes}
    found["topk_half"] = {"family": "topk", "dtypes": ["bfloat16"]}
    found["attention_backward"] = {"family": "attention", "precision": "tf32", "backward": True}
    for dtypes, precision, backward in itertools.product(
        [["float32"], ["float16", "bfloat16"], ["float32", "bfloat16"]], ["ieee", "tf32", "3xtf32"], [False, True]
    ):
        found[f"attention_varlen_{len(found)}"] = {
            "family": "attention",
            "variant": "varlen",
            "dtypes": dtypes,
            "precision": precision,
            "backward": backward,
        }
    found["attention_half_backward"] = {"family": "attention", "dtypes": ["bfloat16"], "backward": True}
    found["attention_single_backward"] = {"family": "attention", "dtypes": ["float32"], "backward": True}
    found["softmax_double"] = {"family": "softmax", "dtypes": ["float64"]}
    found["row_norm_double"] = {**found["row_norm_add_rms_norm_backward"], "dtypes": ["float64"]}
    found["gated_half"] = {"family": "gated", "dtypes": ["bfloat16"]}
    return found


def write(answers: dict[str, Any], folder: Path) -> None:
    for file in rendered(answers).files:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content)


def complaints(folder: Path) -> str:
    """What ruff says about lint and format, nothing where it has nothing to say."""
    found = ""
    for arguments in (
        ["check", "--select", RULES, "--ignore", "RUF012", *ISORT, "--output-format", "concise"],
        ["format", "--diff"],
    ):
        command = [sys.executable, "-m", "ruff", *arguments, "--quiet", *SETTINGS, "."]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        found += done.stdout + done.stderr
    return found


def test_ruff_complains_about_lint_and_format(tmp_path: Path) -> None:
    (tmp_path / "lint.py").write_text("import os\n")
    (tmp_path / "format.py").write_text("x  =  1\n")
    assert "F401" in complaints(tmp_path)
    assert "+x = 1" in complaints(tmp_path)


@pytest.mark.parametrize(
    ("layout", "placement"),
    [
        ("standalone", None),
        ("tilegym", "main"),
        ("tilegym", "experimental"),
        ("single_file", None),
    ],
)
def test_ruff_finds_nothing_for_any_answers(layout: str, placement: str | None, tmp_path: Path) -> None:
    for op, answers in combinations().items():
        data = {"op": op, "layout": layout, **answers}
        if placement:
            data["placement"] = placement
        write(data, tmp_path)
    assert complaints(tmp_path) == ""


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("layout", ["standalone", "tilegym", "single_file"])
def test_the_longest_name_fits(layout: str, family: str, tmp_path: Path) -> None:
    data = {"op": LONG_NAME, "layout": layout, "family": family, "backward": True}
    write(data, tmp_path)
    assert complaints(tmp_path) == ""


@pytest.mark.parametrize(("family", "variant"), [("topk", ""), ("quantize", "fp8"), ("quantize", "int8")])
def test_tilegym_compares_results_that_are_not_alike_one_by_one(family: str, variant: str) -> None:
    answers = {"op": "my_op", "family": family, "layout": "tilegym"} | ({"variant": variant} if variant else {})
    (test,) = (file.content.decode() for file in rendered(answers).files if file.path.name == "test_my_op.py")
    assert "self.assertCorrectness(my_op, self.reference, kwargs, multiple_outputs=True, " in test


@pytest.mark.parametrize(
    ("answers", "line"),
    [
        ({"epilogue": "alpha * acc; alpha = 2.0"}, "The result is alpha * acc, where acc are the sums."),
        ({"epilogue": "relu(acc)", "bias": True}, "The result is relu(acc), where acc are the sums, bias included."),
        ({"bias": True}, None),
    ],
    ids=str,
)
def test_a_stub_says_what_becomes_of_the_sums(answers: dict[str, Any], line: str | None) -> None:
    data = {"op": "my_op", "family": "matmul", "layout": "standalone", **answers}
    (stub,) = (file.content.decode() for file in rendered(data).files if file.path.name == "interface.py")
    found = [each.strip() for each in stub.splitlines() if each.strip().startswith("The result is")]
    assert found == ([line] if line else [])
