"""Plugin of pytest that runs tests of cuTile kernels on the CPU if its options say so, and explains failures."""

import gc
import importlib.util
import os
from collections.abc import Iterator
from contextlib import ExitStack
from contextlib import contextmanager

import pytest

pytest_plugins = ["tilewright.explain.plugin"]  # by name: the two are installed as one
_DEVICES = ("auto", "interpret", "cuda")
_ABOUT = "where cuTile kernels run: interpret is the CPU, cuda the GPU, auto the GPU if there is one and else the CPU"
_USED = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("tilewright", "cuTile kernels without a GPU")
    group.addoption("--tile-device", choices=_DEVICES, help=_ABOUT)
    group.addoption("--tile-arch", default="sm_90", metavar="SM_XX", help="architecture that the CPU stands for")
    group.addoption("--tile-check", action="store_true", help="look for faults that a GPU does not report")
    parser.addini("tile_device", f"{_ABOUT}; where --tile-device is not given")


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Emulate the device before any file of the tests is imported: they may ask for the device at import."""
    options = early_config.known_args_namespace
    device = options.tile_device or early_config.getini("tile_device")
    if device and device not in _DEVICES:
        raise pytest.UsageError(f"tile_device is {device!r}\nexpected one of {', '.join(_DEVICES)}")
    if device == "auto":
        device = "cuda" if _has_gpu() and not options.tile_check else "interpret"
    if options.tile_check and device != "interpret":
        raise pytest.UsageError("--tile-check looks at kernels that run on the CPU\nadd --tile-device interpret")
    if device == "interpret":
        _emulate(early_config, options.tile_arch, check=options.tile_check)
    elif device == "cuda":
        early_config.stash[_USED] = "cuda"


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Never search for garbage in the modules that are loaded by now.

    They are hundreds of thousands of objects, and what the compiler makes of each kernel sets off a search of them all.
    """
    if session.config.stash.get(_USED, "cuda") != "cuda":
        gc.freeze()
        session.config.add_cleanup(gc.unfreeze)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say where kernels run, if anything was said about it."""
    used = config.stash.get(_USED, None)
    return used and f"cuTile kernels: {used}"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Show of a failed launch no frames of the interpreter and the compiler, unless all are asked for."""
    if call.excinfo is None or item.config.option.fulltrace or item.config.stash.get(_USED, "cuda") == "cuda":
        return
    from tilewright.interpret.frames import explains_itself
    from tilewright.interpret.frames import without_internal

    error = call.excinfo.value
    if explains_itself(error) and (shown := without_internal(call.excinfo.tb)):
        call.excinfo = pytest.ExceptionInfo.from_exc_info((type(error), error, shown))


def _has_gpu() -> bool:
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def _emulate(config: pytest.Config, arch: str, *, check: bool) -> None:
    from tilewright.errors import TilewrightError
    from tilewright.interpret import enabled

    emulation = ExitStack()
    try:
        emulation.enter_context(enabled(arch=arch, check=check))
        emulation.enter_context(_share_of_threads(int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))))
    except TilewrightError as error:
        raise pytest.UsageError(str(error)) from error
    config.add_cleanup(emulation.close)
    config.stash[_USED] = f"interpreted on the CPU as on {arch}" + (", with checks" if check else "")


@contextmanager
def _share_of_threads(workers: int) -> Iterator[None]:
    """Leave each worker of xdist its part of the cores, unless the user has said how many threads it has.

    Where there are more threads of PyTorch than cores, small operations take a hundred times as long: all threads wait
    for the last one, which does not run.
    """
    import torch

    before = torch.get_num_threads()
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, before // workers))
    try:
        yield
    finally:
        torch.set_num_threads(before)
