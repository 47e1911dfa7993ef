"""GPU architectures that cuTile compiles for, and the limits of each."""

from dataclasses import dataclass

from tilewright.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Target:
    """One architecture, with the multiprocessors of a typical GPU of it."""

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    shared_kib: int  # most shared memory that one block may use (CUDA programming guide, compute capabilities)


TARGETS = (
    Target(name="sm_80", capability=(8, 0), multiprocessors=108, shared_kib=163),
    Target(name="sm_86", capability=(8, 6), multiprocessors=84, shared_kib=99),
    Target(name="sm_89", capability=(8, 9), multiprocessors=142, shared_kib=99),
    Target(name="sm_90", capability=(9, 0), multiprocessors=132, shared_kib=227),
    Target(name="sm_100", capability=(10, 0), multiprocessors=148, shared_kib=227),
    Target(name="sm_103", capability=(10, 3), multiprocessors=160, shared_kib=227),
    Target(name="sm_110", capability=(11, 0), multiprocessors=20, shared_kib=227),
    Target(name="sm_120", capability=(12, 0), multiprocessors=188, shared_kib=99),
    Target(name="sm_121", capability=(12, 1), multiprocessors=48, shared_kib=99),
)


def select(names: str = "") -> tuple[Target, ...]:
    """Targets named in a comma-separated list, all of them when it is empty."""
    if not names:
        return TARGETS
    known = {target.name: target for target in TARGETS}
    chosen = []
    for name in dict.fromkeys(part.strip() for part in names.split(",")):
        if name not in known:
            raise UsageError(f"{name!r} is not an architecture", expected=f"expected one of {', '.join(known)}")
        chosen.append(known[name])
    return tuple(chosen)
