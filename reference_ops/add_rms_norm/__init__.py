"""add_rms_norm: importing this package registers its cuTile backend."""

from ..backend import is_backend_available
from .interface import add_rms_norm

if is_backend_available("cutile"):
    from . import cutile as cutile

__all__ = ["add_rms_norm"]
