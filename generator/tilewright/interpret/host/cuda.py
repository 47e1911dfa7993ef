"""What torch.cuda says and does where one CUDA device is emulated."""

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from contextlib import contextmanager
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from tilewright.cutile.targets import Target
from tilewright.interpret.host.placement import is_cuda
from tilewright.interpret.host.streams import CUDAGraph
from tilewright.interpret.host.streams import Event
from tilewright.interpret.host.streams import Stream
from tilewright.interpret.host.substitution import Replacement

MEMORY = 16 * 2**30  # bytes, as of a small GPU: tests that need more should skip, here they would take hours


@dataclass(frozen=True, kw_only=True)
class DeviceProperties:
    """What torch.cuda.get_device_properties returns."""

    name: str
    major: int
    minor: int
    multi_processor_count: int
    shared_memory_per_block_optin: int
    total_memory: int
    shared_memory_per_block: int = 48 * 2**10
    shared_memory_per_multiprocessor: int = 228 * 2**10
    L2_cache_size: int = 50 * 2**20
    max_threads_per_block: int = 1024
    max_threads_per_multi_processor: int = 2048
    regs_per_multiprocessor: int = 2**16
    warp_size: int = 32
    is_integrated: bool = False
    is_multi_gpu_board: bool = False


class CudaDevice:
    """One GPU of the architecture `target`; each public name stands for the one of torch.cuda."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._default_stream = Stream(stream_ptr=0)
        self._current = threading.local()

    def replacements(self) -> list[Replacement]:
        """What takes the place of which attributes of torch.cuda."""
        names = [name for name in vars(CudaDevice) if not name.startswith("_") and name != "replacements"]
        classes = {"CUDAGraph": CUDAGraph, "Event": Event, "Stream": Stream, "ExternalStream": Stream}
        return [
            *((torch.cuda, name, getattr(self, name)) for name in names if hasattr(torch.cuda, name)),
            *((torch.cuda, name, type(name, (base,), {})) for name, base in classes.items()),
        ]

    def is_available(self) -> bool:
        """There is a GPU."""
        return True

    def is_initialized(self) -> bool:
        """It can be used."""
        return True

    def init(self) -> None:
        """Nothing has to be done first."""

    def device_count(self) -> int:
        """There is one GPU."""
        return 1

    def current_device(self) -> int:
        """It is the current one."""
        return 0

    def set_device(self, device: Any) -> None:
        """Choose the only one."""
        is_cuda(device)

    def device(self, device: Any) -> AbstractContextManager[None]:
        """Choose the only one for a while."""
        if device is not None:
            is_cuda(device)
        return nullcontext()

    def device_of(self, _obj: Any) -> AbstractContextManager[None]:
        """Choose the one that a tensor is on."""
        return nullcontext()

    def can_device_access_peer(self, _device: Any, _peer_device: Any) -> bool:
        """There is no other."""
        return False

    def get_arch_list(self) -> list[str]:
        """What PyTorch was built for: the target."""
        return [self._target.name]

    def get_device_capability(self, _device: Any = None) -> tuple[int, int]:
        """Capability of the target."""
        return self._target.capability

    def get_device_name(self, _device: Any = None) -> str:
        """Name of the target."""
        return f"{self._target.name} (tilewright interpreter)"

    def get_device_properties(self, _device: Any = None) -> DeviceProperties:
        """Properties of a typical GPU of the target."""
        major, minor = self._target.capability
        return DeviceProperties(
            name=self.get_device_name(),
            major=major,
            minor=minor,
            multi_processor_count=self._target.multiprocessors,
            shared_memory_per_block_optin=self._target.shared_kib * 1024,
            total_memory=MEMORY,
        )

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        """All architectures of cuTile have bfloat16."""
        del including_emulation
        return True

    def is_tf32_supported(self) -> bool:
        """All architectures of cuTile have tfloat32."""
        return True

    def is_current_stream_capturing(self) -> bool:
        """No CUDA graph is being captured."""
        return False

    def current_stream(self, _device: Any = None) -> Stream:
        """Stream chosen in this thread."""
        stream: Stream = getattr(self._current, "stream", self._default_stream)
        return stream

    def default_stream(self, _device: Any = None) -> Stream:
        """Stream that is current if no other is chosen."""
        return self._default_stream

    def set_stream(self, stream: Stream) -> None:
        """Choose a stream."""
        self._current.stream = stream

    @contextmanager
    def stream(self, stream: Stream | None) -> Iterator[None]:
        """Choose a stream for a while."""
        before = self.current_stream()
        self.set_stream(before if stream is None else stream)
        try:
            yield
        finally:
            self.set_stream(before)

    def synchronize(self, _device: Any = None) -> None:
        """All work is done."""

    def manual_seed(self, seed: int) -> None:
        """Seed the default generator, which is that of the CPU."""
        torch.default_generator.manual_seed(int(seed))

    manual_seed_all = manual_seed

    def seed(self) -> None:
        """Seed the default generator with a random number."""
        torch.default_generator.seed()

    seed_all = seed

    def initial_seed(self) -> int:
        """Seed of the default generator."""
        return int(torch.default_generator.initial_seed())

    def get_rng_state(self, _device: Any = "cuda") -> torch.Tensor:
        """State of the default generator."""
        state: torch.Tensor = torch.default_generator.get_state()
        return state

    def set_rng_state(self, new_state: torch.Tensor, _device: Any = "cuda") -> None:
        """Set the default generator."""
        torch.default_generator.set_state(new_state)

    def get_rng_state_all(self) -> list[torch.Tensor]:
        """State of the default generator, in a list."""
        return [self.get_rng_state()]

    def set_rng_state_all(self, new_states: list[torch.Tensor]) -> None:
        """Set the default generator."""
        self.set_rng_state(new_states[0])

    def empty_cache(self) -> None:
        """Nothing is cached."""

    ipc_collect = empty_cache

    def mem_get_info(self, _device: Any = None) -> tuple[int, int]:
        """Free memory, at most what the machine has, and the memory of the device."""
        return min(MEMORY, os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")), MEMORY

    def memory_allocated(self, _device: Any = None) -> int:
        """Allocations are not counted."""
        return 0

    max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated

    def reset_peak_memory_stats(self, _device: Any = None) -> None:
        """Allocations are not counted."""

    reset_max_memory_allocated = reset_accumulated_memory_stats = reset_peak_memory_stats
