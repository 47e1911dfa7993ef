"""The host is found from any folder inside it."""

import pytest

from tilewright.config import find_host
from tilewright.errors import HostError
from tilewright.model.host import Host


def write(root, text):
    (root / ".tilewright").mkdir()
    (root / ".tilewright" / "host.yml").write_text(text)


def test_a_profile_is_found_from_a_subfolder(tmp_path):
    write(tmp_path, "layout: standalone\npackage: src/my_ops\n")
    deep = tmp_path / "src" / "my_ops" / "gelu"
    deep.mkdir(parents=True)
    host = find_host(deep)
    assert host == Host(root=tmp_path, layout="standalone", package="src/my_ops")
    assert host.import_name == "my_ops"


def test_a_tilegym_checkout_needs_no_profile(tmp_path):
    ops = tmp_path / "src" / "tilegym" / "ops"
    ops.mkdir(parents=True)
    (ops / "ops.py").touch()
    assert find_host(ops) == Host(root=tmp_path, layout="tilegym", package="src/tilegym")


def test_the_nearest_host_wins(tmp_path):
    write(tmp_path, "layout: standalone\npackage: outer\n")
    inner = tmp_path / "inner"
    inner.mkdir()
    write(inner, "layout: standalone\npackage: inner\n")
    assert find_host(inner).package == "inner"


def test_a_repository_of_its_own_is_not_part_of_the_host_around_it(tmp_path):
    write(tmp_path, "layout: standalone\npackage: outer\n")
    (tmp_path / "inner" / ".git").mkdir(parents=True)
    (tmp_path / "inner" / "src").mkdir()
    assert find_host(tmp_path / "inner" / "src") is None


def test_an_empty_folder_is_no_host(tmp_path):
    assert find_host(tmp_path) is None


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "is not a mapping"),
        ("layout: [", "is not YAML"),
        ("- a\n", "is not a mapping"),
        ("package: my_ops\n", "layout None"),
        ("layout: cmake\npackage: my_ops\n", "layout 'cmake'"),
        ("layout: standalone\n", "package None"),
        ("layout: standalone\npackage: 3\n", "package 3"),
        ("layout: standalone\npackage: ../other\n", "package '../other'"),
        ("layout: standalone\npackage: /etc\n", "package '/etc'"),
    ],
)
def test_a_broken_profile_is_named_with_the_way_out(tmp_path, text, what):
    write(tmp_path, text)
    with pytest.raises(HostError, match=what) as error:
        find_host(tmp_path)
    assert str(error.value).count("\n") == 2
