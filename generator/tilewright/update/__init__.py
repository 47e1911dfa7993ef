"""Move operators to a newer template and keep what their owners wrote."""

from tilewright.config.versions import tag
from tilewright.update.behind import Behind
from tilewright.update.behind import newest_recorded
from tilewright.update.behind import read_behind
from tilewright.update.behind import read_standing
from tilewright.update.outcome import Plan
from tilewright.update.plan import plan_catch_up
from tilewright.update.plan import plan_update
from tilewright.update.plan import recorded_operators
from tilewright.update.progress import refuse_if_begun
from tilewright.update.run import abort
from tilewright.update.run import carry_out
from tilewright.update.run import continue_
from tilewright.update.templates import own_version

__all__ = [
    "Behind",
    "Plan",
    "abort",
    "carry_out",
    "continue_",
    "newest_recorded",
    "own_version",
    "plan_catch_up",
    "plan_update",
    "read_behind",
    "read_standing",
    "recorded_operators",
    "refuse_if_begun",
    "tag",
]
