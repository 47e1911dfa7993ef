"""Errors of launches on the CPU; those of the compiler's front end (`cuda.tile.TileError`) pass through unchanged."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the source of a kernel."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}, in {self.function}"


class InterpreterError(Exception):
    """A launch that cannot be run, or that went wrong, on the CPU."""


class UnsupportedOperation(InterpreterError, NotImplementedError):
    """The kernel uses what the interpreter does not know, as of a newer cuda-tile."""


def unknown(what: str) -> UnsupportedOperation:
    """The error for what a kernel has and no supported cuda-tile does."""
    return UnsupportedOperation(
        f"the interpreter does not know {what}\ninstall a release of cuda-tile that it is tested with"
    )


class LaunchError(InterpreterError, ValueError):
    """The arguments or the grid of a launch are not what the kernel takes."""


class OutOfBounds(InterpreterError, IndexError):
    """An access outside of the memory of the arrays that were passed."""


class MisalignedAccess(InterpreterError, ValueError):
    """An access through an address that is no multiple of the size of what lies there."""


class StepLimitExceeded(InterpreterError, RuntimeError):
    """A loop that did not end within the limit, as one that waits for another block does."""


class KernelAssertionError(InterpreterError, AssertionError):
    """An assertion of the kernel does not hold."""
