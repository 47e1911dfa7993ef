"""Expressions of the formula language, and how they are written."""

from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass

PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "**": 4}
UNARY = 3
ATOM = 5


@dataclass(frozen=True)
class Number:
    """A literal, kept as it was written."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Name:
    """A tensor, a scalar or a local."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Negation:
    """Unary minus."""

    operand: "Expression"

    def __str__(self) -> str:
        return f"-{_unsigned(_within(self.operand, UNARY))}"


@dataclass(frozen=True)
class Operation:
    """Two operands and one of `+ - * / **`."""

    operator: str
    left: "Expression"
    right: "Expression"

    def __str__(self) -> str:
        precedence = PRECEDENCE[self.operator]
        # `**` binds to the right, the others to the left.
        power = self.operator == "**"
        left = _within(self.left, precedence + power)
        right = _within(self.right, UNARY if power else precedence + 1)
        return f"{left} {self.operator} {_unsigned(right) if precedence == PRECEDENCE['+'] else right}"


@dataclass(frozen=True)
class Comparison:
    """The condition of a `where`."""

    operator: str
    left: "Expression"
    right: "Expression"

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


@dataclass(frozen=True)
class Call:
    """A function of the table and its arguments."""

    function: str
    arguments: tuple["Expression", ...]

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


Expression = Number | Name | Negation | Operation | Comparison | Call


def parts(expression: Expression) -> Iterator[Expression]:
    """The expression and everything in it, from left to right."""
    yield expression
    inner: tuple[Expression, ...] = ()
    match expression:
        case Negation(operand):
            inner = (operand,)
        case Operation(_, left, right) | Comparison(_, left, right):
            inner = (left, right)
        case Call(_, arguments):
            inner = arguments
    for part in inner:
        yield from parts(part)


def names(expression: Expression) -> Iterator[str]:
    """Every name in it, from left to right, with repetitions."""
    return (part.name for part in parts(expression) if isinstance(part, Name))


def calls(expression: Expression) -> Iterator[Call]:
    """Every call in it, from left to right."""
    return (part for part in parts(expression) if isinstance(part, Call))


def substitute(expression: Expression, values: Mapping[Expression, Expression]) -> Expression:
    """The expression with parts replaced, all at the same time."""
    if expression in values:
        return values[expression]
    match expression:
        case Negation(operand):
            return Negation(substitute(operand, values))
        case Operation(operator, left, right):
            return Operation(operator, substitute(left, values), substitute(right, values))
        case Comparison(operator, left, right):
            return Comparison(operator, substitute(left, values), substitute(right, values))
        case Call(function, arguments):
            return Call(function, tuple(substitute(argument, values) for argument in arguments))
    return expression


def _within(expression: Expression, least: int) -> str:
    """As an operand of an operator that binds as tightly as `least`."""
    return str(expression) if _precedence(expression) >= least else f"({expression})"


def _unsigned(text: str) -> str:
    """Two signs in a row are not in the language."""
    return f"({text})" if text.startswith("-") else text


def _precedence(expression: Expression) -> int:
    match expression:
        case Operation(operator):
            return PRECEDENCE[operator]
        case Negation():
            return UNARY
        case Comparison():
            return 0
    return ATOM
