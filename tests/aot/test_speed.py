import time

import pytest

pytest.importorskip("torch")
pytest.importorskip("cuda.tile")

from tests.support.hosts import edit
from tests.support.hosts import scale_add
from tilewright.aot.cache import Cache
from tilewright.aot.compile import compile_operator


@pytest.mark.slow
def test_elementwise_operator_for_all_architectures(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_TILE_CACHE_DIR", str(tmp_path / "cache"))
    operator = scale_add(tmp_path)
    edit(operator, operator.test, "torch.float16]", "torch.float16, torch.bfloat16]")
    edit(operator, operator.kernel, "_ScaleAdd.apply(x, y, alpha)", "(x + y).clone()")

    def seconds():
        start = time.perf_counter()
        assert len(compile_operator(operator, cache=Cache(tmp_path / "results")).kernels) == 9 * 3 * 2
        return time.perf_counter() - start

    assert seconds() < 30
    assert seconds() < 3
