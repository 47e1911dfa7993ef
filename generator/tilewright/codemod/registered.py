"""An operator as its registration shows it, whoever wrote it."""

from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True, kw_only=True)
class Stub:
    """The function that dispatches; the path is relative to the root of the repository."""

    path: PurePosixPath
    module: str
    function: str
    line: int


@dataclass(frozen=True, kw_only=True)
class Implementation:
    """The function that one backend registers."""

    backend: str
    path: PurePosixPath
    module: str
    function: str  # empty where an expression is registered
    line: int
    loaded: bool  # importing the package of the stub imports this module too


@dataclass(frozen=True, kw_only=True)
class RegisteredOperator:
    """Everything that declares or mentions one operator."""

    name: str  # the key of `@dispatch` and `@register_impl`
    stub: Stub | None
    implementations: tuple[Implementation, ...] = ()
    tests: tuple[PurePosixPath, ...] = ()
    benchmarks: tuple[PurePosixPath, ...] = ()

    def implementation(self, backend: str) -> Implementation | None:
        """What the backend registers for the operator."""
        return next((found for found in self.implementations if found.backend == backend), None)
