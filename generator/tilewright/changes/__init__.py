"""Apply file changes: all of them or none."""

from tilewright.changes.apply import apply
from tilewright.changes.apply import apply_planned
from tilewright.changes.apply import recover

__all__ = ["apply", "apply_planned", "recover"]
