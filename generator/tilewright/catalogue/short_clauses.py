"""Break long results into clauses that fit a line, by naming parts that they share."""

from collections import Counter
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence

from tilewright.catalogue.expression import Call
from tilewright.catalogue.expression import Expression
from tilewright.catalogue.expression import Name
from tilewright.catalogue.expression import Operation
from tilewright.catalogue.expression import calls
from tilewright.catalogue.expression import names
from tilewright.catalogue.expression import parts
from tilewright.catalogue.expression import substitute
from tilewright.catalogue.functions import Function

LONGEST = 92  # columns, in the longer of both spellings
FRESH = [letter + digit for digit in ("", *"23456789") for letter in "uvwrs"]


def short_clauses(
    locals_: Mapping[str, Expression],
    results: Sequence[Expression],
    functions: Mapping[str, Function],
    *,
    taken: Collection[str],
) -> list[tuple[str, Expression]]:
    """Locals with their names, then the results without; only locals that are used."""
    named, results = dict(locals_), list(results)
    while part := _part_to_name([*named.values(), *results], functions):
        used = {name for expression in (*named.values(), *results) for name in names(expression)}
        fresh = next(name for name in FRESH if not {name, f"t{name}"} & {*used, *named, *functions, *taken})
        shorter = {part: Name(fresh)}
        results = [substitute(result, shorter) for result in results]
        named = {name: substitute(value, shorter) for name, value in named.items()}
        named[fresh] = part
    return [*_in_order(named, results), *(("", result) for result in results)]


def _part_to_name(clauses: Sequence[Expression], functions: Mapping[str, Function]) -> Expression | None:
    """The part of a clause that is too long whose name saves most, counting all its places."""
    longest = max(clauses, key=lambda clause: _width(clause, functions))
    if _width(longest, functions) <= LONGEST:
        return None
    counts = Counter(part for clause in clauses for part in parts(clause))
    candidates = [
        part
        for part in dict.fromkeys(parts(longest))
        if part != longest and isinstance(part, Call | Operation) and _width(part, functions) <= LONGEST
    ]
    return max(candidates, key=lambda part: counts[part] * (_width(part, functions) - 2), default=None)


def _in_order(named: Mapping[str, Expression], results: Sequence[Expression]) -> list[tuple[str, Expression]]:
    """The locals that the results need, each after those that it uses."""
    ordered: dict[str, Expression] = {}

    def add(expression: Expression) -> None:
        for name in names(expression):
            if name in named and name not in ordered:
                add(named[name])
                ordered[name] = named[name]

    for result in results:
        add(result)
    return list(ordered.items())


def _width(expression: Expression, functions: Mapping[str, Function]) -> int:
    """Columns in the longer spelling: `sigmoid(x)` becomes `torch.sigmoid(x)` and `_sigmoid(tx)`."""
    longer = sum(
        max(len(functions[call.function].torch), len(functions[call.function].cutile)) - len(call.function)
        for call in calls(expression)
    )
    return len(str(expression)) + longer + sum(1 for _ in names(expression))
