"""silu_and_mul: importing this package registers its cuTile backend."""

from ..backend import is_backend_available
from .interface import silu_and_mul

if is_backend_available("cutile"):
    from . import cutile as cutile

__all__ = ["silu_and_mul"]
