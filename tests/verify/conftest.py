from pathlib import Path

import pytest

from tests.support.hosts import scale_add
from tests.support.tilegym_checkout import pristine_tilegym_checkout
from tests.support.tilegym_checkout import tilegym_checkout
from tilewright.model.operator import Operator

__all__ = ["pristine_tilegym_checkout", "tilegym_checkout"]


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    """scale_add in a host of its own, as if made with the template."""
    return scale_add(tmp_path)
