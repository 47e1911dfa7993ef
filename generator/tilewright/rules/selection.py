"""Which rules run: codes and their beginnings, such as TW203 or TW2."""

import difflib
from collections.abc import Iterable
from collections.abc import Sequence

from tilewright.errors import UsageError
from tilewright.rules.registry import all_rules
from tilewright.rules.rule import Rule


def choose(select: Sequence[str], ignore: Sequence[str]) -> tuple[Rule, ...]:
    """Rules that one of `select` begins, or all where it is empty, without those of `ignore`.

    Raises UsageError for a code that no rule begins with.
    """
    for code in (*select, *ignore):
        if not any(rule.code.startswith(code) for rule in all_rules()):
            near = difflib.get_close_matches(code, [rule.code for rule in all_rules()], n=1, cutoff=0.5)
            raise UsageError(
                f"no rule {code}",
                expected="expected a code, such as TW203, or the beginning of several, such as TW2",
                hint=f"did you mean {near[0]}?" if near else "the codes are in docs/reference/rules.md",
            )
    return tuple(rule for rule in all_rules() if _begins(rule, select or [""]) and not _begins(rule, ignore))


def _begins(rule: Rule, codes: Iterable[str]) -> bool:
    return any(rule.code.startswith(code) for code in codes)
