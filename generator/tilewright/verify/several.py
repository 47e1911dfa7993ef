"""Verify several operators: as many at once as there may be processes, told of in their order."""

import multiprocessing
import os
import signal
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from tilewright.model.operator import Operator
from tilewright.model.outcome import StepOutcome
from tilewright.verify.session import Session
from tilewright.verify.steps import verify

_worker: Session  # of a process of the pool


def verify_all(operators: Sequence[Operator], session: Session) -> Iterator[tuple[Operator, Iterable[StepOutcome]]]:
    """The outcomes of each operator; where they are taken one by one, each outcome comes as soon as it is there."""
    if session.at_once == 1:
        for operator in operators:
            yield operator, verify(operator, session)
        return
    session.prepare()
    # Forked, so that the session need not be pickled. The one thread there may be draws a bar, which they never touch.
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(session.at_once, context, _start, (session,)) as pool:
        try:
            yield from zip(operators, pool.map(_verify, operators), strict=True)
        except BaseException:
            for process in multiprocessing.active_children():
                process.terminate()  # which ends what it started, too
            raise


def _start(session: Session) -> None:
    global _worker
    _worker = session
    # A terminal sends the one to all of them; the process that started them sends them the other.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    # Operators that run side by side do not fight for the cores.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // session.at_once)))


def _end(number: int, _frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)  # the pool may say it again, while what this one started is being ended
    raise SystemExit(128 + number)


def _verify(operator: Operator) -> list[StepOutcome]:
    try:
        return list(verify(operator, _worker))
    except SystemExit as end:  # what this one started is ended; the pool would go on with the next operator
        os._exit(end.code if isinstance(end.code, int) else 1)
