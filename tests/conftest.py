"""Options and fixtures of the operator tests."""

import pytest
import torch


@pytest.fixture
def arch() -> str:
    """Architecture of the current GPU, for example sm_90."""
    if not torch.cuda.is_available():
        pytest.skip("no GPU: CUDA is not available")
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}"
