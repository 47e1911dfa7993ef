"""max_pool2d: importing this package registers its cuTile backend."""

from ..backend import is_backend_available
from .interface import max_pool2d

if is_backend_available("cutile"):
    from . import cutile as cutile

__all__ = ["max_pool2d"]
