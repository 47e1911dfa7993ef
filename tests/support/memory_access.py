"""What tests of accesses share: runs over the memory of tensors, and sites."""

import torch

from tilewright.interpret.memory.access import Site
from tilewright.interpret.memory.allocations import Memory
from tilewright.interpret.memory.arrays import ArrayValue
from tilewright.interpret.numbers.dtypes import NUMERIC
from tilewright.interpret.run import Run


def run_over(*tensors, blocks=1):
    """A run of `blocks` blocks that may touch these tensors, called t0, t1, ..."""
    memory = Memory()
    for number, tensor in enumerate(tensors):
        memory.add(tensor, f"t{number}")
    return Run(grid=(blocks, 1, 1), blocks=torch.arange(blocks), memory=memory, step_limit=1)


def element_of(dtype):
    """The Element of what a tensor of this dtype holds."""
    name = str(dtype).removeprefix("torch.")
    return next(each for each in NUMERIC if each.name.removesuffix("_") == name)


def site_of(tensor):
    return Site(element_of(tensor.dtype), "source", "WEAK", "NONE")


def array_of(tensor):
    return ArrayValue(tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()))


def addresses_of(tensor, *indices):
    """Addresses of the elements at flat positions in units of the tensor's elements."""
    return tensor.data_ptr() + torch.tensor(indices) * tensor.element_size()
