"""bincount: importing this package registers its cuTile backend."""

from ..backend import is_backend_available
from .interface import bincount

if is_backend_available("cutile"):
    from . import cutile as cutile

__all__ = ["bincount"]
