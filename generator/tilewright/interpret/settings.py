"""How launches on the CPU are run."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """How launches are run; the defaults keep a launch below about 1 GiB of memory beyond its arguments."""

    arch: str = "sm_90"  # architecture whose dtypes and hints count
    check: bool = False  # look for faults that a GPU does not report
    step_limit: int = 2**20  # iterations of loops, all together, of the blocks that run at once
    batch_bytes: int = 256 * 2**20  # memory for the tiles of the blocks that run at once; one block always runs
