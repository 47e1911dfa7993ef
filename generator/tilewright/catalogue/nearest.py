"""An error for a name that is not known, with the nearest that is."""

import difflib
from collections.abc import Iterable

from tilewright.errors import UsageError


def unknown_name(what: str, name: str, known: Iterable[str], *, hint: str = "") -> UsageError:
    """Says what is wrong and what there is; `hint` serves where nothing is near."""
    known = list(known)
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return UsageError(
        what,
        expected=f"expected one of {', '.join(known)}",
        hint=f"did you mean {nearest[0]}?" if nearest else hint,
    )
