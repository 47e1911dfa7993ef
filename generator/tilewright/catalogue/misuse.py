"""Find a function that does not get what it takes: torch.exp no tensor, torch.where no condition."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping

from tilewright.catalogue.expression import Call
from tilewright.catalogue.expression import Comparison
from tilewright.catalogue.expression import Expression
from tilewright.catalogue.expression import Negation
from tilewright.catalogue.expression import Operation
from tilewright.catalogue.expression import names
from tilewright.catalogue.functions import CONDITIONS
from tilewright.catalogue.functions import Function

TAKEN = {"t": "a tensor", "s": "a number or a scalar", "v": "a value", "c": "a condition such as x > 0"}


def find_misuse(
    clauses: Iterable[tuple[str, Expression]], scalars: Iterable[str], *, functions: Mapping[str, Function]
) -> tuple[str, str] | None:
    """What is wrong and what to do, or None; clauses are locals with their names, then the result."""
    numbers = set(scalars)
    for name, expression in clauses:
        for problem in _misuses(expression, "v", numbers, functions):
            return problem
        if name and _is_number(expression, numbers):
            numbers.add(name)
    return None


def _misuses(
    expression: Expression, takes: str, numbers: set[str], functions: Mapping[str, Function]
) -> Iterator[tuple[str, str]]:
    is_condition = isinstance(expression, Comparison) or (
        isinstance(expression, Call) and expression.function in CONDITIONS
    )
    if is_condition and takes != "c":
        yield f"uses the condition {expression} as a value", "choose with it: where(x > 0, x, 0.0)"
    match expression:
        case Negation(operand):
            yield from _misuses(operand, "v", numbers, functions)
        case Operation(_, left, right) | Comparison(_, left, right):
            yield from _misuses(left, "v", numbers, functions)
            yield from _misuses(right, "v", numbers, functions)
        case Call(function, arguments):
            for argument, wanted in zip(arguments, functions[function].takes, strict=True):
                yield from _misuses(argument, wanted, numbers, functions)
                is_number = _is_number(argument, numbers)
                if (wanted == "t" and is_number) or (wanted == "s" and not is_number):
                    yield f"gives {function} {argument}", f"it takes {TAKEN[wanted]} there"
            if _is_number(expression, numbers):
                yield f"calls {function} without a tensor", f"put the value of {expression} there"
        case _:
            pass
    if takes == "c" and not is_condition:
        yield f"uses {expression} as a condition", "write one, for example x > 0"


def _is_number(expression: Expression, numbers: set[str]) -> bool:
    return numbers.issuperset(names(expression))
