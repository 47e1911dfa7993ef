"""Registers what runs each operation of the compiler's IR, by importing the modules that do."""

from tilewright.interpret import control  # noqa: F401
from tilewright.interpret import printing  # noqa: F401
