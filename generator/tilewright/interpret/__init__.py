"""Run cuTile kernels on the CPU, without a GPU."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["enabled"]


@contextmanager
def enabled(*, arch: str = "sm_90", check: bool = False) -> Iterator[None]:
    """Emulate a CUDA device of this architecture; `cuda.tile.launch` runs kernels on the CPU.

    Inside, `device="cuda"` and the functions of torch.cuda work as with one GPU. With `check`, launches look for faults
    that a GPU does not report. May be nested. Covers this thread and those that are started inside.

    Raises:
        UsageError: There is no such architecture.
        MissingError: cuda-tile or torch is not installed.
        RuntimeError: Another thread is inside.
    """
    from tilewright.cutile.targets import select
    from tilewright.cutile.toolchain import INSTALL
    from tilewright.cutile.toolchain import is_installed
    from tilewright.errors import MissingError

    (target,) = select(arch)
    for module, mend in (("torch", "pip install torch"), ("cuda.tile", INSTALL)):
        if not is_installed(module):
            raise MissingError(f"{module} is not installed", hint=mend)

    from tilewright.interpret.host.emulation import emulated_device
    from tilewright.interpret.launch import Launcher
    from tilewright.interpret.settings import Settings

    launcher = Launcher(Settings(arch=target.name, check=check))
    with emulated_device(target, launcher.launch):
        yield
