"""An installed wheel makes operators without the checkout it was built from."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.support.releases import own_version

pytest.importorskip("hatchling")
ROOT = Path(__file__).parents[2]
VERSION = own_version()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pip would unpack."""
    checkout, target = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("installed")
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "copier.yml"):
        shutil.copy(ROOT / name, checkout)
    for name in ("template", "generator", "reference_ops"):
        (checkout / name).mkdir()  # the reference operators are not needed here, their folder is
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, checkout / name, dirs_exist_ok=True)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"],
        cwd=checkout,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    [wheel] = (checkout / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def test_the_bundled_template_is_used(installed, tmp_path):
    subprocess.run(
        [sys.executable, "-m", "tilewright", "new", "my_op"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    recorded = yaml.safe_load((tmp_path / ".tilewright" / "ops" / "my_op.yml").read_text())
    assert str(ROOT) not in recorded["_src_path"]
    assert recorded["_commit"].startswith("v")


def test_operators_are_updated_without_git_and_network(installed, tmp_path):
    host, newer = tmp_path / "host", shutil.copytree(installed, tmp_path / "newer")
    host.mkdir()
    template = newer / "tilewright" / "_bundled" / "template"
    with tarfile.open(newer / "tilewright" / "update" / "releases" / f"v{VERSION}.tar.xz", "w:xz") as archive:
        archive.add(template, "template")
    questions = (template / "copier.yml").read_text()
    (template / "copier.yml").write_text(questions.replace(f'default: "{VERSION}"', 'default: "99.0.0"'))
    kernel = template / "standalone" / "{{ package }}" / "{{ op }}" / "cutile.py.jinja"
    kernel.write_text(kernel.read_text().replace('"""cuTile backend', '"""The cuTile backend'))
    for package, arguments in ((installed, ("new", "my_op")), (newer, ("update", "--all"))):
        subprocess.run(
            [sys.executable, "-m", "tilewright", *arguments],
            cwd=host,
            env={**os.environ, "PYTHONPATH": str(package), "PATH": ""},
            check=True,
            capture_output=True,
        )
    assert (host / "my_ops" / "my_op" / "cutile.py").read_text().startswith('"""The cuTile backend')


def test_the_wheel_carries_the_schemas(installed):
    assert (installed / "tilewright" / "report" / "schemas" / "changes.schema.json").is_file()
