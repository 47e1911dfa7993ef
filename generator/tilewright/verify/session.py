"""What the steps of all operators of one command share."""

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
from tilewright.model.kernel import Compilation
from tilewright.model.operator import Operator
from tilewright.verify.device import Devices
from tilewright.verify.device import find_gpus

ProgressBar = Callable[[str], AbstractContextManager[Progress | None]]


class Session:
    """One run of `verify`."""

    def __init__(
        self,
        *,
        targets: Sequence[Target] = TARGETS,
        jobs: int | None = None,
        progress_bar: ProgressBar = lambda _title: nullcontext(),
    ) -> None:
        self._targets = targets
        self._jobs = jobs
        self._progress_bar = progress_bar

    @cached_property
    def devices(self) -> Devices:
        """The GPUs of this machine."""
        return find_gpus()

    @property
    def interpreted_arch(self) -> str:
        """Architecture that the interpreter stands for: sm_90 unless only others were asked for."""
        names = [target.name for target in self._targets]
        return "sm_90" if "sm_90" in names else names[0]

    def compile(self, operator: Operator) -> Compilation:
        """Compile the operator for the architectures asked for."""
        with self._progress_bar(operator.name) as progress:
            return compile_operator(
                operator, targets=self._targets, jobs=self._jobs, progress=progress, cache=user_cache()
            )
