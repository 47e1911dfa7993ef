"""Random generators: those of the emulated device are those of the CPU."""

from typing import Any

import torch

from tilewright.interpret.host.placement import CPU
from tilewright.interpret.host.placement import DEVICE
from tilewright.interpret.host.placement import is_cuda
from tilewright.interpret.host.substitution import Replacement


def replacements() -> list[Replacement]:
    """What takes the place of torch.Generator."""
    original: Any = torch.Generator

    class AnyGenerator(type(original)):  # type: ignore[misc]
        def __instancecheck__(cls, instance: Any) -> bool:
            """Generators that were made before count as well."""
            return isinstance(instance, original)

    class Generator(original, metaclass=AnyGenerator):  # type: ignore[misc]
        """A generator that says which device it was made for."""

        def __new__(cls, device: Any = CPU) -> "Generator":
            """A generator of random numbers on this device."""
            made: Generator = super().__new__(cls, CPU)
            made._device = DEVICE if is_cuda(device) else torch.device(device)
            return made

        @property
        def device(self) -> torch.device:
            """Device that it was made for."""
            return self._device

    return [(torch, "Generator", Generator)]
