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


@pytest.mark.parametrize(
    ("answers", "names"),
    [
        ({"family": "histogram", "variant": "histc", "dtypes": ["int64"]}, "integers"),
        ({"family": "movement", "variant": "cat", "dtypes": ["int64"]}, "special_values or op_errors"),
        ({"family": "movement", "variant": "cat", "dtypes": ["float64"]}, "op_out"),
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
