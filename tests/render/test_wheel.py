"""An installed wheel makes operators without the checkout it was built from."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.support.releases import KERNEL
from tests.support.releases import NEXT
from tests.support.releases import check_out_template
from tests.support.releases import commit
from tests.support.releases import contents
from tests.support.releases import own_version
from tests.support.releases import release

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


def run(package: Path, folder: Path, *arguments: str, **environment: str) -> None:
    """Run the command of an installed package."""
    subprocess.run(
        [sys.executable, "-m", "tilewright", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(package), **environment},
        check=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )


def test_the_origin_of_an_operator_is_the_package_where_no_repository_is_known(installed, tmp_path):
    run(installed, tmp_path, "new", "my_op")
    record = (tmp_path / ".tilewright" / "ops" / "my_op.yml").read_text()
    assert yaml.safe_load(record)["_src_path"] == "tilewright"
    assert record.startswith(
        "# How operator my_op was made. Move it to a newer template with: tilewright update my_op\n"
    )
    assert "\nTILEWRIGHT ?= tilewright\n" in (tmp_path / "Makefile").read_text()
    assert not [path for path, content in contents(tmp_path).items() if str(installed).encode() in content]


def test_copier_updates_an_operator_of_a_package_that_pip_took_from_a_repository(installed, tmp_path):
    source = check_out_template(tmp_path / "repository")
    package, host = shutil.copytree(installed, tmp_path / "package"), tmp_path / "host"
    [about] = package.glob("tilewright-*.dist-info")
    direct = {"url": f"file://{source.root}", "vcs_info": {"vcs": "git", "commit_id": "0" * 40}}  # as pip writes it
    (about / "direct_url.json").write_text(json.dumps(direct))
    host.mkdir()
    run(package, host, "new", "my_op")
    record = host / ".tilewright" / "ops" / "my_op.yml"
    assert yaml.safe_load(record.read_text())["_src_path"] == f"git+file://{source.root}"
    assert f"\nTILEWRIGHT ?= git+file://{source.root}\n" in (host / "Makefile").read_text()
    # The repository has a tag where the working tree names a commit of another history.
    record.write_text(re.sub("(?m)^_commit: .*", f"_commit: v{VERSION}", record.read_text()))
    commit(host)
    release(source, NEXT, {KERNEL: ('"""cuTile backend of', '"""The cuTile kernel of')})
    subprocess.run(
        [sys.executable, "-m", "copier", "update", "-q", "-a", ".tilewright/ops/my_op.yml"],
        cwd=host,
        env={**os.environ, "COPIER_CACHE_DIR": str(tmp_path / "cache")},
        check=True,
        capture_output=True,
    )
    assert (host / "my_ops/my_op/cutile.py").read_text().startswith('"""The cuTile kernel of my_op')


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
    run(installed, host, "new", "my_op", PATH="")
    run(newer, host, "update", "--all", PATH="")
    assert (host / "my_ops" / "my_op" / "cutile.py").read_text().startswith('"""The cuTile backend')


def test_the_wheel_carries_the_schemas(installed):
    assert (installed / "tilewright" / "report" / "schemas" / "changes.schema.json").is_file()
