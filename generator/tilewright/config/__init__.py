"""Find the host repository and read its profile."""

from tilewright.config.host import PROFILE
from tilewright.config.host import find_host

__all__ = ["PROFILE", "find_host"]
