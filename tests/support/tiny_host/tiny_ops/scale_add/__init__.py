"""scale_add: x + alpha * y."""

from . import cutile as _cutile  # noqa: F401  registers the backend
from .interface import scale_add

__all__ = ["scale_add"]
