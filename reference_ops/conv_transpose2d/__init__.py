"""conv_transpose2d: importing this package registers its cuTile backend."""

from ..backend import is_backend_available
from .interface import conv_transpose2d

if is_backend_available("cutile"):
    from . import cutile as cutile

__all__ = ["conv_transpose2d"]
