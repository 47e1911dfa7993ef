"""The gradients of a formula, in the same language: what `grad` of the result means for each tensor."""

import math
from collections.abc import Mapping
from functools import partial
from functools import reduce

from tilewright.catalogue.expression import Call
from tilewright.catalogue.expression import Expression
from tilewright.catalogue.expression import Name
from tilewright.catalogue.expression import Negation
from tilewright.catalogue.expression import Number
from tilewright.catalogue.expression import Operation
from tilewright.catalogue.expression import names
from tilewright.catalogue.expression import substitute
from tilewright.catalogue.formula import Formula
from tilewright.catalogue.formula import parse_formula
from tilewright.catalogue.functions import Function
from tilewright.catalogue.short_clauses import short_clauses
from tilewright.catalogue.simplify import ONE
from tilewright.catalogue.simplify import ZERO
from tilewright.catalogue.simplify import simplify
from tilewright.errors import UsageError

GRAD = Name("grad")


def gradient_formula(formula: Formula, functions: Mapping[str, Function]) -> str:
    """One gradient per tensor, in their order, after the locals that they share; all separated by `;`."""
    chain = _Chain(formula, functions)
    gradients = [chain.gradient(tensor) for tensor in formula.tensors]
    clauses = short_clauses(dict(formula.locals), gradients, functions, taken=dict(formula.scalars))
    return "; ".join(f"{name} = {value}" if name else str(value) for name, value in clauses)


class _Chain:
    """The chain rule over one formula."""

    def __init__(self, formula: Formula, functions: Mapping[str, Function]) -> None:
        self.formula = formula
        self.locals = dict(formula.locals)
        self.functions = functions

    def gradient(self, tensor: str) -> Expression:
        """The gradient of one tensor, a tensor also where it is constant."""
        gradient = simplify(self.back(self.formula.result, GRAD, tensor))
        return gradient if any(names(gradient)) else Operation("*", gradient, GRAD)

    def depends(self, expression: Expression, tensor: str) -> bool:
        """Whether the tensor is in the expression or in a local that it uses."""
        return any(
            name == tensor or (name in self.locals and self.depends(self.locals[name], tensor))
            for name in names(expression)
        )

    def back(self, expression: Expression, grad: Expression, tensor: str) -> Expression:
        """What `grad` of the expression contributes to the gradient of the tensor."""
        if not self.depends(expression, tensor):
            return ZERO
        terms: tuple[tuple[Expression, Expression], ...]
        match expression:
            case Name(name):
                return self.back(self.locals[name], grad, tensor) if name in self.locals else grad
            case Negation(operand):
                return self.back(operand, Negation(grad), tensor)
            case Operation("+", left, right):
                terms = (left, grad), (right, grad)
            case Operation("-", left, right):
                terms = (left, grad), (right, Negation(grad))
            case Operation("*", left, right):
                terms = (left, Operation("*", grad, right)), (right, Operation("*", grad, left))
            case Operation("/", left, right):
                downwards = Operation("/", Operation("*", grad, left), Operation("*", right, right))
                terms = (left, Operation("/", grad, right)), (right, Negation(downwards))
            case Operation("**", left, right):
                lower = Operation("**", left, Operation("-", right, ONE))
                terms = (
                    (left, Operation("*", grad, Operation("*", right, lower))),
                    (right, Operation("*", grad, Operation("*", expression, _log(left)))),
                )
            case Call("where", (condition, left, right)):
                # Branch by branch: the one that was not chosen may be infinite.
                return Call("where", (condition, self.back(left, grad, tensor), self.back(right, grad, tensor)))
            case Call(function, arguments):
                terms = tuple(zip(arguments, self._rules(function, arguments, grad), strict=True))
            case _:
                return ZERO  # a condition is flat
        return reduce(partial(Operation, "+"), (self.back(part, toward, tensor) for part, toward in terms))

    def _rules(self, function: str, arguments: tuple[Expression, ...], grad: Expression) -> list[Expression]:
        rules = self.functions[function].gradient
        if not rules:
            known = sorted(name for name, entry in self.functions.items() if entry.gradient)
            raise UsageError(
                f"the gradient of {function} is not known, in {self.formula.text}",
                expected=f"expected functions with a known gradient: {', '.join(known)}",
                hint="give it: --grad-formula, one per tensor separated by `;`, in terms of the inputs and `grad`",
            )
        values: dict[Expression, Expression] = {GRAD: grad, **dict(zip(map(Name, "abc"), arguments, strict=False))}
        parsed = (parse_formula(rule, self.functions, given=("grad",)) for rule in rules)
        return [substitute(rule.result, values) for rule in parsed]


def _log(expression: Expression) -> Expression:
    if isinstance(expression, Number) and float(expression.text) > 0:
        return Number(repr(math.log(float(expression.text))))
    return Call("log", (expression,))
