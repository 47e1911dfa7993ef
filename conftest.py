"""Keep what the tests compile apart from what the user's own commands have compiled."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    patch = pytest.MonkeyPatch()
    patch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path_factory.mktemp("compilations")))
