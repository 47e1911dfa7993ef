"""The template of every release is at hand: in the package, in a history, or said to be missing."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.releases import NEXT
from tests.support.releases import commit
from tests.support.releases import git
from tests.support.tiny_template import write_release
from tilewright.config.versions import is_newer
from tilewright.errors import MissingError
from tilewright.render import Source
from tilewright.render import locate
from tilewright.update import own_version
from tilewright.update import templates
from tilewright.update.pack import pack
from tilewright.update.templates import RELEASES
from tilewright.update.templates import Templates

ROOT = Path(__file__).parents[2]


def released():
    """The versions that the changelog says were released, with those of the tags."""
    headings = re.findall(r"(?m)^## \[(\d[^\]]*)\]", (ROOT / "CHANGELOG.md").read_text())
    tags = subprocess.run(["git", "tag", "--list", "v*"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    return {f"v{version}" for version in headings} | set(tags.split())


def test_the_package_carries_every_release_but_its_own():
    own = own_version(locate())
    assert {version for version in released() if is_newer(own, version)} <= {
        path.name.removesuffix(".tar.xz") for path in RELEASES.glob("*.tar.xz")
    }


def test_what_it_carries_is_the_template_that_was_tagged():
    for archive in RELEASES.glob("*.tar.xz"):
        version = archive.name.removesuffix(".tar.xz")
        found = subprocess.run(
            ["git", "rev-parse", "-q", "--verify", version], cwd=ROOT, capture_output=True, check=False
        )
        assert found.returncode or archive.read_bytes() == pack(ROOT, version)


def test_a_release_is_read_without_git_or_history(tmp_path, monkeypatch):
    source = write_release(tmp_path / "template", "1.0.0", {"file.py": b"first\n"})
    (tmp_path / "releases").mkdir()
    (tmp_path / "releases" / "v1.0.0.tar.xz").write_bytes(pack(source.root, "v1.0.0"))
    write_release(source.root, "2.0.0", {"file.py": b"second\n"})
    (source.root / ".git").rename(tmp_path / "away")
    monkeypatch.setattr(templates, "RELEASES", tmp_path / "releases")
    monkeypatch.setenv("PATH", "")
    with Templates(source) as found:
        for version, content in (("v1.0.0", b"first\n"), ("v2.0.0", b"second\n")):
            batch = found.batch(version, "", tmp_path)
            rendering = batch.render({"op": "my_op"}, tmp_path, source=".", recorded=True)
            assert content in [file.content for file in rendering.files]


def test_packing_twice_makes_the_same_bytes(tmp_path):
    source = write_release(tmp_path / "template", "1.0.0", {"file.py": b"first\n"})
    assert pack(source.root, "v1.0.0") == pack(source.root, "HEAD")


@pytest.fixture
def elsewhere(tmp_path):
    """An installed template without history, and a repository that has an older release."""
    repository = write_release(tmp_path / "elsewhere", "1.0.0", {"file.py": b"first\n"}).root
    installed = write_release(tmp_path / "installed", "2.0.0", {"file.py": b"second\n"})
    return installed, repository


@pytest.mark.parametrize("form", ["path", "relative", "file", "git+file", "commit"])
def test_a_release_is_taken_from_where_the_operator_was_made_from(elsewhere, tmp_path, form):
    source, repository = elsewhere
    host = tmp_path / "host"
    host.mkdir()
    places = {"relative": "../elsewhere", "file": f"file://{repository}", "git+file": f"git+file://{repository}"}
    origin = places.get(form, str(repository))
    version = git(repository, "rev-parse", "HEAD").strip() if form == "commit" else "v1.0.0"
    with Templates(source) as found:
        assert found.batch(version, origin, host).folder.name == "template"


def test_a_shallow_clone_without_the_tag_is_told_to_fetch_it(elsewhere, tmp_path):
    source, repository = elsewhere
    (repository / "more").write_text("")
    commit(repository)
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth=1", "--no-tags", f"file://{repository}", str(shallow))
    with Templates(source) as found, pytest.raises(MissingError, match="neither in tilewright") as caught:
        found.batch("v1.0.0", str(shallow), tmp_path)
    assert f"git -C {shallow} fetch --tags --unshallow" in str(caught.value)
    assert str(caught.value).count("\n") == 2


def test_a_repository_of_another_project_is_not_taken_for_the_templates(elsewhere, tmp_path):
    source, _ = elsewhere
    (tmp_path / "other" / "template").mkdir(parents=True)
    (tmp_path / "other" / "template" / "letter.txt").touch()
    commit(tmp_path / "other")
    git(tmp_path / "other", "tag", "v1.0.0")
    with Templates(source) as found, pytest.raises(MissingError, match="neither in tilewright"):
        found.batch("v1.0.0", str(tmp_path / "other"), tmp_path)


def test_a_source_that_is_gone_is_said_to_be(elsewhere, tmp_path):
    source, _ = elsewhere
    with Templates(source) as found, pytest.raises(MissingError, match="nor in /nowhere"):
        found.batch("v1.0.0", "/nowhere", tmp_path)


def test_the_working_tree_is_its_own_version(pristine, tmp_path):
    source, _ = pristine
    with Templates(Source(root=source.root, recorded=None)) as found:
        assert found.own_version == f"v{NEXT}"
        assert found.batch(NEXT, "", tmp_path).folder == source.template
