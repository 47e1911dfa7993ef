"""What the steps of all operators of one command share."""

from collections.abc import Sequence
from functools import cached_property

from tilewright.aot.compile import Progress
from tilewright.aot.compile import compile_operator
from tilewright.aot.targets import TARGETS
from tilewright.aot.targets import Target
from tilewright.model.kernel import Compilation
from tilewright.model.operator import Operator
from tilewright.verify.device import Devices
from tilewright.verify.device import find_gpus


class Session:
    """One run of `verify`."""

    def __init__(
        self, *, targets: Sequence[Target] = TARGETS, jobs: int | None = None, progress: Progress | None = None
    ) -> None:
        self._targets = targets
        self._jobs = jobs
        self._progress = progress

    @cached_property
    def devices(self) -> Devices:
        """The GPUs of this machine."""
        return find_gpus()

    def compile(self, operator: Operator) -> Compilation:
        """Compile the operator for the architectures asked for."""
        return compile_operator(operator, targets=self._targets, jobs=self._jobs, progress=self._progress)
