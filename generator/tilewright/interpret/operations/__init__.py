"""What runs each operation of the compiler's IR, one module for each kind; importing this package registers all."""

from tilewright.interpret.operations import arithmetic  # noqa: F401
from tilewright.interpret.operations import atomics  # noqa: F401
from tilewright.interpret.operations import bits  # noqa: F401
from tilewright.interpret.operations import casts  # noqa: F401
from tilewright.interpret.operations import constants  # noqa: F401
from tilewright.interpret.operations import control  # noqa: F401
from tilewright.interpret.operations import functions  # noqa: F401
from tilewright.interpret.operations import matrix  # noqa: F401
from tilewright.interpret.operations import pointers  # noqa: F401
from tilewright.interpret.operations import printing  # noqa: F401
from tilewright.interpret.operations import reductions  # noqa: F401
from tilewright.interpret.operations import shapes  # noqa: F401
from tilewright.interpret.operations import tiles  # noqa: F401
from tilewright.interpret.operations import views  # noqa: F401
