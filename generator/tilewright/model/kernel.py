"""What the compiler made of the kernels of one operator, per architecture, dtype and signature."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What one compiled kernel occupies on the GPU."""

    registers: int  # per thread
    spilled_bytes: int  # stack frame per thread: registers that did not fit
    shared_bytes: int  # static shared memory per block
    code_bytes: int


@dataclass(frozen=True, kw_only=True)
class CompiledKernel:
    """One kernel compiled for one architecture and one signature, or why it was not."""

    kernel: str
    arch: str
    dtype: str
    signature: str  # aligned or unaligned: what the compiler may assume about addresses and sizes
    symbol: str  # mangled name: the exact signature
    hints: str = ""  # compiler hints, as in "occupancy=4"
    seconds: float = 0.0
    resources: Resources | None = None
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class CaptureFailure:
    """Why nothing was compiled: for one architecture and dtype, or, where both are empty, at all."""

    arch: str
    dtype: str
    error: str
    refused: bool = False  # the host function raised NotImplementedError: the architecture has no such dtype

    def __str__(self) -> str:
        return f"{self.arch} {self.dtype}: {self.error}" if self.arch else self.error


@dataclass(frozen=True, kw_only=True)
class Compilation:
    """All kernels of one operator over the architectures asked for."""

    op: str
    kernels: tuple[CompiledKernel, ...] = ()
    failures: tuple[CaptureFailure, ...] = ()
    unreached: tuple[str, ...] = ()  # kernels of the operator that no shape of its tests launches
    seconds: float = 0.0
    cached: bool = False  # remembered from a run before: the kernels' seconds are of that one

    @property
    def errors(self) -> tuple[str, ...]:
        """One line for each thing that is wrong, most telling first."""
        capture = tuple(str(failure) for failure in self.failures if failure not in self.refused)
        compiler = tuple(f"{k.kernel} {k.arch} {k.dtype} {k.signature}: {k.error}" for k in self.kernels if k.error)
        missed = tuple(f"{name} is launched by no shape in _aligned or _ragged: add one" for name in self.unreached)
        return capture + compiler + missed

    @property
    def refused(self) -> tuple[CaptureFailure, ...]:
        """The architectures and dtypes that the operator is not for; where that is all of them, it is a failure."""
        return tuple(failure for failure in self.failures if failure.refused and self.kernels)
