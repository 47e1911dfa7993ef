"""All known errors, by topic."""

from functools import cache

from tilewright.explain.entry import Entry
from tilewright.explain.entry import Topic
from tilewright.explain.errors.calls import CALLS
from tilewright.explain.errors.compiler import COMPILER
from tilewright.explain.errors.driver import DRIVER
from tilewright.explain.errors.launch import LAUNCH
from tilewright.explain.errors.numerics import NUMERICS
from tilewright.explain.errors.sizes import SIZES
from tilewright.explain.errors.tests import TESTS
from tilewright.explain.errors.types import TYPES

TOPICS = (
    Topic(
        title="Front end",
        about="What cuda-tile refuses while it translates a kernel; the message shows the line.",
        entries=(*SIZES, *CALLS, *TYPES),
    ),
    Topic(
        title="Compiler",
        about="What tileiras refuses afterwards: after a return code one line says why, none says where.",
        entries=COMPILER,
    ),
    Topic(title="Launch", about="Grids, arguments, and what goes wrong while a kernel runs.", entries=LAUNCH),
    Topic(
        title="Driver and toolkit", about="What is missing or does not fit; see `tilewright doctor`.", entries=DRIVER
    ),
    Topic(title="Numbers", about="Results that are not those of the reference.", entries=NUMERICS),
    Topic(title="Tests", about="What keeps tests from testing.", entries=TESTS),
)


@cache
def all_entries() -> dict[str, Entry]:
    """Every error by its name."""
    return {entry.name: entry for topic in TOPICS for entry in topic.entries}
