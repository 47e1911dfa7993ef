# SPDX-FileCopyrightText: Copyright (c) 2025 NVIDIA CORPORATION & AFFILIATES. All rights reserved.
#
# SPDX-License-Identifier: MIT

"""Options and fixtures of all tests."""

import pytest
import torch


def _default_arch():
    if not torch.cuda.is_available():
        return "none"
    major, minor = torch.cuda.get_device_capability()
    return f"sm{major}{minor}"


def pytest_addoption(parser):
    parser.addoption("--arch", action="store", default=_default_arch(), help="GPU architecture, for example sm100")
    parser.addoption("--quick-run", action="store_true", help="Run each case once")
    parser.addoption("--framework", action="store", default=None, help="Only this framework in test_perf")
    parser.addoption("--print-record", action="store_true", help="Print what was recorded")
    parser.addoption("--run-full", action="store_true", help="Run also the cases that take long")


@pytest.fixture
def arch(request):
    return request.config.getoption("--arch")


@pytest.fixture
def quick_run(request):
    return request.config.getoption("--quick-run")


@pytest.fixture
def framework(request):
    return request.config.getoption("--framework")


def pytest_make_parametrize_id(config, val, argname):
    return f"{argname}={val}".replace("-", "_")
