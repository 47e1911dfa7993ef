"""linear_cross_entropy: importing this package registers its cuTile backend."""

from ..backend import is_backend_available
from .interface import linear_cross_entropy

if is_backend_available("cutile"):
    from . import cutile as cutile

__all__ = ["linear_cross_entropy"]
