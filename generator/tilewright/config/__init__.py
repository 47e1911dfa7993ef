"""Find the host repository, read its profile and what its operators were made from."""

from tilewright.config.answers import ANSWERS
from tilewright.config.answers import read_answers
from tilewright.config.host import PROFILE
from tilewright.config.host import find_host

__all__ = ["ANSWERS", "PROFILE", "find_host", "read_answers"]
