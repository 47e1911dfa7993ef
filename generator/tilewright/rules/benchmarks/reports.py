"""Benchmarks of a file: functions that `triton.testing.perf_report` runs."""

import ast
from collections.abc import Iterator

from tilewright.rules.source import Module


def benchmarks(module: Module) -> Iterator[ast.FunctionDef]:
    """Functions under `triton.testing.perf_report`."""
    for function in module.nodes(ast.FunctionDef):
        for decorator in function.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            if (module.names.resolve(called) or "").endswith("testing.perf_report"):
                yield function
