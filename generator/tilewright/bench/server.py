"""Child process of `bench`: measure operators and report as JSON lines.

Every contestant is announced before it is called. One that hangs, crashes or leaves the GPU unusable ends this process,
and the parent has another one go on after it.
"""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

import torch

from tilewright.bench import clock
from tilewright.bench.surroundings import describe_gpu
from tilewright.bench.workload import Call
from tilewright.bench.workload import Workload
from tilewright.bench.workload import load
from tilewright.model.measurement import Limits
from tilewright.model.measurement import Measurement
from tilewright.model.measurement import Problem
from tilewright.model.measurement import Spread

Say = Callable[..., None]
_SEED = 0
_MOST_WORDS = 40  # of an error: the first lines of a comparison, not the whole source of a kernel


def main() -> None:
    """Read one request from stdin, write events to stdout."""
    request = json.loads(sys.stdin.readline())
    # What the modules print must not end up between the events.
    events = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    sys.path[:0] = request.pop("paths")
    prepare = request.pop("prepare")

    def say(event: str, **data: Any) -> None:
        print(json.dumps({"event": event, **data}), file=events)

    if prepare:
        prepare_all(say, **request)
        sys.stdin.readline()  # until it is this process's turn
    serve(say, **request)


def prepare_all(say: Say, **request: Any) -> None:
    """Call every contestant once, so that what is compiled at the first call is compiled before anything is timed."""

    def calls(event: str, **data: Any) -> None:
        if event == "begin":  # that it is alive
            say(event, **data)

    serve(calls, **request, measure=lambda _: Spread(median=1.0, low=1.0, high=1.0))  # the check has called it
    say("prepared")


def serve(
    say: Say,
    *,
    operators: list[dict[str, Any]],
    against: list[str] | None,
    dtypes: list[str],
    backward: bool = False,
    measure: clock.Clock = clock.measure,
) -> None:
    """Measure what is not yet done of each operator."""
    say("gpu", **describe_gpu())
    for operator in operators:
        tell = partial(say, operator=operator["name"])
        done = {(index, contestant) for index, contestant in operator["done"]}
        try:
            workload = load(**{name: value for name, value in operator.items() if name != "done"}, backward=backward)
            problems = workload.problems(dtypes)
            tell("limits", **asdict(_limits(workload, problems, measure)))
        except (Exception, SystemExit) as error:
            tell("refused", error=_describe(error))
            continue
        for index, (problem, dtype) in enumerate(problems):
            tell("problem", index=index, **asdict(problem))
            kwargs, expected, obstacle = _expect(workload, problem, dtype)
            for name, call in workload.contestants(against, kwargs).items():
                if (index, name) in done:
                    continue
                tell("begin", index=index, contestant=name)
                if workload.gradients and not obstacle:  # some peers write them over the arguments
                    kwargs.update(_arguments(workload, problem, dtype))
                if obstacle:
                    found = Measurement(contestant=name, verdict="failed", error=obstacle)
                else:
                    found = _measure(workload, name, call, kwargs, expected, measure)
                tell("measured", index=index, **asdict(found))
                torch.cuda.synchronize()  # raises where the contestant has left the GPU unusable
            del kwargs, expected
            torch.cuda.empty_cache()
        tell("complete")


def _limits(workload: Workload, problems: list[tuple[Problem, torch.dtype]], measure: clock.Clock) -> Limits:
    if not problems:
        known = ", ".join(str(dtype).removeprefix("torch.") for dtype in workload.dtypes)
        raise LookupError(f"its benchmark has none of the dtypes asked for; it has {known}")
    products = {problem.dtype: dtype for problem, dtype in problems if workload.unit == "TFLOP/s"}
    rates = {name: clock.matrix_rate(dtype, measure) for name, dtype in products.items()}
    limits = Limits(copy=clock.copy_rate(measure), matrix={name: rate for name, rate in rates.items() if rate})
    torch.cuda.empty_cache()
    return limits


def _arguments(workload: Workload, problem: Problem, dtype: torch.dtype) -> dict[str, Any]:
    """The same arguments each time."""
    torch.manual_seed(_SEED)
    return workload.inputs(*problem.size.values(), dtype, "cuda")


def _expect(workload: Workload, problem: Problem, dtype: torch.dtype) -> tuple[dict[str, Any], Any, str]:
    """Arguments, PyTorch's result, and why there are none, as where memory does not suffice."""
    try:
        kwargs = _arguments(workload, problem, dtype)
        return kwargs, workload.timed(partial(workload.reference, **kwargs), kwargs)(), ""
    except Exception as error:
        return {}, None, f"PyTorch gives no result to compare with: {_describe(error)}"


def _measure(
    workload: Workload, name: str, call: Call | None, kwargs: dict[str, Any], expected: Any, measure: clock.Clock
) -> Measurement:
    if call is None:
        return Measurement(contestant=name, verdict="missing", error="no implementation of it is registered")
    try:
        timed = workload.timed(call, kwargs)
        workload.check(timed(), expected)
        return Measurement(contestant=name, verdict="ok", milliseconds=measure(timed))
    except ImportError as error:
        return Measurement(contestant=name, verdict="missing", error=_describe(error))
    except AssertionError as error:
        return Measurement(contestant=name, verdict="wrong", error=_describe(error))
    except Exception as error:  # a peer that fails is a result, and must not end the run
        return Measurement(contestant=name, verdict="failed", error=_describe(error))


def _describe(error: BaseException) -> str:
    words = str(error).split()
    return f"{type(error).__name__}: {' '.join(words[:_MOST_WORDS])}{' ...' * (len(words) > _MOST_WORDS)}"
