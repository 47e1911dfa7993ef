"""What the steps of all operators of one command share."""

import os
from collections.abc import Callable
from collections.abc import Sequence
from contextlib import AbstractContextManager
from contextlib import nullcontext
from functools import cached_property

from tilewright.aot.cache import user_cache
from tilewright.aot.compile import Progress
from tilewright.aot.compile import compile_operator
from tilewright.cutile.targets import TARGETS
from tilewright.cutile.targets import Target
from tilewright.cutile.toolchain import is_installed
from tilewright.model.kernel import Compilation
from tilewright.model.operator import Operator
from tilewright.verify.device import Devices
from tilewright.verify.device import find_gpus
from tilewright.verify.importing import Registered
from tilewright.verify.importing import registered

ProgressBar = Callable[[str], AbstractContextManager[Progress | None]]


def no_bar(_title: str) -> AbstractContextManager[None]:
    """Progress that nobody is told of."""
    return nullcontext()


class Session:
    """One run of `verify`."""

    def __init__(
        self,
        operators: Sequence[Operator],
        *,
        targets: Sequence[Target] = TARGETS,
        jobs: int | None = None,
        progress_bar: ProgressBar = no_bar,
    ) -> None:
        self._operators = operators
        self._targets = targets
        self._jobs = jobs or os.cpu_count() or 1
        self._progress_bar = progress_bar

    @cached_property
    def devices(self) -> Devices:
        """The GPUs of this machine."""
        return find_gpus()

    @cached_property
    def at_once(self) -> int:
        """How many operators are verified at once; a GPU is for one alone, whose times would not be true."""
        return 1 if self.devices.gpus else min(self._jobs, len(self._operators))

    def prepare(self) -> None:
        """Find out what all operators share, before their steps are taken in other processes."""
        if is_installed("cuda.tile"):
            _ = self._registered

    def registered(self, operator: Operator) -> Registered | str:
        """What the imported package knows of an operator, or how the import ends."""
        found = self._registered
        return found if isinstance(found, str) else found[operator.name]

    @cached_property
    def _registered(self) -> dict[str, Registered] | str:
        found = [operator for operator in self._operators if operator.declared and operator.loaded]
        return registered(found) if found else {}

    @property
    def interpreted_arch(self) -> str:
        """Architecture that the interpreter stands for: sm_90 unless only others were asked for."""
        names = [target.name for target in self._targets]
        return "sm_90" if "sm_90" in names else names[0]

    def compile(self, operator: Operator) -> Compilation:
        """Compile the operator for the architectures asked for."""
        jobs = self._jobs // self.at_once
        bar = self._progress_bar if self.at_once == 1 else no_bar
        with bar(operator.name) as progress:
            return compile_operator(operator, targets=self._targets, jobs=jobs, progress=progress, cache=user_cache())
