"""Plugin of pytest that runs the interpreter's kernel tests on a GPU instead: their expected values are the GPU's.

python -m pytest -p tests.support.on_gpu tests/interpret/operations/test_arithmetic_kernels.py
"""

from typing import Any

import cuda.tile as ct
import torch

from tilewright.interpret.launch import Launcher


def _launch(_: Launcher, stream: object, grid: Any, kernel: Any, arguments: Any, /, **options: Any) -> None:
    """Launch with copies of the arguments' storages on the GPU, and copy them back."""
    storages: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def on_gpu(argument: Any) -> Any:
        if isinstance(argument, (tuple, list)):
            return type(argument)(map(on_gpu, argument))
        if not isinstance(argument, torch.Tensor):
            return argument
        storage = argument.untyped_storage()
        if storage.data_ptr() not in storages:
            content = torch.empty(0, dtype=torch.uint8).set_(storage)
            storages[storage.data_ptr()] = content, content.cuda()
        copied = storages[storage.data_ptr()][1].untyped_storage()
        view = torch.empty(0, dtype=argument.dtype, device="cuda")
        return view.set_(copied, argument.storage_offset(), argument.shape, argument.stride())

    ct.launch(torch.cuda.current_stream(), grid, kernel, tuple(map(on_gpu, arguments)), **options)
    torch.cuda.synchronize()
    for content, copied in storages.values():
        content.copy_(copied)


Launcher.launch = _launch  # type: ignore[method-assign]
