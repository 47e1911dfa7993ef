"""A small hand-written operator for TileGym: its stub, and a kernel that works."""


def stub(op: str, dim: str = "int") -> str:
    """The dispatch stub; `dim` is the annotation of one parameter."""
    return f'''@dispatch("{op}")
def {op}(
    x: torch.Tensor,
    dim: {dim} = -1,
    out: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """Copy a tensor of one dimension.

    Args:
        x: Any tensor; a Sequence, or an Optional one, it is not.

    Returns:
        Its copy.
    """
    raise NotImplementedError(f"{op} is not implemented for {{get_current_backend()}}")
'''


def kernel(op: str) -> str:
    """The module of the cuTile backend."""
    return f'''# SPDX-FileCopyrightText: Copyright (c) 2026 NVIDIA CORPORATION & AFFILIATES. All rights reserved.
#
# SPDX-License-Identifier: MIT

"""cuTile backend of {op}."""

from typing import Any

import cuda.tile as ct
import torch

from tilegym.backend import register_impl

ConstInt = ct.Constant[int]


@ct.kernel
def _{op}_kernel(X, Y, TILE: ConstInt):
    tx = ct.load(X, index=(ct.bid(0),), shape=(TILE,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(Y, index=(ct.bid(0),), tile=tx)


@register_impl("{op}", backend="cutile")
def {op}(x: torch.Tensor, dim: int = -1, out: torch.Tensor | None = None, **kwargs: Any) -> torch.Tensor:
    if kwargs:
        raise TypeError(f"{op} got unexpected arguments: {{', '.join(kwargs)}}")
    out = torch.empty_like(x) if out is None else out
    ct.launch(torch.cuda.current_stream(), (ct.cdiv(x.numel(), 1024),), _{op}_kernel, (x, out, 1024))
    return out
'''
