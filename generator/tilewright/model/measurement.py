"""What a benchmark measured: the time of every contestant on every problem, and the limits of the GPU in that run."""

from dataclasses import dataclass
from dataclasses import field
from typing import Literal

OWN = "cutile"  # the contestant whose peers the others are
Verdict = Literal["ok", "wrong", "failed", "missing"]
Unit = Literal["GB/s", "TFLOP/s"]
_PER_MILLISECOND = {"GB/s": 1e-6, "TFLOP/s": 1e-9}


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Median of repeated measurements, and the values between which the middle three fifths of them lie."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One size and dtype, and how much has to be done."""

    size: dict[str, int]
    dtype: str
    backward: bool = False  # whether the gradients are what is computed
    unit: Unit
    work: float  # bytes that have to move, or floating-point operations

    @property
    def shape(self) -> str:
        """The sizes in order, as in 4096x11008."""
        return "x".join(map(str, self.size.values()))

    def rate(self, milliseconds: Spread) -> Spread:
        """Work per time, in the unit of the problem."""
        scale = self.work * _PER_MILLISECOND[self.unit]
        return Spread(median=scale / milliseconds.median, low=scale / milliseconds.high, high=scale / milliseconds.low)


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One contestant on one problem: its time, or why it has none."""

    contestant: str
    verdict: Verdict
    milliseconds: Spread | None = None
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Rates of this GPU at the time: those of a copy on the device, and of torch's matrix product by dtype."""

    copy: float  # GB/s, bytes read plus bytes written
    matrix: dict[str, float] = field(default_factory=dict)  # TFLOP/s

    def of(self, problem: Problem) -> float | None:
        """What bounds the rate of a problem, if it was measured."""
        return self.copy if problem.unit == "GB/s" else self.matrix.get(problem.dtype)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All contestants on one problem."""

    problem: Problem
    limit: float | None
    measurements: tuple[Measurement, ...]

    @property
    def own(self) -> Measurement | None:
        """The operator itself."""
        return next((each for each in self.measurements if each.contestant == OWN), None)

    def rate(self, measurement: Measurement) -> Spread | None:
        """Rate of a contestant that gave the right result."""
        return measurement.milliseconds and self.problem.rate(measurement.milliseconds)

    def of_limit(self, measurement: Measurement) -> float | None:
        """Fraction of the limit; above 1 where less has to move than in a copy, or caches help."""
        rate = self.rate(measurement)
        return rate.median / self.limit if rate and self.limit else None

    def of_best_peer(self, measurement: Measurement) -> float | None:
        """Rate as a fraction of that of the fastest peer of the operator."""
        rate = self.rate(measurement)
        rates = [found.median for each in self.measurements if each.contestant != OWN and (found := self.rate(each))]
        return rate.median / max(rates) if rate and rates else None


@dataclass(frozen=True, kw_only=True)
class OperatorBenchmark:
    """What was measured of one operator, or why nothing was."""

    name: str
    limits: Limits | None = None
    comparisons: tuple[Comparison, ...] = ()
    error: str = ""

    @property
    def failed(self) -> bool:
        """Whether the operator itself is wrong, fails, or could not be measured; peers may fail."""
        own = [comparison.own for comparison in self.comparisons]
        return bool(self.error) or any(each is not None and each.verdict != "ok" for each in own)


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a reader needs to repeat a run."""

    date: str
    command: str
    gpu: str
    arch: str
    driver: str
    versions: dict[str, str]  # of distributions; empty text: not installed
