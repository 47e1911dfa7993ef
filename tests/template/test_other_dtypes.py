"""Tests that are rendered for dtypes which no reference operator has pass, on the CPU."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import rendered

pytest.importorskip("torch")
pytest.importorskip("cuda.tile")

SCALED = "alpha * acc + beta * c; alpha = 0.1; beta = 0.3"


@pytest.mark.parametrize(
    ("answers", "names"),
    [
        ({"family": "histogram", "variant": "histc", "dtypes": ["int64"]}, "integers"),
        ({"family": "movement", "variant": "cat", "dtypes": ["int64"]}, "special_values or op_errors"),
        ({"family": "movement", "variant": "cat", "dtypes": ["float64"]}, "op_out"),
        ({"family": "movement", "variant": "pad", "dtypes": ["int64"]}, "arguments"),
        ({"family": "movement", "variant": "pad", "dtypes": ["float64", "int64"]}, "large_magnitude"),
        ({"family": "pool", "variant": "avg_pool", "dtypes": ["float64"]}, "large_magnitude"),
        ({"family": "matmul", "variant": "matmul", "epilogue": SCALED, "dtypes": ["float64"]}, "arguments or 2051"),
        ({"family": "row_norm", "variant": "rms_norm", "dtypes": ["float64"]}, "beyond_float32"),
        ({"family": "elementwise", "formula": "gelu(x)", "dtypes": ["bfloat16"]}, "special_values"),
        ({"family": "gated", "variant": "gelu_and_mul", "dtypes": ["bfloat16"]}, "special_values"),
        ({"family": "quantize", "variant": "int8", "dtypes": ["bfloat16"]}, "nearest_even"),
        ({"family": "recurrent", "variant": "lstm", "dtypes": ["bfloat16"]}, "steps_in_place"),
        ({"family": "rope", "variant": "half", "dtypes": ["bfloat16"]}, "angles_of_any_shape"),
    ],
    ids=str,
)
def test_rendered_tests_pass(answers: dict[str, Any], names: str, tmp_path: Path) -> None:
    for file in rendered({"op": "my_op", "layout": "standalone", **answers}).files:
        path = tmp_path / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content)
    command = [sys.executable, "-m", "pytest", "-q", "--tile-device", "interpret", "-p", "no:cacheprovider"]
    result = subprocess.run(
        [*command, "-m", "not large", "-k", names, "tests/ops"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-3000:]
