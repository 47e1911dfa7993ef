"""The files of a small package, of which each example of a rule changes what the rule is about."""

from collections.abc import Mapping

INTERFACE = '''
from typing import Any

import torch

from .backend import dispatch
from .backend import get_current_backend


@dispatch("scale")
def scale({stub}) -> torch.Tensor:
    """Multiply by a factor."""
    raise NotImplementedError(f"scale is not implemented for {{get_current_backend()}}")
'''

CUTILE = """
from typing import Any

import torch

from .backend import register_impl


@register_impl("scale", backend="cutile")
def scale({implementation}) -> torch.Tensor:
    return {result}
"""

REGISTRATION = """
from .backend import is_backend_available
from .interface import scale

if is_backend_available("cutile"):
    from . import cutile

__all__ = ["scale"]
"""

BACKEND = "from ._registry import dispatch, get_current_backend, is_backend_available, register_impl\n"

SIGNATURE = "x: torch.Tensor, factor: float = 1.0, **kwargs: Any"


def package(
    *,
    stub: str = SIGNATURE,
    implementation: str = SIGNATURE,
    result: str = "x * factor",
    changed: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The package with the signatures given, what the implementation returns, and files changed or added."""
    files = {
        "__init__.py": REGISTRATION,
        "backend.py": BACKEND,
        "interface.py": INTERFACE.format(stub=stub),
        "cutile.py": CUTILE.format(implementation=implementation, result=result),
    } | dict(changed or {})
    return {f"my_ops/{path}": text for path, text in files.items()}
