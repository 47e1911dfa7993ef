"""quantize_int8: importing this package registers its cuTile backend."""

from ..backend import is_backend_available
from .interface import quantize_int8

if is_backend_available("cutile"):
    from . import cutile as cutile

__all__ = ["quantize_int8"]
