"""Shorten an expression: what is nothing, one, or common to both terms of a sum."""

from tilewright.catalogue.expression import Call
from tilewright.catalogue.expression import Comparison
from tilewright.catalogue.expression import Expression
from tilewright.catalogue.expression import Negation
from tilewright.catalogue.expression import Number
from tilewright.catalogue.expression import Operation

ZERO = Number("0.0")
ONE = Number("1.0")
SHORT = 8  # characters of a quotient that is worth computing


def simplify(expression: Expression) -> Expression:
    """An equal expression, usually shorter."""
    match expression:
        case Negation(operand):
            return _negative(simplify(operand))
        case Operation(operator, left, right):
            rule = {"+": _sum, "-": _difference, "*": _product, "/": _quotient, "**": _power}[operator]
            return rule(simplify(left), simplify(right))
        case Comparison(operator, left, right):
            return Comparison(operator, simplify(left), simplify(right))
        case Call("where", (condition, left, right)):
            left, right = simplify(left), simplify(right)
            return left if left == right else Call("where", (simplify(condition), left, right))
        case Call(function, arguments):
            return Call(function, tuple(map(simplify, arguments)))
    return expression


def _negative(operand: Expression) -> Expression:
    if _value(operand) == 0:
        return ZERO
    return operand.operand if isinstance(operand, Negation) else Negation(operand)


def _sum(left: Expression, right: Expression) -> Expression:
    if (values := _values(left, right)) is not None:
        return _number(values[0] + values[1])
    if _value(left) == 0:
        return right
    if _value(right) == 0:
        return left
    if isinstance(right, Negation):
        return _difference(left, right.operand)
    if isinstance(left, Negation):
        return _difference(right, left.operand)
    if left == right:
        return _product(left, Number("2"))
    return _factored("+", left, right)


def _difference(left: Expression, right: Expression) -> Expression:
    if (values := _values(left, right)) is not None:
        return _number(values[0] - values[1])
    if _value(left) == 0:
        return _negative(right)
    if _value(right) == 0:
        return left
    if isinstance(right, Negation):
        return _sum(left, right.operand)
    if isinstance(left, Negation):
        return _negative(_sum(left.operand, right))
    return _factored("-", left, right)


def _factored(operator: str, left: Expression, right: Expression) -> Expression:
    """`grad * a + grad * b` as `grad * (a + b)`."""
    (first, rest), (other, others) = _split(left), _split(right)
    if first != other or isinstance(first, Number) or (operator, rest) == ("-", others):
        return Operation(operator, left, right)
    return _product(first, (_sum if operator == "+" else _difference)(rest, others))


def _split(expression: Expression) -> tuple[Expression, Expression]:
    """The first factor of a product, and what it is multiplied with."""
    match expression:
        case Operation("*", left, right):
            first, rest = _split(left)
            return first, _product(rest, right)
        case Operation("/", left, right):
            first, rest = _split(left)
            return first, _quotient(rest, right)
    return expression, ONE


def _product(left: Expression, right: Expression) -> Expression:
    if 0 in (_value(left), _value(right)):
        return ZERO
    if _value(left) == 1:
        return right
    if _value(right) == 1:
        return left
    if isinstance(left, Negation):
        return _negative(_product(left.operand, right))
    if isinstance(right, Negation):
        return _negative(_product(left, right.operand))
    if isinstance(right, Operation) and right.operator == "*":
        return _product(_product(left, right.left), right.right)
    return Operation("*", left, right)


def _quotient(left: Expression, right: Expression) -> Expression:
    if _value(left) == 0:
        return ZERO
    if _value(right) == 1:
        return left
    if (values := _values(left, right)) is not None and values[1] and len(repr(values[0] / values[1])) < SHORT:
        return _number(values[0] / values[1])
    if isinstance(left, Negation):
        return _negative(_quotient(left.operand, right))
    return Operation("/", left, right)


def _power(left: Expression, right: Expression) -> Expression:
    if _value(right) == 1:
        return left
    if _value(right) == 0:
        return ONE
    return Operation("**", left, right)


def _value(expression: Expression) -> float | None:
    """The number that a literal is."""
    match expression:
        case Number(text):
            return float(text)
        case Negation(Number(text)):
            return -float(text)
    return None


def _values(left: Expression, right: Expression) -> tuple[float, float] | None:
    first, second = _value(left), _value(right)
    return None if first is None or second is None else (first, second)


def _number(value: float) -> Expression:
    text = repr(abs(value)).removesuffix(".0")
    return Negation(Number(text)) if value < 0 else Number(text)
