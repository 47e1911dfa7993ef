"""Register an operator in the shared files of a TileGym checkout, take it out again, and find what is registered."""

from tilewright.codemod.discovery import discover
from tilewright.codemod.registered import Implementation
from tilewright.codemod.registered import RegisteredOperator
from tilewright.codemod.registered import Stub
from tilewright.codemod.registration import Placement
from tilewright.codemod.registration import register
from tilewright.codemod.registration import unregister

__all__ = [
    "Implementation",
    "Placement",
    "RegisteredOperator",
    "Stub",
    "discover",
    "register",
    "unregister",
]
