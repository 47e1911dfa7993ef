# SPDX-FileCopyrightText: Copyright (c) 2025 NVIDIA CORPORATION & AFFILIATES. All rights reserved.
#
# SPDX-License-Identifier: MIT

"""What the operator tests share: seeding, tolerances and the comparison with a reference."""

import gc
import random

import pytest
import torch

_TOLERANCES = {  # dtype: (rtol, atol)
    torch.float64: (1e-12, 1e-15),
    torch.float32: (1e-5, 1e-8),
    torch.float16: (1e-2, 1e-2),
    torch.bfloat16: (1e-2, 2e-2),
    torch.float8_e4m3fn: (1e-1, 1e-1),
    torch.float8_e5m2: (5e-1, 5e-1),
}


def get_dtype_tolerances(dtype):
    """Default tolerances of a dtype; integers are exact."""
    rtol, atol = _TOLERANCES.get(dtype, (0.0, 0.0))
    return {"rtol": rtol, "atol": atol}


def benchmark_framework(name, fn, use_cudagraph=False):
    """Time `fn` and print one line."""
    import triton.testing

    timer = triton.testing.do_bench_cudagraph if use_cudagraph else triton.testing.do_bench
    milliseconds = timer(fn)
    print(f"{name}: {milliseconds:.4f} ms")
    return milliseconds


def _clone(value):
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(_clone(item) for item in value)
    return value


def _first_tensor(kwargs):
    return next(value for value in kwargs.values() if isinstance(value, torch.Tensor))


class PyTestCase:
    """Base of all operator tests."""

    @pytest.fixture(autouse=True)
    def _requested(self, request):
        self.request = request
        yield
        gc.collect()

    def setUp(self):
        torch.manual_seed(0)
        torch.cuda.manual_seed_all(0)
        random.seed(0)
        torch.cuda.empty_cache()

    def assertCorrectness(
        self,
        test_fn,
        ref_fn,
        kwargs,
        extra_test_kwargs=None,
        extra_ref_kwargs=None,
        gradient=None,
        rtol=None,
        atol=None,
        equal_nan=False,
        check_stride=True,
        multiple_outputs=False,
        test_index=None,
        ref_index=None,
        output_processor=None,
        comparison_chunk_size=None,
    ):
        tolerances = get_dtype_tolerances(_first_tensor(kwargs).dtype)
        tolerances = {
            "rtol": tolerances["rtol"] if rtol is None else rtol,
            "atol": tolerances["atol"] if atol is None else atol,
            "equal_nan": equal_nan,
        }
        ref_kwargs = {name: _clone(value) for name, value in kwargs.items()}
        tested = test_fn(**kwargs, **(extra_test_kwargs or {}))
        expected = ref_fn(**ref_kwargs, **(extra_ref_kwargs or {}))
        tested = tested if test_index is None else tested[test_index]
        expected = expected if ref_index is None else expected[ref_index]
        if output_processor is not None:
            tested, expected = output_processor(tested), output_processor(expected)

        pairs = list(zip(tested, expected)) if multiple_outputs else [(tested, expected)]
        for test_output, ref_output in pairs:
            if check_stride:
                assert test_output.stride() == ref_output.stride(), (test_output.stride(), ref_output.stride())
            self._assert_close(test_output, ref_output, comparison_chunk_size, tolerances)

        trained = [name for name, value in kwargs.items() if isinstance(value, torch.Tensor) and value.requires_grad]
        if not trained:
            return
        gradient = torch.randn_like(pairs[0][1]) if gradient is None else gradient
        pairs[0][0].backward(gradient)
        pairs[0][1].backward(gradient)
        for name in trained:
            self._assert_close(kwargs[name].grad, ref_kwargs[name].grad, comparison_chunk_size, tolerances)

    @staticmethod
    def _assert_close(tested, expected, chunk_size, tolerances):
        if chunk_size is None:
            torch.testing.assert_close(tested, expected, check_stride=False, **tolerances)
            return
        assert tested.shape == expected.shape
        for test_chunk, ref_chunk in zip(tested.flatten().split(chunk_size), expected.flatten().split(chunk_size)):
            torch.testing.assert_close(test_chunk, ref_chunk, **tolerances)

    def assertDeterministic(self, fn, kwargs, gradient=None, rtol=None, atol=None, equal_nan=False, iters=100):
        tolerances = {"rtol": rtol or 0.0, "atol": atol or 0.0, "equal_nan": equal_nan}
        first_kwargs = {name: _clone(value) for name, value in kwargs.items()}
        first = fn(**first_kwargs)
        if gradient is not None:
            first.backward(gradient)
        for _ in range(iters):
            again_kwargs = {name: _clone(value) for name, value in kwargs.items()}
            again = fn(**again_kwargs)
            torch.testing.assert_close(again, first, **tolerances)
            if gradient is None:
                continue
            again.backward(gradient)
            for name, value in again_kwargs.items():
                if isinstance(value, torch.Tensor) and value.requires_grad:
                    torch.testing.assert_close(value.grad, first_kwargs[name].grad, **tolerances)
