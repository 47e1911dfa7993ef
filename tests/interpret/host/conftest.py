from collections.abc import Iterator

import pytest

from tilewright.cutile.targets import select
from tilewright.interpret.host.emulation import emulated_device


@pytest.fixture
def launches() -> list:
    """Arguments of the launches on the emulated device."""
    return []


@pytest.fixture
def gpu(launches: list) -> Iterator[None]:
    """An emulated device on which launches do nothing."""
    with emulated_device(select("sm_90")[0], lambda *arguments, **options: launches.append(arguments)):
        yield
