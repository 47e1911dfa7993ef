"""Read a formula: tensors, scalars, locals and the result, or say where it goes wrong."""

import ast
import difflib
import keyword
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.catalogue.expression import Call
from tilewright.catalogue.expression import Comparison
from tilewright.catalogue.expression import Expression
from tilewright.catalogue.expression import Name
from tilewright.catalogue.expression import Negation
from tilewright.catalogue.expression import Number
from tilewright.catalogue.expression import Operation
from tilewright.catalogue.expression import names
from tilewright.catalogue.functions import Function
from tilewright.catalogue.misuse import find_misuse
from tilewright.errors import UsageError

NUMBER = r"(?:[0-9]+[.]?[0-9]*|[.][0-9]+)(?:[eE][+-]?[0-9]+)?"
CLAUSE = re.compile(r"(?:,(?=\s*\w+\s*=))?\s*(?:(?P<name>\w+)\s*=(?!=))?\s*(?P<value>.*?)\s*")
OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
# What the rendered code calls by these names.
RESERVED = {
    *("acc", "any", "backend", "bias", "constants", "ct", "ctx", "device", "dtype", "float", "get_current_backend"),
    *("grad", "inputs", "kernel", "kwargs", "math", "name", "out", "result", "self", "shape", "shapes", "str"),
    *("struct", "tensor", "torch", "tout", "tuple", "wide", "x_grad", "zip"),
}
MOST_TENSORS = 4
LONGEST = 500
GRAMMAR = "names, numbers, + - * / **, comparisons inside where(condition, a, b), and calls"


@dataclass(frozen=True, kw_only=True)
class Formula:
    """A formula of the language, taken apart."""

    text: str
    tensors: tuple[str, ...]  # in the order in which they appear
    scalars: tuple[tuple[str, str], ...]  # name and default
    locals: tuple[tuple[str, Expression], ...]
    result: Expression


def parse_formula(text: str, functions: Mapping[str, Function], *, given: tuple[str, ...] = ()) -> Formula:
    """The parts of a formula; `given` are names that are neither tensors nor scalars, such as `acc`."""
    return _Reader(text, functions, given).formula()


class _Reader:
    """Reads one formula and knows where it is in the text, for the caret of an error."""

    def __init__(self, text: str, functions: Mapping[str, Function], given: tuple[str, ...]) -> None:
        self.text = text
        self.functions = functions
        self.given = given
        self.start = 0  # of the clause that is being read
        self.scalars: dict[str, str] = {}
        self.locals: dict[str, Expression] = {}
        self.result: Expression | None = None
        self.used: list[str] = []

    def formula(self) -> Formula:
        self._check_text()
        # A comma before `name =` separates like a semicolon: "x * alpha, alpha=1.0".
        for piece in re.finditer(r"(?:(?!,\s*[A-Za-z_]\w*\s*=[^=])[^;])+", self.text):
            self.start = piece.start()
            self._read_clause(piece[0])
        self.start = 0
        if self.result is None:
            raise self._whole("has no result", "end with an expression, for example x * sigmoid(x)")
        for name in (*self.scalars, *self.locals):
            if name not in self.used:
                raise self._whole(f"declares {name} and does not use it", "use it, or leave it out")
        clauses = (*self.locals.items(), ("", self.result))
        if misuse := find_misuse(clauses, self.scalars, functions=self.functions):
            raise self._whole(*misuse)
        bound = {*self.scalars, *self.locals, *self.given}
        tensors = tuple(dict.fromkeys(name for name in self.used if name not in bound))
        if not tensors and not self.given:
            raise self._whole("has no tensor in it", "free names are tensors: x * sigmoid(x)")
        if len(tensors) > MOST_TENSORS:
            raise self._whole(f"has {len(tensors)} tensors", f"at most {MOST_TENSORS} are possible")
        return Formula(
            text=self.text,
            tensors=tensors,
            scalars=tuple(self.scalars.items()),
            locals=tuple(self.locals.items()),
            result=self.result,
        )

    def _check_text(self) -> None:
        if len(self.text) > LONGEST:
            raise UsageError(
                f"the formula has {len(self.text)} characters",
                expected=f"expected at most {LONGEST}",
                hint="compute a part of it in an operator of its own",
            )
        if foreign := re.search(r"[^A-Za-z0-9_.+\-*/()<>=!,; ]", self.text):
            raise self._error(f"has {foreign[0]!r} in it", f"it is made of {GRAMMAR}", *foreign.span())
        if called := re.search(r"[)]\s*[(]", self.text):
            raise self._error("calls what is in parentheses", "write exp(x), or x * (y)", *called.span())
        if comma := re.search(r",\s*[)]", self.text):
            raise self._error("has a comma before a parenthesis", "leave it out", *comma.span())
        if signs := re.search(r"[-+]\s*[-+]", self.text):
            raise self._error("has two signs in a row", "put the second into parentheses", *signs.span())

    def _read_clause(self, piece: str) -> None:
        clause = CLAUSE.fullmatch(piece)
        assert clause is not None
        name, value = clause["name"], clause["value"]
        if name is None and not value:
            return
        if name is not None:
            self._check_declared(name, *clause.span("name"))
        elif self.result is not None:
            raise self._error("has more than one result", "name it, as in t = x * y; t + 1", *clause.span("value"))
        if name is not None and re.fullmatch(f"-?{NUMBER}", value):
            if math.isinf(float(value)):
                raise self._error(f"has {value} in it", "it is beyond the largest float64", *clause.span("value"))
            self.scalars[name] = value
            return
        if name in self.used:
            raise self._error(f"uses {name} before it is defined", "define it first", *clause.span("name"))
        self.start += clause.start("value")
        expression = self._clause(value)
        self.used.extend(names(expression))
        if name is None:
            self.result = expression
        else:
            self.locals[name] = expression

    def _clause(self, value: str) -> Expression:
        try:
            tree = ast.parse(value, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            # An offset of 0 means the end of the text.
            at = (getattr(error, "offset", None) or len(value) + 1) - 1
            raise self._error("is not an expression", f"it is made of {GRAMMAR}", at, at + 1) from error
        return self._expression(tree)

    def _expression(self, node: ast.expr) -> Expression:
        match node:
            case ast.Constant() if re.fullmatch(NUMBER, text := self._source(node)):
                if math.isinf(float(text)):
                    raise self._error(f"has {text} in it", "it is beyond the largest float64", *_span(node))
                return Number(text)
            case ast.Name(name):
                self._check_name(node, name)
                return Name(name)
            case ast.UnaryOp(ast.USub(), operand):
                return Negation(self._expression(operand))
            case ast.BinOp(left, operator, right) if type(operator) in OPERATORS:
                if isinstance(operator, ast.Div) and isinstance(right, ast.Constant) and right.value == 0:
                    raise self._error("divides by a literal zero", "divide by something else", *_span(right))
                return Operation(OPERATORS[type(operator)], self._expression(left), self._expression(right))
            case ast.Compare(left, [operator], [right]) if type(operator) in COMPARISONS:
                return Comparison(COMPARISONS[type(operator)], self._expression(left), self._expression(right))
            case ast.Call(ast.Name(name), arguments, []):
                self._check_call(node, name, len(arguments))
                return Call(name, tuple(map(self._expression, arguments)))
            case _:
                raise self._error(f"has {self._source(node)!r} in it", f"it is made of {GRAMMAR}", *_span(node))

    def _check_call(self, node: ast.Call, name: str, count: int) -> None:
        if name not in self.functions:
            nearest = difflib.get_close_matches(name, self.functions, n=1)
            advice = f"did you mean {nearest[0]}?" if nearest else "use one of them"
            known = ", ".join(sorted(self.functions))
            raise self._error(f"calls {name}, but the functions are {known}", advice, *_span(node.func))
        if count != (takes := self.functions[name].arguments):
            raise self._error(f"gives {name} {count} argument{'s' * (count != 1)}", f"it takes {takes}", *_span(node))

    def _check_name(self, node: ast.Name, name: str) -> None:
        if name in self.functions:
            raise self._error(f"uses the function {name} without arguments", f"write {name}(...)", *_span(node))
        if name in RESERVED and name not in self.given:
            raise self._error(f"uses the reserved name {name}", "the generated code has it; use another", *_span(node))
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise self._error(f"uses the name {name}", "names are lower case, for example x or gate", *_span(node))

    def _check_declared(self, name: str, first: int, last: int) -> None:
        if name in self.scalars or name in self.locals:
            raise self._error(f"declares {name} twice", "use another name", first, last)
        reserved = name in RESERVED or name in self.functions or name in self.given or keyword.iskeyword(name)
        if reserved or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise self._error(f"declares {name}", "use a lower-case name that is not taken", first, last)

    def _source(self, node: ast.expr) -> str:
        first, last = _span(node)
        return self.text[self.start + first : self.start + last]

    def _whole(self, what: str, advice: str) -> UsageError:
        return self._error(what, advice, 0, len(self.text))

    def _error(self, what: str, advice: str, first: int, last: int) -> UsageError:
        """The formula on the second line and a caret below the place on the third."""
        caret = " " * (self.start + first) + "^" * max(last - first, 1)
        return UsageError(f"the formula {what}", expected=f"  {self.text}", hint=f"  {caret} {advice}")


def _span(node: ast.expr) -> tuple[int, int]:
    assert node.end_col_offset is not None
    return node.col_offset, node.end_col_offset
