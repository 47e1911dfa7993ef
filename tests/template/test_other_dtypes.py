"""Tests that are rendered for dtypes and formulas which no reference operator has pass, on the CPU."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from .conftest import rendered

pytest.importorskip("torch")
pytest.importorskip("cuda.tile")

SCALED = "alpha * acc + beta * c; alpha = 0.1; beta = 0.3"


OPERATORS = {
    "histc_i64": ({"family": "histogram", "variant": "histc", "dtypes": ["int64"]}, "integers"),
    "cat_i64": ({"family": "movement", "variant": "cat", "dtypes": ["int64"]}, "special_values or op_errors"),
    "cat_f64": ({"family": "movement", "variant": "cat", "dtypes": ["float64"]}, "op_out"),
    "pad_i64": ({"family": "movement", "variant": "pad", "dtypes": ["int64"]}, "arguments"),
    "pad_f64": ({"family": "movement", "variant": "pad", "dtypes": ["float64", "int64"]}, "large_magnitude"),
    "matmul_f64": (
        {"family": "matmul", "variant": "matmul", "epilogue": SCALED, "dtypes": ["float64"]},
        "arguments or 2051",
    ),
    "linear_f16": (
        {"family": "matmul", "variant": "linear", "bias": True, "epilogue": "gelu(acc)", "dtypes": ["float16"]},
        "special_values",
    ),
    "rms_norm_f64": ({"family": "row_norm", "variant": "rms_norm", "dtypes": ["float64"]}, "beyond_float32"),
    "avg_pool_f64": ({"family": "pool", "variant": "avg_pool", "dtypes": ["float64"]}, "large_magnitude"),
    "gelu_bf16": ({"family": "elementwise", "formula": "gelu(x)", "dtypes": ["bfloat16"]}, "special_values"),
    "shifted": (
        {
            "family": "elementwise",
            "formula": "shift + x * sigmoid(alpha * x); shift = 0.5; alpha = 2.0",
            "grad_formula": "s = sigmoid(alpha * x); grad * s * (1 + alpha * x * (1 - s))",
            "dtypes": ["float32"],
        },
        "backward or arguments",
    ),
    "gated_bf16": ({"family": "gated", "variant": "gelu_and_mul", "dtypes": ["bfloat16"]}, "special_values"),
    "int8_bf16": ({"family": "quantize", "variant": "int8", "dtypes": ["bfloat16"]}, "nearest_even"),
    "lstm_bf16": ({"family": "recurrent", "variant": "lstm", "dtypes": ["bfloat16"]}, "steps_in_place"),
    "rope_bf16": ({"family": "rope", "variant": "half", "dtypes": ["bfloat16"]}, "angles_of_any_shape"),
}


def test_rendered_tests_pass(tmp_path: Path) -> None:
    """In one host and one process: half of the time is what every process imports."""
    for op, (answers, _names) in OPERATORS.items():
        for file in rendered({"op": op, "layout": "standalone", **answers}).files:
            path = tmp_path / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.content)
    chosen = " or ".join(f"test_{op}.py and ({names})" for op, (_answers, names) in OPERATORS.items())
    command = [sys.executable, "-m", "pytest", "-q", "--tile-device", "interpret", "-p", "no:cacheprovider"]
    result = subprocess.run(
        [*command, "-m", "not large", "-k", chosen, "--junit-xml", "report.xml", "tests/ops"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-3000:]
    cases = ElementTree.parse(tmp_path / "report.xml").iter("testcase")
    tested = {case.get("classname", "").split(".")[2] for case in cases if case.find("skipped") is None}
    assert tested == {f"test_{op}" for op in OPERATORS}
