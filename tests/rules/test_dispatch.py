"""Rules about dispatch on a small host: what is found when one thing in it is wrong."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.hosts import tiny_host
from tilewright.rules.collecting import surroundings
from tilewright.rules.dispatch.snippets import package
from tilewright.rules.engine import check_files
from tilewright.rules.engine import check_sources
from tilewright.rules.finding import Severity
from tilewright.rules.reading import readable

KERNEL = Path("tiny_ops/scale_add/cutile.py")
STUB = Path("tiny_ops/scale_add/interface.py")
INIT = Path("tiny_ops/scale_add/__init__.py")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tiny_host(tmp_path).root


@pytest.fixture
def codes(root: Path) -> Callable[..., list[str]]:
    """Codes of errors and warnings in files of the host; what is around them is only read."""

    def check(*paths: Path) -> list[str]:
        files = [root / path for path in paths]
        report = check_files(files, context=readable(surroundings(files)))
        return [each.code for each in report.findings if each.severity is not Severity.INFO and each.code < "TW2"]

    return check


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_host_is_fine(codes: Callable[..., list[str]]) -> None:
    assert codes(KERNEL, STUB, Path("tests/ops/test_scale_add.py")) == []


@pytest.mark.parametrize("path", [KERNEL, STUB])
def test_each_file_alone_is_judged_with_its_package(path: Path, codes: Callable[..., list[str]]) -> None:
    assert codes(path) == []


def test_an_implementation_that_is_not_imported_is_found_from_its_file_alone(
    root: Path, codes: Callable[..., list[str]]
) -> None:
    (root / INIT).write_text("from .interface import scale_add as scale_add\n")
    assert codes(KERNEL) == ["TW113"]


def test_an_implementation_that_is_imported_on_the_way_is_loaded(root: Path, codes: Callable[..., list[str]]) -> None:
    (root / INIT).write_text("from . import backends\nfrom .interface import scale_add as scale_add\n")
    (root / INIT.with_name("backends.py")).write_text("try:\n    from . import cutile\nexcept ImportError:\n    pass\n")
    assert codes(KERNEL) == []


def test_a_key_of_another_operator(root: Path, codes: Callable[..., list[str]]) -> None:
    edit(root / KERNEL, 'register_impl("scale_add"', 'register_impl("scale_adds"')
    assert codes(KERNEL) == ["TW110"]
    assert codes(STUB) == ["TW111"]


def test_references_in_tests_are_no_duplicates(root: Path, codes: Callable[..., list[str]]) -> None:
    tests = (Path("tests/test_a.py"), Path("tests/bench_a.py"))
    for path in tests:
        (root / path).write_text(
            "from tiny_ops.backend import register_impl\n\nregister_impl('scale_add', 'torch')(print)\n"
        )
    assert codes(KERNEL, *tests) == []


def test_alternatives_are_no_duplicates(root: Path, codes: Callable[..., list[str]]) -> None:
    text = (root / KERNEL).read_text()
    (root / KERNEL).write_text(text + '\n\nif torch:\n    register_impl("scale_add", backend="cutile")(print)\n')
    assert codes(KERNEL) == []
    (root / KERNEL).write_text(text + '\n\nregister_impl("scale_add", backend="cutile")(print)\n')
    assert codes(KERNEL) == ["TW112"]


def test_an_import_without_a_guard(root: Path, codes: Callable[..., list[str]]) -> None:
    assert codes(INIT) == ["TW116"]
    guarded = (
        "from ..backend import is_backend_available\n\nif is_backend_available('cutile'):\n    from . import cutile"
    )
    edit(root / INIT, "from . import cutile", guarded)
    assert codes(INIT) == []


def test_a_guard_further_out_will_do(root: Path, codes: Callable[..., list[str]]) -> None:
    edit(root / "tiny_ops/__init__.py", "from .scale_add", "if True:\n    from .scale_add")
    assert codes(INIT) == []


def test_a_package_that_cannot_ask_for_backends_needs_cutile_anyhow(
    root: Path, codes: Callable[..., list[str]]
) -> None:
    edit(root / "tiny_ops/backend.py", "is_backend_available", "has_backend")
    assert codes(INIT) == []


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ('__all__ = ["here"]\nhere = 1\n', False),
        ('__all__ = ["there"]\n', True),
        ('__all__ = ["there"]\nfrom math import *\n', False),
        ('__all__ = ["there"]\ndef __getattr__(name): return name\n', False),
        ('__all__ = ["there"]\nif here:\n    there = 1\n', False),
        ('__all__ = ["there"]\ndef f():\n    global there\n    there = 1\n', False),
        ('def f():\n    __all__ = ["there"]\n', False),
        ('__all__ = []\n__all__ += ["there"]\n', True),
    ],
)
def test_exports(statement: str, found: bool, root: Path, codes: Callable[..., list[str]]) -> None:
    (root / "tiny_ops/more.py").write_text(statement)
    assert codes(Path("tiny_ops/more.py")) == (["TW114"] if found else [])


@pytest.mark.parametrize(
    ("result", "severity"),
    [
        ("x * factor", Severity.WARNING),
        ("x * launch(factor, **kwargs)", Severity.WARNING),
        ('x * kwargs["scale"]', Severity.INFO),
        ('x * kwargs.get("scale", factor)', Severity.INFO),
        ('x * kwargs.pop("scale", factor)', Severity.INFO),
    ],
)
def test_keywords_that_only_the_implementation_takes_may_be_options_of_its_own(result: str, severity: Severity) -> None:
    files = package(stub="x, factor=1.0", implementation="x, factor=1.0, **kwargs", result=result)
    report = check_sources({Path(path): text for path, text in files.items()})
    assert [each.severity for each in report.findings if each.code == "TW106"] == [severity]
