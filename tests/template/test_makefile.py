"""The Makefile of a host installs tilewright from where its operators come from."""

import shlex
import subprocess

import pytest

from tilewright.render import Batch
from tilewright.render import locate


@pytest.mark.parametrize(
    ("source", "requirement"),
    [
        ("tilewright", "tilewright"),
        ("/home/ada/my tools/tilewright", "/home/ada/my tools/tilewright"),
        ("https://example.com/ada/tilewright.git", "git+https://example.com/ada/tilewright.git"),
        ("git+https://example.com/ada/tilewright", "git+https://example.com/ada/tilewright"),
        ("git@example.com:ada/tilewright.git", "git+ssh://git@example.com/ada/tilewright.git"),
        ("ssh://git@example.com/ada/tilewright.git", "git+ssh://git@example.com/ada/tilewright.git"),
        ("gh:ada/tilewright", "git+https://github.com/ada/tilewright"),
    ],
)
def test_pip_is_told_a_place_that_it_understands(tmp_path, source, requirement):
    made = Batch(locate().template).render({"op": "my_op"}, tmp_path, source=source, recorded=False)
    [makefile] = (file for file in made.files if file.path.name == "Makefile")
    (tmp_path / "Makefile").write_bytes(makefile.content)
    (tmp_path / "pyproject.toml").touch()
    shown = subprocess.run(
        ["make", "--dry-run", "verify"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    [installation] = (line for line in shown.splitlines() if " pip install " in line)
    assert shlex.split(installation)[-1] == requirement
