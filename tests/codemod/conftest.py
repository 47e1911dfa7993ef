import shutil
from pathlib import Path

import pytest

from tests.support.tilegym_checkout import pristine_tilegym_checkout
from tests.support.tilegym_checkout import tilegym_checkout
from tilewright.codemod.registration import CUTILE_INIT
from tilewright.codemod.registration import OPS

__all__ = ["pristine_tilegym_checkout", "shared_files", "tilegym_checkout"]


@pytest.fixture
def shared_files(pristine_tilegym_checkout: Path, tmp_path: Path) -> Path:
    """A checkout of nothing but the two files that registration edits."""
    for path in (OPS, CUTILE_INIT, CUTILE_INIT.parent / "experimental" / "__init__.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(pristine_tilegym_checkout / path, tmp_path / path)
    return tmp_path
