"""Run the statements of a kernel on what is known of its values."""

import ast
from collections.abc import Iterable
from collections.abc import Mapping

from tilewright.rules.calls import Calls
from tilewright.rules.expressions import BINARY_OPERATORS
from tilewright.rules.expressions import Variables
from tilewright.rules.flow import Carry
from tilewright.rules.flow import Flow
from tilewright.rules.items import element
from tilewright.rules.items import merged_all
from tilewright.rules.symbols import integer
from tilewright.rules.symbols import rounded_up
from tilewright.rules.symbols import unknown
from tilewright.rules.values import UNKNOWN
from tilewright.rules.values import Array
from tilewright.rules.values import Function
from tilewright.rules.values import Repeated
from tilewright.rules.values import Scalar
from tilewright.rules.values import Sequence
from tilewright.rules.values import Value
from tilewright.rules.values import any_item
from tilewright.rules.values import carried
from tilewright.rules.values import integer_scalar
from tilewright.rules.values import merged
from tilewright.rules.values import scalar

_DEPTH = 8  # of helpers that call each other
_TURNS = 2  # of a loop until what it carries is taken to be stable


class Walk(Calls):
    """Runs one kernel; each loop a few times, each helper at each of its calls.

    `given` are values of constants, for a kernel that has another shape for each of them.
    """

    def __init__(self, flow: Flow, given: Mapping[str, int]) -> None:
        super().__init__(flow)
        self._given = given
        self._depth = 0
        self._returned: list[Value] = []

    def run(self) -> None:
        """Fill the flow."""
        kernel = self.flow.kernel
        for parameter in kernel.parameters:
            value = _parameter(parameter.name, parameter.node.annotation, parameter.constant)
            if parameter.name in self._given:
                value = scalar(self._given[parameter.name])
            self.variables[parameter.name] = value
        self.flow.functions[kernel.node] = None
        self.block(kernel.node.body)

    def inlined(self, function: Function, call: ast.Call) -> Value:
        """Run the body of a helper with the arguments of a call."""
        given = self._bound(function, call)
        if given is None or self._depth >= _DEPTH:
            return UNKNOWN
        outside = self.variables, self.function, self._returned
        self.variables, self.function, self._returned = {**function.variables, **given}, function.node, []
        self._depth += 1
        self.flow.functions.setdefault(function.node)
        if isinstance(function.node, ast.Lambda):
            result = self.value(function.node.body)
        else:
            self.block(function.node.body)
            result = merged_all(tuple(self._returned))
        self._depth -= 1
        self.variables, self.function, self._returned = outside
        return result

    def _bound(self, function: Function, call: ast.Call) -> Variables | None:
        arguments = function.node.args
        names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
        values: list[Value] = []
        for each in call.args:
            value = self.value(each.value if isinstance(each, ast.Starred) else each)
            if isinstance(each, ast.Starred):
                if not isinstance(value, Sequence):
                    return None
                values += value.items
            else:
                values.append(value)
        given = dict(zip(names, values, strict=False))
        given |= {each.arg: self.value(each.value) for each in call.keywords if each.arg is not None}
        defaults = zip(reversed(names), reversed(arguments.defaults), strict=False)
        for name, default in defaults:
            if name not in given:
                given[name] = self.value(default)
        keyword_defaults = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        for argument, keyword_default in keyword_defaults:
            if argument.arg not in given and keyword_default is not None:
                given[argument.arg] = self.value(keyword_default)
        if arguments.vararg is not None:
            given[arguments.vararg.arg] = Sequence(tuple(values[len(names) :]))
        return {
            name: given.get(name, UNKNOWN) for name in (*names, *(each.arg for each in arguments.kwonlyargs), *given)
        }

    def block(self, statements: Iterable[ast.stmt]) -> bool:
        """Run statements; False where none after them is reached."""
        return all(self.statement(each) for each in statements)

    def statement(self, node: ast.stmt) -> bool:
        """Run one statement; False where the next one is not reached."""
        match node:
            case ast.Assign(targets=targets, value=given):
                value = self.value(given)
                for target in targets:
                    self._assign(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as given):
                self._assign(target, self.value(given))
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=given):
                read = ast.copy_location(ast.Name(id=name, ctx=ast.Load()), target)
                whole = ast.copy_location(ast.BinOp(left=read, op=op, right=given), node)
                self.variables[name] = self.operator(BINARY_OPERATORS[type(op)], whole, read, given)
            case ast.Expr(value=given):
                self.value(given)
            case ast.If():
                return self._branches(node)
            case ast.For() | ast.While():
                self._loop(node)
            case ast.FunctionDef(name=name):
                self.variables[name] = Function(node, self.variables)
            case ast.Return(value=given):
                self._returned.append(self.value(given) if given is not None else UNKNOWN)
                return False
            case ast.Continue() | ast.Break() | ast.Raise():
                return False
            case ast.With(body=body):
                return self.block(body)
        return True

    def _assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.variables[target.id] = value
        elif isinstance(target, ast.Subscript):
            self.noted("setitem", target, {"x": self.value(target.value)}, {"x": target.value}, UNKNOWN)
        elif isinstance(target, ast.Tuple | ast.List):
            for place, each in enumerate(target.elts):
                if isinstance(each, ast.Starred):
                    self._assign(each.value, UNKNOWN)
                else:
                    self._assign(each, element(value, scalar(place)))

    def _branches(self, node: ast.If) -> bool:
        known = self.value(node.test)
        before, conditions = self.variables, self.conditions
        self.conditions = (*conditions, node.test)
        if isinstance(known, Scalar) and isinstance(known.literal, bool):
            reached = self.block(node.body if known.literal else node.orelse)
            self.conditions = conditions
            return reached
        ends: list[Variables] = []
        for body in (node.body, node.orelse):
            self.variables = dict(before)
            if self.block(body):
                ends.append(self.variables)
        self.conditions = conditions
        self.variables = ends[0] if ends else dict(before)
        if len(ends) == 2:
            self.variables = _joined(ends[0], ends[1], node)
        return bool(ends)

    def _loop(self, node: ast.For | ast.While) -> None:
        if isinstance(node, ast.For):
            turn = self._turn(node)
        else:
            self.value(node.test)
        before = self.variables
        start = before
        recording = self.recording
        first: Variables = {}
        for attempt in range(_TURNS + 1):
            last = attempt == _TURNS or not recording
            self.recording = recording and last
            self.variables = dict(start)
            if isinstance(node, ast.For):
                self._assign(node.target, turn)
            loops, self.loops = self.loops, (*self.loops, node)
            self.block(node.body)
            self.loops = loops
            first = first or self.variables
            if last:
                break
            start = _carried(start, self.variables, before, node)
        self.recording = recording
        after = self.variables
        if recording:
            for name, value in before.items():
                if first.get(name, value) != value:
                    self.flow.carries.append(Carry(name, value, first[name], node, self.function))
        self.variables = {**after, **_carried(before, after, before, node)}

    def _turn(self, node: ast.For) -> Value:
        """The loop variable: its start plus so many steps."""
        match node.iter:
            case ast.Call(func=ast.Name(id="range"), args=arguments):
                return self._range(node, arguments, constant=False)
            case ast.Call(func=function, args=[inner]) if self.module.names.tile(function) == "static_iter":
                if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "range":
                    return self._range(node, inner.args, constant=True)
                values = self.value(inner)
                if isinstance(values, Repeated):
                    return any_item(values)
                return merged_all(values.items) if isinstance(values, Sequence) else UNKNOWN
        self.value(node.iter)
        return UNKNOWN

    def _range(self, node: ast.For, arguments: list[ast.expr], *, constant: bool) -> Value:
        numbers = []
        for each in arguments:
            value = self.value(each)
            if isinstance(value, Array):
                value = integer_scalar(unknown("parameter", value.name))
            numbers.append(value.number if isinstance(value, Scalar) else None)
        first = numbers[0] if len(numbers) > 1 else integer(0)
        last = numbers[1] if len(numbers) > 1 else numbers[0] if numbers else None
        step = numbers[2] if len(numbers) > 2 else integer(1)
        if first is None or step is None:
            return Scalar(number=unknown("other", node.lineno, node.col_offset), constant=constant, dtype="int32")
        turns = rounded_up(last - first, step) if last is not None else unknown("other", "turns")
        number = first + step * unknown("step", node.lineno, node.col_offset, turns)
        return Scalar(number=number, constant=constant, dtype="int32")


def _joined(first: Variables, second: Variables, node: ast.stmt) -> Variables:
    return {
        name: merged(first[name], second[name], (name, node.lineno, node.col_offset))
        if name in first and name in second
        else first.get(name, second.get(name, UNKNOWN))
        for name in {**first, **second}
    }


def _carried(start: Variables, end: Variables, before: Variables, node: ast.stmt) -> Variables:
    return {
        name: carried(start[name], end.get(name, start[name]), (name, node.lineno, node.col_offset, "loop"))
        for name in before
    }


def _parameter(name: str, annotation: ast.expr | None, constant: bool) -> Value:
    text = ast.unparse(annotation) if annotation is not None else ""
    number = unknown("parameter", name)
    if constant:
        kinds = {"float": "float", "bool": "bool"}
        kind = next((kind for word, kind in kinds.items() if word in text.lower()), None)
        return Scalar(number=None if kind else number, constant=True, dtype=kind or "int", parameter=name)
    if text in ("int", "bool") or "ScalarInt64" in text:
        return Scalar(number=number, dtype="int64" if "64" in text else "int32", parameter=name)
    if text == "float":
        return Scalar(dtype="float32", parameter=name)
    return Array(name)
