"""What the steps of a kernel report in checking mode, beside what every access to memory does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.interpret.check import overflow
from tilewright.interpret.check import overrun
from tilewright.interpret.translate.lowering import Step


def watched(body: Any, arch: str) -> Callable[[Any, Step], Step]:
    """What makes the steps of a kernel for an architecture report overflows of indices and stores beside arrays."""
    overflows, overruns = overflow.watched(body), overrun.watched(body, arch)
    return lambda op, step: overruns(op, overflows(op, step))
