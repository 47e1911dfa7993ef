"""What an expression of a kernel is, operation by operation."""

import ast
import math
from collections.abc import Mapping

from tilewright.rules import memory
from tilewright.rules import operations
from tilewright.rules.flow import Flow
from tilewright.rules.flow import FunctionNode
from tilewright.rules.flow import Operation
from tilewright.rules.symbols import unknown
from tilewright.rules.tile_api import DTYPES
from tilewright.rules.tile_api import FUNCTIONS
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
from tilewright.rules.values import any_item
from tilewright.rules.values import integer_scalar
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
_BUILTINS = {"min": "minimum", "max": "maximum", "abs": "abs"}
_NUMBERS = {"math.inf": math.inf, "math.pi": math.pi, "math.e": math.e, "math.nan": math.nan, "math.tau": math.tau}
_GUARDS = ("EVEN", "ALIGN", "EXACT", "BOUND", "MASK", "PAD", "FULL", "RAGGED", "TAIL", "DIVISIBLE")
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

    def inlined(self, function: Function, call: ast.Call) -> Value:
        """What a function of the module returns for the arguments of a call."""
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
                return self._call(node)
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
            return _joined(x, y)
        values = {"x": _numeric(x), "y": _numeric(y)}
        return self.noted(name, node, values, {"x": left, "y": right}, operations.computed(name, values, node))

    def _unary(self, node: ast.UnaryOp) -> Value:
        x = _numeric(self.value(node.operand))
        names: dict[type[ast.unaryop], str] = {ast.USub: "negative", ast.Invert: "bitwise_not"}
        name = names.get(type(node.op))
        if name is None:
            return Scalar(dtype="bool") if isinstance(node.op, ast.Not) and isinstance(x, Scalar) else x
        return self.noted(name, node, {"x": x}, {"x": node.operand}, operations.unary(name, x))

    def _compare(self, node: ast.Compare) -> Value:
        nodes = [node.left, *node.comparators]
        values = [_numeric(self.value(each)) for each in nodes]
        name = _COMPARISONS.get(type(node.ops[0]))
        if len(values) != 2 or name is None:
            return UNKNOWN
        arguments = {"x": values[0], "y": values[1]}
        result = operations.binary(name, *values)
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
            return _sliced(owner, *ends) if node.slice.step is None else UNKNOWN
        index = self.value(node.slice)
        self.noted("getitem", node, {"x": owner, "index": index}, {"x": node.value}, UNKNOWN)
        return element(owner, index)

    def _call(self, node: ast.Call) -> Value:
        function = self.value(node.func)
        if isinstance(function, Function):
            return self.inlined(function, node)
        if isinstance(function, Method):
            return self._method(function, node)
        name = function.name.removeprefix("cuda.tile.") if isinstance(function, Named) else None
        if name in FUNCTIONS and isinstance(function, Named) and function.name.startswith("cuda.tile."):
            return self._function(name, node)
        if isinstance(node.func, ast.Name) and node.func.id == "zip" and function == UNKNOWN:
            return self._zipped(node)
        if isinstance(function, DType):
            return operations.converted(self._arguments(node)[0], function) if node.args else UNKNOWN
        if isinstance(node.func, ast.Name) and function == UNKNOWN:
            return self._builtin(node.func.id, node)
        self._arguments(node)
        if isinstance(function, Named) and function.name.startswith("math."):
            return Scalar(constant=True, dtype="float")  # of constants: there is no other use in a kernel
        return UNKNOWN

    def _zipped(self, node: ast.Call) -> Value:
        values = self._arguments(node)
        parts = [repeated(each) for each in values if isinstance(each, Sequence | Repeated)]
        known = [each for each in parts if each is not None]
        if len(known) != len(values):
            return UNKNOWN
        return Repeated(Sequence(tuple(each.item for each in known)), Sequence(tuple(each.last for each in known)))

    def _arguments(self, node: ast.Call) -> list[Value]:
        for keyword in node.keywords:
            self.value(keyword.value)
        return [self.value(each.value if isinstance(each, ast.Starred) else each) for each in node.args]

    def _function(self, name: str, node: ast.Call, first: Mapping[str, tuple[Value, ast.expr]] | None = None) -> Value:
        given = dict(first or {})
        positional = [each for each in FUNCTIONS[name].positional if each not in given]
        for parameter, argument in zip(positional, node.args, strict=False):
            if isinstance(argument, ast.Starred):
                break
            given[parameter] = self.value(argument), argument
        for keyword in node.keywords:
            value = self.value(keyword.value)
            if keyword.arg:
                given[keyword.arg] = value, keyword.value
        nodes = {key: argument for key, (_, argument) in given.items()}
        values = {key: value if key in ("array", "dtype") else _numeric(value) for key, (value, _) in given.items()}
        if name == "load" and isinstance(values.get("index"), Sequence):
            values["shape"] = _as_long(values.get("shape", UNKNOWN), values["index"])
        return self.noted(name, node, values, nodes, self._result(name, values, node))

    def _result(self, name: str, values: Mapping[str, Value], node: ast.Call) -> Value:
        if name == "load":
            return memory.loaded(values, node, self.flow.launches, guarded=self._is_guarded())
        if name == "gather":
            return memory.gathered(values, node, self.flow.launches)
        if name == "num_tiles":
            return memory.tiles_along(values.get("array", UNKNOWN), values.get("axis"), values.get("shape"))
        return operations.computed(name, values, node)

    def _is_guarded(self) -> bool:
        """Whether a branch around may be taken only where nothing hangs over."""
        return any(is_guard(test) for test in self.conditions)

    def _method(self, method: Method, node: ast.Call) -> Value:
        owner, name = method.owner, method.name
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        if isinstance(owner, Tile | Scalar):
            if name == "item":
                return Scalar(dtype=owner.dtype)
            if name in FUNCTIONS and "x" in FUNCTIONS[name].positional:
                return self._function(name, node, {"x": (owner, receiver)})
        if isinstance(owner, Array) and name == "tiled_view":
            shape = self._arguments(node)
            return memory.view_of(owner, {"tile_shape": shape[0]} if shape else {})
        if isinstance(owner, View) and name in ("load", "store"):
            self._arguments(node)
            return Tile(shape=owner.shape, dtype=owner.array.dtype, axes=(None,) * len(owner.shape or ()))
        self._arguments(node)
        if isinstance(owner, Array) and name == "slice":
            return Array(f"{owner.name}.slice")
        return Tile() if isinstance(owner, Tile) else UNKNOWN

    def _builtin(self, name: str, node: ast.Call) -> Value:
        values = [_numeric(each) for each in self._arguments(node)]
        if name in _BUILTINS and len(values) == (1 if name == "abs" else 2):
            given = dict(zip("xy", values, strict=False))
            nodes = dict(zip("xy", node.args, strict=False))
            return self.noted(_BUILTINS[name], node, given, nodes, operations.computed(_BUILTINS[name], given, node))
        if name == "len" and values and isinstance(values[0], Sequence):
            return scalar(len(values[0].items))
        if name in ("float", "int", "bool") and len(values) == 1:
            return _python_number(name, values[0])
        if name in ("tuple", "list", "reversed") and len(values) == 1:
            return values[0]
        return UNKNOWN

    def noted(
        self, name: str, node: ast.expr, values: Mapping[str, Value], nodes: Mapping[str, ast.expr], result: Value
    ) -> Value:
        """Note an operation, and give its result."""
        if self.recording:
            self.flow.operations.append(
                Operation(name, node, values, nodes, result, self.function, self.loops, self.conditions)
            )
        return result


def is_guard(test: ast.expr) -> bool:
    """Whether a test may ask if tiles fit: of a remainder, of sizes, or of a flag that is named so."""
    for node in ast.walk(test):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return True
        if isinstance(node, ast.Name) and any(word in node.id.upper() for word in _GUARDS):
            return True
    return False


def _numeric(value: Value) -> Value:
    """A parameter without annotation, where a number is asked for."""
    if isinstance(value, Array):
        return integer_scalar(unknown("parameter", value.name))
    if isinstance(value, Sequence):
        return Sequence(tuple(_numeric(each) for each in value.items))
    return value


def _as_long(shape: Value, index: Value) -> Value:
    """A shape that is one parameter, a tuple, as its elements: there are as many as the index has."""
    if isinstance(shape, Scalar) and shape.parameter is not None and isinstance(index, Sequence):
        return Sequence(tuple(element(shape, scalar(place)) for place in range(len(index.items))))
    return shape


def _python_number(name: str, value: Value) -> Value:
    if not isinstance(value, Scalar):
        return UNKNOWN
    if isinstance(value.literal, str) and name == "float":
        return (
            scalar(float(value.literal)) if value.literal.strip("+-").lower() in ("inf", "nan", "infinity") else UNKNOWN
        )
    return Scalar(
        number=value.number if name == "int" else None, literal=value.literal, constant=value.constant, dtype=name
    )


def element(owner: Value, index: Value) -> Value:
    """One element of a tuple, or of the shape of an array."""
    place = index.literal if isinstance(index, Scalar) else None
    if isinstance(owner, Sequence):
        known = isinstance(place, int) and -len(owner.items) <= place < len(owner.items)
        if known and isinstance(place, int):
            return owner.items[place]
        return merged_all(owner.items)
    if isinstance(owner, Repeated):
        return owner.last if place == -1 else owner.item if place == 0 else any_item(owner)
    if isinstance(owner, Method) and isinstance(owner.owner, Array) and owner.name in ("shape", "strides"):
        kind = "dimension" if owner.name == "shape" else "stride"
        key = place if isinstance(place, int) else repr(index)
        return integer_scalar(unknown(kind, owner.owner.name, key))
    if isinstance(owner, Scalar) and owner.parameter is not None:
        key = place if isinstance(place, int) else repr(index)
        return Scalar(number=unknown("parameter", owner.parameter, key), constant=owner.constant)
    if isinstance(owner, Array):
        return UNKNOWN
    return UNKNOWN


def merged_all(items: tuple[Value, ...]) -> Value:
    """Any one of several values."""
    value = items[0] if items else UNKNOWN
    for each in items[1:]:
        value = merged(value, each, ("element", repr(each)))
    return value


def _joined(x: Sequence | Repeated, y: Sequence | Repeated) -> Value:
    if isinstance(x, Sequence) and isinstance(y, Sequence):
        return Sequence(x.items + y.items)
    first, second = repeated(x), repeated(y)
    if first is None or second is None:
        return first or second or UNKNOWN
    return Repeated(merged_all((first.item, first.last, second.item)), second.last)


def _sliced(owner: Value, lower: Value | None, upper: Value | None) -> Value:
    if isinstance(owner, Repeated):
        whole = upper is None
        return owner if whole else Repeated(owner.item, owner.item)
    if not isinstance(owner, Sequence):
        return UNKNOWN
    ends: list[int | None] = []
    for each in (lower, upper):
        literal = each.literal if isinstance(each, Scalar) else None
        if each is not None and not isinstance(literal, int):
            return UNKNOWN
        ends.append(literal if isinstance(literal, int) else None)
    return Sequence(owner.items[ends[0] : ends[1]])


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
