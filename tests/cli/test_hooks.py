"""What pre-commit and the GitHub action run works, without anything that only kernels need."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
UNUSED = "x = 1  # tw: ignore[TW101] there is no dispatcher here\n"
WITHOUT_KERNELS = """
import sys
for name in ("torch", "cuda", "numpy", "triton", "libcst", "copier"):
    sys.modules[name] = None  # importing it fails
sys.argv = ["tilewright", *sys.argv[1:]]
from tilewright.cli.app import main
main()
"""


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_finds_and_mends(hook: str, tmp_path: Path) -> None:
    path = tmp_path / "my_op.py"
    path.write_text(UNUSED)
    program, *arguments = shlex.split(HOOKS[hook]["entry"])
    assert program == "tilewright"
    command = [sys.executable, "-c", WITHOUT_KERNELS, *arguments, "my_op.py"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    mends = hook == "tilewright-fix"
    assert ("TW004" in result.stdout) is not mends, result.stderr
    assert result.returncode == (0 if mends else 1)
    assert path.read_text() == ("x = 1\n" if mends else UNUSED)


@pytest.mark.parametrize(
    ("inputs", "status", "shown"),
    [
        ({"PATHS": "my_op.py my"}, 1, "::warning file=my_op.py,line=1,"),
        ({"PATHS": "my_op.py", "SELECT": "TW1"}, 0, ""),
        ({"PATHS": "my_op.py", "IGNORE": "TW004"}, 0, ""),
    ],
)
def test_the_action_annotates(inputs: dict[str, str], status: int, shown: str, tmp_path: Path) -> None:
    (tmp_path / "my_op.py").write_text(UNUSED)
    (tmp_path / "my").mkdir()
    step = ACTION["runs"]["steps"][-1]
    assert step["env"].keys() == {"PATHS", "SELECT", "IGNORE"}
    environment = {**os.environ, **dict.fromkeys(step["env"], ""), **inputs}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    command = ["bash", "-e", "-o", "pipefail", "-c", step["run"]]
    result = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == status, result.stderr
    assert result.stdout.startswith(shown)
    assert bool(result.stdout) == bool(shown)
