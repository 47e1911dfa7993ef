"""Keep what the tests compile apart from what the user's own commands have compiled, and run them without ado."""

import gc
import os

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:  # before PyTorch is imported: threads of many workers wait for each other
    os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    patch = pytest.MonkeyPatch()
    patch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path_factory.mktemp("compilations")))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Never search for garbage in what is loaded by now: thousands of tests, and the libraries that they import."""
    gc.freeze()
