"""Let one command at a time write to a host, and leave nothing behind."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import suppress
from pathlib import Path

from tilewright.errors import UsageError

try:
    import fcntl
except ImportError:  # Windows: two commands at once are not kept apart there
    fcntl = None  # type: ignore[assignment]

JOURNAL = Path(".tilewright", ".journal")
ATTEMPTS = 1000  # to create a folder that other commands remove; more than that is a place that takes none, as /proc


@contextmanager
def exclusive(root: Path, *, wait: bool = True, folder: Path = JOURNAL) -> Iterator[Path | None]:
    """Hold the lock of one of the host's folders; yields it, or None when `wait` is off and another command has it."""
    journal = root / folder
    created = not root.exists()
    try:
        descriptor = _acquire(journal, wait=wait)
    except OSError as error:
        raise UsageError(
            f"{root} cannot be written: {error.strerror}",
            expected="expected a folder in which files can be created",
            hint="choose another folder, or change its permissions",
        ) from error
    if descriptor is None:
        yield None
        return
    try:
        yield journal
    finally:
        if fcntl is None:  # Windows removes no file that is open
            os.close(descriptor)
            (journal / "lock").unlink(missing_ok=True)
        else:  # unlinked while it is held, so that who waits for it sees that it is gone
            (journal / "lock").unlink(missing_ok=True)
            os.close(descriptor)
        with suppress(OSError):  # somebody else is already in there, or the host keeps files of its own
            journal.rmdir()
            journal.parent.rmdir()
            if created:
                root.rmdir()


def _acquire(journal: Path, *, wait: bool) -> int | None:
    missing = 0
    while True:
        try:
            journal.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(journal / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        except (FileExistsError, FileNotFoundError):  # the previous holder has just removed the folder
            missing += 1
            if missing == ATTEMPTS:
                raise
            continue
        if _lock(descriptor, wait=wait) and _is_current(descriptor, journal / "lock"):
            return descriptor
        os.close(descriptor)
        if not wait:
            return None


def _lock(descriptor: int, *, wait: bool) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def _is_current(descriptor: int, path: Path) -> bool:
    """Whether the locked file still has its name: the previous holder unlinks it when it is done."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
