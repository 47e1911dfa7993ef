"""Have a child process measure operators; what ends the child costs the contestant at which it happened."""

from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from dataclasses import field
from itertools import zip_longest
from typing import Any

from tilewright.aot.compile import Progress
from tilewright.bench.child import Child
from tilewright.bench.child import ChildEndedError
from tilewright.bench.child import Event
from tilewright.model.host import Host
from tilewright.model.measurement import Comparison
from tilewright.model.measurement import Limits
from tilewright.model.measurement import Measurement
from tilewright.model.measurement import OperatorBenchmark
from tilewright.model.measurement import Problem
from tilewright.model.measurement import Spread
from tilewright.model.operator import Operator

PATIENCE = 300.0  # seconds for one contestant, which torch.compile may need for a single kernel
_PEERS = "peers.py"  # beside the benchmarks: peers of any operator of the host
COMMAND = ("-m", "tilewright.bench")


def has_gradients(operator: Operator) -> bool:
    """Whether the benchmark of an operator can time its gradients, as far as its text shows."""
    path = operator.path(operator.benchmark)
    return path.is_file() and "\ndef gradients(" in path.read_text(encoding="utf-8")


def names(operator: Operator) -> dict[str, str]:
    """What a child has to know of an operator to load its benchmark."""
    return {
        "name": operator.name,
        "function": operator.function,
        "package": operator.host.operators_module,
        "backend": f"{operator.host.import_name}.backend",
        "benchmark": operator.module(operator.benchmark),
        "peers": operator.module(operator.benchmark.with_name(_PEERS)),
    }


@dataclass
class _Progress:
    """What is known of one operator so far."""

    operator: Operator
    limits: Limits | None = None
    problems: dict[int, Problem] = field(default_factory=dict)
    measurements: dict[int, dict[str, Measurement]] = field(default_factory=dict)
    error: str = ""

    def request(self) -> dict[str, Any]:
        """What the child has to know of it."""
        done = [(index, name) for index, found in self.measurements.items() for name in found]
        return {**names(self.operator), "done": done}

    def benchmark(self) -> OperatorBenchmark:
        """All of it."""
        comparisons = (
            Comparison(
                problem=problem,
                limit=self.limits.of(problem) if self.limits else None,
                measurements=tuple(self.measurements.get(index, {}).values()),
            )
            for index, problem in self.problems.items()
        )
        return OperatorBenchmark(
            name=self.operator.name, limits=self.limits, comparisons=tuple(comparisons), error=self.error
        )


class Bench:
    """One run over operators of one host."""

    def __init__(
        self,
        host: Host,
        *,
        against: Sequence[str] | None = None,
        dtypes: Sequence[str] = (),
        backward: bool = False,
        jobs: int = 1,
        command: Sequence[str] = COMMAND,
        patience: float = PATIENCE,
        progress: Progress | None = None,
    ) -> None:
        self._host = host
        self._request = {
            "against": against if against is None else list(against),
            "dtypes": list(dtypes),
            "backward": backward,
        }
        self._jobs = jobs
        self._command = command
        self._patience = patience
        self._progress = progress
        self._measured = 0
        self.gpu = {"gpu": "unknown", "arch": "unknown", "driver": "unknown"}  # until a child has said what it is

    def run(self, operators: Sequence[Operator]) -> Iterator[OperatorBenchmark]:
        """What was measured of each operator, as soon as it is complete.

        With several jobs, as many children call every contestant once, so that what has to be compiled is compiled,
        before the first of them measures. Then they measure in turn, and each has the GPU for itself.
        """
        waiting = [_Progress(operator) for operator in operators]
        shares = [waiting[first :: self._jobs] for first in range(min(self._jobs, len(waiting)))]
        with ExitStack() as stack:
            children: Sequence[Child] = ()
            if self._jobs > 1:
                children = [stack.enter_context(self._start(share, prepare=True)) for share in shares]
            prepared = [self._is_prepared(child) for child in children]
            for share, child, is_prepared in zip_longest(shares, children, prepared):
                if is_prepared:
                    child.tell({}, last=True)
                    yield from self._listen(child, share)
                while share:
                    yield from self._listen(self._start(share, prepare=False), share)

    def _start(self, waiting: Sequence[_Progress], *, prepare: bool) -> Child:
        """A child that measures these operators, after a further line of input where it prepares them first."""
        paths = [str(path) for path in waiting[0].operator.import_paths]
        # TileGym must not answer for a backend that is missing
        child = Child(self._command, folder=self._host.root, environment={"DISABLE_FALLBACK": "1"})
        operators = [each.request() for each in waiting]
        child.tell(self._request | {"paths": paths, "operators": operators, "prepare": prepare}, last=not prepare)
        return child

    def _is_prepared(self, child: Child) -> bool:
        """Wait until it is; one that ends instead is ended again by what it cannot do, when that is measured."""
        try:
            return any(event["event"] == "prepared" for event in child.events(self._patience))
        except ChildEndedError:
            return False

    def _listen(self, child: Child, waiting: list[_Progress]) -> Iterator[OperatorBenchmark]:
        """Let a child go on until it ends; operators that are complete are taken off the list."""
        begun: tuple[int, str] | None = None
        learned = False
        with child:
            try:
                for event in child.events(self._patience):
                    kind = event.pop("event")
                    if kind == "gpu":
                        self.gpu = event
                        continue
                    begun = self._take(waiting[0], kind, event)
                    complete = kind in ("refused", "complete")
                    learned = learned or complete or kind == "measured"
                    if complete:
                        yield waiting.pop(0).benchmark()
                if waiting:
                    raise ChildEndedError("the process ended")
            except ChildEndedError as error:
                if begun:
                    index, name = begun
                    failure = Measurement(contestant=name, verdict="failed", error=str(error))
                    waiting[0].measurements.setdefault(index, {})[name] = failure
                elif not learned:  # another child would end as this one did
                    waiting[0].error = str(error)
                    yield waiting.pop(0).benchmark()

    def _take(self, progress: _Progress, kind: str, event: Event) -> tuple[int, str] | None:
        """Take one event in; returns the contestant that is being measured from now on, if any."""
        del event["operator"]
        match kind:
            case "refused":
                progress.error = event["error"]
            case "limits":
                progress.limits = Limits(**event)
            case "problem":
                index = event.pop("index")
                progress.problems[index] = Problem(**event)
            case "begin":
                return event["index"], event["contestant"]
            case "measured":
                index, milliseconds = event.pop("index"), event.pop("milliseconds")
                found = Measurement(**event, milliseconds=milliseconds and Spread(**milliseconds))
                progress.measurements.setdefault(index, {})[found.contestant] = found
                self._measured += 1
                if self._progress:
                    self._progress(self._measured, 0)
        return None
