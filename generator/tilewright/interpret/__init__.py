"""Run cuTile kernels on the CPU, without a GPU."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from typing import Any

if TYPE_CHECKING:
    from tilewright.interpret.check import CheckError

__all__ = ["enabled"]


@contextmanager
def enabled(
    *,
    arch: str = "sm_90",
    check: bool = False,
    report: Callable[[CheckError], object] | None = None,
    launched: Callable[[], object] | None = None,
) -> Iterator[None]:
    """Emulate a CUDA device of this architecture; `cuda.tile.launch` runs kernels on the CPU.

    Inside, `device="cuda"` and the functions of torch.cuda work as with one GPU. With `check`, launches look for faults
    that a GPU does not report, and raise `interpret.check.CheckError`, or give it to `report` and go on. `launched` is
    called when a launch has run, also one with faults that are reported. May be nested, and left in any order. Covers
    this thread and those that are started inside.

    Raises:
        UsageError: There is no such architecture.
        MissingError: cuda-tile or torch is not installed.
        RuntimeError: Another thread is inside.
    """
    from tilewright.cutile.targets import select
    from tilewright.cutile.toolchain import INSTALL
    from tilewright.cutile.toolchain import is_installed
    from tilewright.errors import MissingError
    from tilewright.errors import UsageError

    targets = select(arch)
    if len(targets) != 1:
        raise UsageError(f"{arch!r} is not one architecture", expected="expected one, such as sm_90")
    for module, mend in (("torch", "pip install torch"), ("cuda.tile", INSTALL)):
        if not is_installed(module):
            raise MissingError(f"{module} is not installed", hint=mend)

    from tilewright.interpret.host.emulation import emulated_device
    from tilewright.interpret.host.writes import note_writes
    from tilewright.interpret.launch import Launcher
    from tilewright.interpret.settings import Settings

    launch: Callable[..., None] = Launcher(Settings(arch=targets[0].name, check=check)).launch
    if report is not None:
        launch = _reporting(launch, report)
    if launched is not None:
        launch = _telling(launch, launched)
    with emulated_device(targets[0], launch, observe=note_writes if check else None):
        yield


def _reporting(launch: Callable[..., None], report: Callable[[CheckError], object]) -> Callable[..., None]:
    from tilewright.interpret.check import CheckError

    def launch_and_report(*args: Any, **kwargs: Any) -> None:
        try:
            launch(*args, **kwargs)
        except CheckError as error:
            report(error)

    return launch_and_report


def _telling(launch: Callable[..., None], launched: Callable[[], object]) -> Callable[..., None]:
    def launch_and_tell(*args: Any, **kwargs: Any) -> None:
        launch(*args, **kwargs)
        launched()

    return launch_and_tell
