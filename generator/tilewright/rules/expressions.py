"""What an expression of a kernel is, operation by operation."""

import ast
import math
from collections.abc import Mapping

from tilewright.rules import operations
from tilewright.rules.elementwise import binary
from tilewright.rules.elementwise import unary
from tilewright.rules.flow import Flow
from tilewright.rules.flow import FunctionNode
from tilewright.rules.flow import Operation
from tilewright.rules.items import element
from tilewright.rules.items import joined
from tilewright.rules.items import merged_all
from tilewright.rules.items import numeric
from tilewright.rules.items import sliced
from tilewright.rules.tile_api import DTYPES
from tilewright.rules.values import UNKNOWN
from tilewright.rules.values import Array
from tilewright.rules.values import DType
from tilewright.rules.values import Function
from tilewright.rules.values import Method
from tilewright.rules.values import Named
from tilewright.rules.values import Repeated
from tilewright.rules.values import Scalar
from tilewright.rules.values import Sequence
from tilewright.rules.values import Tile
from tilewright.rules.values import Value
from tilewright.rules.values import View
from tilewright.rules.values import merged
from tilewright.rules.values import repeated
from tilewright.rules.values import scalar

BINARY_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.LShift: "bitwise_lshift",
    ast.RShift: "bitwise_rshift",
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
}
_NUMBERS = {"math.inf": math.inf, "math.pi": math.pi, "math.e": math.e, "math.nan": math.nan, "math.tau": math.tau}
Variables = dict[str, Value]


class Expressions:
    """Evaluates expressions in the variables of the function that is being run, and notes the operations."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.module = flow.module
        self.variables: Variables = {}
        self.function: FunctionNode = flow.kernel.node
        self.loops: tuple[ast.For | ast.While, ...] = ()
        self.conditions: tuple[ast.expr, ...] = ()
        self.recording = True
        self._globals: Variables = {}

    def called(self, node: ast.Call) -> Value:
        """What a call gives."""
        raise NotImplementedError

    def value(self, node: ast.expr) -> Value:
        """The value of an expression."""
        value = self._value(node)
        if self.recording:
            self.flow.values[node] = value
        return value

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as literal):
                return scalar(literal)
            case ast.Constant(value=None):
                return Named("None")
            case ast.Name(id=name):
                return self._variable(name, node)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return self._sequence(items)
            case ast.BinOp(left=left, op=op, right=right):
                return self.operator(BINARY_OPERATORS[type(op)], node, left, right)
            case ast.UnaryOp():
                return self._unary(node)
            case ast.Compare():
                return self._compare(node)
            case ast.BoolOp(values=items):
                for each in items:
                    self.value(each)
                return Scalar(dtype="bool")
            case ast.IfExp(test=test, body=body, orelse=orelse):
                known = self.value(test)
                if isinstance(known, Scalar) and isinstance(known.literal, bool):
                    return self.value(body if known.literal else orelse)
                with_test, self.conditions = self.conditions, (*self.conditions, test)
                values = self.value(body), self.value(orelse)
                self.conditions = with_test
                return merged(*values, (node.lineno, node.col_offset))
            case ast.Subscript():
                return self._subscript(node)
            case ast.Call():
                return self.called(node)
            case ast.Lambda():
                return Function(node, self.variables)
            case ast.NamedExpr(target=ast.Name(id=name), value=given):
                self.variables[name] = self.value(given)
                return self.variables[name]
            case ast.JoinedStr():
                return UNKNOWN
        return UNKNOWN

    def _sequence(self, nodes: list[ast.expr]) -> Value:
        items: list[Value] = []
        for place, each in enumerate(nodes):
            if isinstance(each, ast.Starred):
                inner = self.value(each.value)
                if isinstance(inner, Repeated):
                    return self._rest_of_sequence(inner, items, nodes[place + 1 :])
                if not isinstance(inner, Sequence):
                    return UNKNOWN
                items += inner.items
            else:
                items.append(self.value(each))
        return Sequence(tuple(items))

    def _rest_of_sequence(self, inner: Repeated, before: list[Value], after: list[ast.expr]) -> Value:
        """A tuple written around one of unknown length: `(*tiles[:-1], last)`."""
        rest = self._sequence(after)
        end = repeated(rest) if isinstance(rest, Sequence | Repeated) else None
        item = merged_all((*before, inner.item))
        return Repeated(item, inner.last if end is None else end.last)

    def _variable(self, name: str, node: ast.Name) -> Value:
        if name in self.variables:
            return self.variables[name]
        if name not in self._globals:
            self._globals[name] = UNKNOWN  # where a module defines a name through itself
            self._globals[name] = self._global(name, node)
        return self._globals[name]

    def _global(self, name: str, node: ast.Name) -> Value:
        function = self.module.functions.get(name)
        if isinstance(function, ast.FunctionDef):
            return Function(function, {})
        bindings = self.module.bindings(self.module.tree).get(name, [])
        if len(bindings) == 1 and bindings[0] is not None:
            inside, self.variables = self.variables, {}
            recording, self.recording = self.recording, False
            value = self.value(bindings[0])
            self.variables, self.recording = inside, recording
            return value
        return self._meaning(self.module.names.resolve(node))

    def _meaning(self, name: str | None) -> Value:
        if name is None:
            return UNKNOWN
        if name in _NUMBERS:
            return scalar(_NUMBERS[name])
        owner, _, last = name.rpartition(".")
        if owner in ("cuda.tile", "torch") and last in DTYPES:
            return DType(last)
        if owner in ("cuda.tile", "torch") and last in ("bool", "bool_"):
            return DType("bool")
        return Named(name)

    def _attribute(self, node: ast.Attribute) -> Value:
        name = self.module.names.resolve(node)
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if name is not None and not (isinstance(root, ast.Name) and root.id in self.variables):
            return self._meaning(name)
        owner = self.value(node.value)
        match owner, node.attr:
            case Array() as array, "dtype":
                return DType(array.dtype)
            case ((Tile(dtype=str() as dtype) | Scalar(dtype=str() as dtype)), "dtype"):
                return DType(dtype)
            case Tile(shape=tuple() as shape), "shape":
                sizes = (Scalar(number=size, literal=size.number if size else None, constant=True) for size in shape)
                return Sequence(tuple(sizes))
            case ((Array() | Tile() | Scalar() | View()), _):
                return self.noted("attribute", node, {"x": owner}, {"x": node.value}, Method(owner, node.attr))
        return UNKNOWN

    def operator(self, name: str, node: ast.expr, left: ast.expr, right: ast.expr) -> Value:
        """The result of an operator between two expressions."""
        x, y = self.value(left), self.value(right)
        if isinstance(x, Sequence | Repeated) and isinstance(y, Sequence | Repeated) and name == "add":
            return joined(x, y)
        values = {"x": numeric(x), "y": numeric(y)}
        return self.noted(name, node, values, {"x": left, "y": right}, operations.computed(name, values, node))

    def _unary(self, node: ast.UnaryOp) -> Value:
        x = numeric(self.value(node.operand))
        names: dict[type[ast.unaryop], str] = {ast.USub: "negative", ast.Invert: "bitwise_not"}
        name = names.get(type(node.op))
        if name is None:
            return Scalar(dtype="bool") if isinstance(node.op, ast.Not) and isinstance(x, Scalar) else x
        return self.noted(name, node, {"x": x}, {"x": node.operand}, unary(name, x))

    def _compare(self, node: ast.Compare) -> Value:
        nodes = [node.left, *node.comparators]
        values = [numeric(self.value(each)) for each in nodes]
        name = _COMPARISONS.get(type(node.ops[0]))
        if len(values) != 2 or name is None:
            return UNKNOWN
        arguments = {"x": values[0], "y": values[1]}
        result = binary(name, *values)
        return self.noted(name, node, arguments, {"x": nodes[0], "y": nodes[1]}, result)

    def _subscript(self, node: ast.Subscript) -> Value:
        owner = self.value(node.value)
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if isinstance(owner, Tile):
            new = tuple(place for place, each in enumerate(items) if _is_none(each))
            whole = all(_is_none(each) or isinstance(each, ast.Slice) for each in items)
            value = operations.subscripted(owner, len(items), new) if whole else Tile(dtype=owner.dtype)
            return self.noted("getitem", node, {"x": owner}, {"x": node.value}, value)
        if isinstance(node.slice, ast.Slice):
            ends = [self.value(each) if each else None for each in (node.slice.lower, node.slice.upper)]
            return sliced(owner, *ends) if node.slice.step is None else UNKNOWN
        index = self.value(node.slice)
        self.noted("getitem", node, {"x": owner, "index": index}, {"x": node.value}, UNKNOWN)
        return element(owner, index)

    def noted(
        self, name: str, node: ast.expr, values: Mapping[str, Value], nodes: Mapping[str, ast.expr], result: Value
    ) -> Value:
        """Note an operation, and give its result."""
        if self.recording:
            self.flow.operations.append(
                Operation(name, node, values, nodes, result, self.function, self.loops, self.conditions)
            )
        return result


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
