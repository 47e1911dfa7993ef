"""Operators of the tiny host."""

from .scale_add import scale_add

__all__ = ["scale_add"]
