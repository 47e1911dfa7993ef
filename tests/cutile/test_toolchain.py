from importlib.metadata import PackageNotFoundError

import pytest

from tilewright.cutile import toolchain
from tilewright.cutile.toolchain import find_toolchain

NAMES = ("nvidia-cuda-tileiras", "nvidia-cuda-nvcc", "nvidia-nvvm")


def compiler(folder, version="13.3.33"):
    folder.mkdir(parents=True)
    file = folder / "tileiras"
    file.write_text(f'#!/bin/sh\necho "Cuda compilation tools, release {version[:4]}, V{version}"\n')
    file.chmod(0o755)
    return file


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """Versions of the pip packages, none at first; the toolkit below tmp_path is the only one."""
    versions = {}

    def version(name):
        if name not in versions:
            raise PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(toolchain, "version", version)
    monkeypatch.setattr(toolchain, "_pip_folders", lambda: [tmp_path / "pip"])
    monkeypatch.setattr(toolchain, "_toolkit_folders", lambda: [tmp_path / "missing", tmp_path / "toolkit"])
    return versions


def test_packages_of_one_release_come_first(installed, tmp_path):
    installed.update(dict.fromkeys(NAMES, "13.4.92"))
    compiler(tmp_path / "toolkit")
    file = compiler(tmp_path / "pip", "13.4.92")
    found = find_toolchain()
    assert (found.path, found.version, found.mismatch) == (file, "13.4.92", "")


def test_packages_of_several_releases_are_not_used(installed, tmp_path):
    installed.update(dict.fromkeys(NAMES, "13.4.92"), **{NAMES[1]: "13.3.20"})
    compiler(tmp_path / "pip")
    file = compiler(tmp_path / "toolkit")
    found = find_toolchain()
    assert (found.path, found.version) == (file, "13.3.33")
    assert "nvidia-cuda-nvcc 13.3.20" in found.mismatch


def test_toolkit_alone_is_no_mismatch(installed, tmp_path):
    compiler(tmp_path / "toolkit")
    assert find_toolchain().mismatch == ""


def test_no_compiler(installed):
    assert find_toolchain() is None


def test_same_as_cuda_tile_finds():
    pytest.importorskip("cuda.tile")
    from cuda.tile._compile import _find_compiler_bin

    assert str(find_toolchain().path) == _find_compiler_bin().path
