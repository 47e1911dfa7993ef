"""Tuning and timing without a GPU: the first configuration that works, and the time that the CPU takes."""

import importlib
import time
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

from tilewright.cutile.toolchain import is_installed
from tilewright.interpret.frontend import is_kernel
from tilewright.interpret.host.substitution import Replacement

Launch = Callable[..., None]


def replacements(launch: Launch) -> list[Replacement]:
    """What takes the place of the search of cuda.tile and, if it is installed, of Triton's benchmarks."""
    tune = importlib.import_module("cuda.tile.tune")
    found: list[Replacement] = [(tune, "exhaustive_search", _first_that_works(launch, tune))]
    if is_installed("triton.testing"):
        testing = importlib.import_module("triton.testing")
        found += [
            (testing, "do_bench", _bench(testing._summarize_statistics, "do_bench")),
            (testing, "do_bench_cudagraph", _bench(testing._summarize_statistics, "do_bench_cudagraph")),
        ]
    return found


def _first_that_works(launch: Launch, tune: Any) -> Callable[..., Any]:
    def exhaustive_search(
        search_space: Iterable[Any],
        stream: Any,
        grid_fn: Callable[[Any], tuple[int, ...]],
        kernel: Any,
        args_fn: Callable[[Any], tuple[Any, ...]],
        hints_fn: Callable[[Any], dict[str, Any]] | None = None,
        **_options: Any,
    ) -> Any:
        """The first configuration that works; its time is that of one launch on the CPU.

        Raises:
            ValueError: None works.
        """
        failures: list[tuple[Any, type[BaseException], str]] = []
        for config in search_space:
            chosen = kernel if is_kernel(kernel) else kernel(config)
            try:
                chosen = chosen.replace_hints(**(hints_fn(config) if hints_fn else {}))
                start = time.perf_counter()
                launch(stream, grid_fn(config), chosen, args_fn(config))
            except Exception as error:  # as the original does
                failures.append((config, type(error), str(error)))
                continue
            microseconds = (time.perf_counter() - start) * 1e6
            best = tune.Measurement(config=config, mean_us=microseconds, num_samples=1, error_margin_us=0.0)
            return tune.TuningResult(best=best, successes=(best,), failures=tuple(failures))
        if not failures:
            raise ValueError("Search space is empty")
        config, error_type, message = failures[0]
        raise ValueError(f"No valid config found in search space.\nConfig: {config}\n{error_type.__name__}: {message}")

    return exhaustive_search


def _bench(summarize: Callable[..., Any], name: str) -> Callable[..., Any]:
    def bench(
        fn: Callable[[], Any],
        *_repetitions: Any,
        quantiles: Sequence[float] | None = None,
        return_mode: str = "mean",
        **_options: Any,
    ) -> Any:
        """Run the function once; the milliseconds that it took, in the form that was asked for."""
        start = time.perf_counter()
        fn()
        return summarize([(time.perf_counter() - start) * 1e3], quantiles, return_mode)

    bench.__name__ = name
    return bench
