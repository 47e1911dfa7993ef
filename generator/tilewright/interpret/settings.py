"""How launches on the CPU are run."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """How launches are run.

    Beyond its arguments a launch takes at most about twice `batch_bytes`, for tiles and for undoing writes, unless one
    block alone needs more.
    """

    arch: str = "sm_90"  # architecture whose dtypes and hints count
    check: bool = False  # look for faults that a GPU does not report
    step_limit: int = 2**20  # iterations of loops, all together, of the blocks that run at once
    batch_bytes: int = 256 * 2**20  # memory of the blocks that run at once
