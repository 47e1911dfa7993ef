"""A child process that is replaced when it crashes or hangs: that costs the one request at which it happened."""

from collections.abc import Callable
from typing import Any

from tilewright.bench.child import Child
from tilewright.bench.child import ChildEndedError
from tilewright.errors import UsageError

_START = 300.0  # seconds for the imports, PyTorch's included
Reply = dict[str, Any]


class Guard:
    """Asks a child, which is started with the first request and stays warm until it fails."""

    def __init__(self, start: Callable[[], Child], setup: dict[str, Any], *, patience: float) -> None:
        self._start = start
        self.setup = setup
        self._patience = patience
        self._child: Child | None = None
        self._warming: Child | None = None
        self._ready: Reply = {}

    def warm_up(self) -> None:
        """Let the child begin with its imports, before it is told what it is for."""
        self._warming = self._warming or self._start()

    @property
    def ready(self) -> Reply:
        """What the child says of itself.

        Raises:
            UsageError: It cannot be started.
        """
        if self._child is None:
            child, self._warming = self._warming or self._start(), None
            try:
                child.tell(self.setup)
                ready = child.event(_START)
            except ChildEndedError as error:
                raise self._unfit(str(error)) from error
            except BaseException:
                child.end()
                raise
            if ready is None:
                raise self._unfit("the process ended")
            self._child, self._ready = child, ready
        return self._ready

    def ask(self, **request: Any) -> Reply:
        """The answer, in which `error` says what went wrong."""
        assert self.ready is not None
        assert self._child
        self._child.tell(request)
        try:
            reply = self._child.event(self._patience)
        except ChildEndedError as error:
            self.end()
            return {"error": str(error)}
        if reply is None:
            self.end()
            return {"error": "the process ended"}
        return reply

    def end(self) -> None:
        """End the child, if there is one."""
        for child in filter(None, (self._child, self._warming)):
            child.end()
        self._child = self._warming = None

    def _unfit(self, why: str) -> UsageError:
        name = self.setup["operator"]["name"]
        return UsageError(
            f"{name} cannot be tried out: {why}",
            expected="expected an operator whose package and benchmark can be imported",
            hint=f"see what is wrong: tilewright verify {name}",
        )
