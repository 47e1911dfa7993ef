"""Registers what runs each operation of the compiler's IR, by importing the modules that do."""

from tilewright.interpret import arithmetic  # noqa: F401
from tilewright.interpret import atomics  # noqa: F401
from tilewright.interpret import bits  # noqa: F401
from tilewright.interpret import casts  # noqa: F401
from tilewright.interpret import constants  # noqa: F401
from tilewright.interpret import control  # noqa: F401
from tilewright.interpret import functions  # noqa: F401
from tilewright.interpret import matrix  # noqa: F401
from tilewright.interpret import pointers  # noqa: F401
from tilewright.interpret import printing  # noqa: F401
from tilewright.interpret import shapes  # noqa: F401
from tilewright.interpret import tiles  # noqa: F401
from tilewright.interpret import views  # noqa: F401
