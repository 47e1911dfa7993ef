"""The reference operators write nothing beside `out`, as checking mode sees it; without it only a GPU would."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAME = "test_op_out_in_wider_rows"
PHASES = "test_op_few_channels"  # of conv_transpose, which are views of the result


def test_nothing_is_stored_beside_out() -> None:
    files = [str(path) for path in sorted((ROOT / "tests/ops").glob("test_*.py")) if NAME in path.read_text()]
    assert len(files) >= 12
    command = [sys.executable, "-m", "pytest", "-q", "--tile-device", "interpret", "--tile-check"]
    result = subprocess.run(
        [*command, "-p", "no:cacheprovider", "-k", f"{NAME} or {PHASES}", *files],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout[-3000:]
