"""What calls in a kernel give: functions of `cuda.tile`, methods, helpers and builtins of Python."""

import ast
from collections.abc import Mapping

from tilewright.rules import memory
from tilewright.rules import operations
from tilewright.rules.expressions import Expressions
from tilewright.rules.items import as_long
from tilewright.rules.items import numeric
from tilewright.rules.items import python_number
from tilewright.rules.shapes import shape_of
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
from tilewright.rules.values import repeated
from tilewright.rules.values import scalar

_BUILTINS = {"min": "minimum", "max": "maximum", "abs": "abs"}
_GUARDS = ("EVEN", "ALIGN", "EXACT", "BOUND", "MASK", "PAD", "FULL", "RAGGED", "TAIL", "DIVISIBLE")


class Calls(Expressions):
    """Evaluates calls; how a helper is run is left to a subclass."""

    def inlined(self, function: Function, call: ast.Call) -> Value:
        """What a function of the module returns for the arguments of a call."""
        raise NotImplementedError

    def called(self, node: ast.Call) -> Value:
        """What a call gives."""
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
            return operations.converted(self.arguments(node)[0], function) if node.args else UNKNOWN
        if isinstance(node.func, ast.Name) and function == UNKNOWN:
            return self._builtin(node.func.id, node)
        self.arguments(node)
        if isinstance(function, Named) and function.name.startswith("math."):
            return Scalar(constant=True, dtype="float")  # of constants: there is no other use in a kernel
        return UNKNOWN

    def _zipped(self, node: ast.Call) -> Value:
        values = self.arguments(node)
        parts = [repeated(each) for each in values if isinstance(each, Sequence | Repeated)]
        known = [each for each in parts if each is not None]
        if len(known) != len(values):
            return UNKNOWN
        return Repeated(Sequence(tuple(each.item for each in known)), Sequence(tuple(each.last for each in known)))

    def arguments(self, node: ast.Call) -> list[Value]:
        """The values of all arguments; those by position are given back."""
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
        values = {key: value if key in ("array", "dtype") else numeric(value) for key, (value, _) in given.items()}
        if name == "load" and isinstance(values.get("index"), Sequence):
            values["shape"] = as_long(values.get("shape", UNKNOWN), values["index"])
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
            return self._tiled_view(owner, node)
        if isinstance(owner, View) and name in ("load", "store"):
            return self._tile_of_view(owner, name, node)
        self.arguments(node)
        if isinstance(owner, Array) and name == "slice":
            return Array(f"{owner.name}.slice")
        return Tile() if isinstance(owner, Tile) else UNKNOWN

    def _tiled_view(self, array: Array, node: ast.Call) -> Value:
        positional = self.arguments(node)
        named = {each.arg: self.value(each.value) for each in node.keywords}
        shape = positional[0] if positional else named.get("tile_shape")
        return View(array, shape_of(shape), named.get("padding_mode"), shape_of(named.get("traversal_steps")))

    def _tile_of_view(self, view: View, name: str, node: ast.Call) -> Value:
        """A tile of a view: as with `ct.load` and `ct.store`, but shape and padding are those of the view."""
        names = ("index", "tile")[: len(node.args)]
        given = {key: (self.value(each), each) for key, each in zip(names, node.args, strict=False)}
        given |= {each.arg: (self.value(each.value), each.value) for each in node.keywords if each.arg is not None}
        values: dict[str, Value] = {key: value for key, (value, _) in given.items()}
        values |= {"array": view.array, "index": _in_tiles(values.get("index", UNKNOWN), view)}
        if view.shape is not None and name == "load":
            values["shape"] = Sequence(tuple(Scalar(number=size, constant=True) for size in view.shape))
        if view.padding is not None and name == "load":
            values["padding_mode"] = view.padding
        result: Value = UNKNOWN
        if name == "load":
            result = memory.loaded(values, node, self.flow.launches, guarded=self._is_guarded())
        return self.noted(name, node, values, {key: each for key, (_, each) in given.items()}, result)

    def _builtin(self, name: str, node: ast.Call) -> Value:
        values = [numeric(each) for each in self.arguments(node)]
        if name in _BUILTINS and len(values) == (1 if name == "abs" else 2):
            given = dict(zip("xy", values, strict=False))
            nodes = dict(zip("xy", node.args, strict=False))
            return self.noted(_BUILTINS[name], node, given, nodes, operations.computed(_BUILTINS[name], given, node))
        if name == "len" and values and isinstance(values[0], Sequence):
            return scalar(len(values[0].items))
        if name in ("float", "int", "bool") and len(values) == 1:
            return python_number(name, values[0])
        if name in ("tuple", "list", "reversed") and len(values) == 1:
            return values[0]
        return UNKNOWN


def _in_tiles(index: Value, view: View) -> Value:
    """The index of a tile of a view; nothing is known of it along an axis on which tiles may overlap."""
    if view.steps is None:
        return index
    if (
        not isinstance(index, Sequence)
        or view.shape is None
        or not len(view.steps) == len(view.shape) == len(index.items)
    ):
        return UNKNOWN
    axes = zip(index.items, view.shape, view.steps, strict=True)
    return Sequence(tuple(each if size is not None and size == step else Scalar() for each, size, step in axes))


def is_guard(test: ast.expr) -> bool:
    """Whether a test may ask if tiles fit: of a remainder, of sizes, or of a flag that is named so."""
    for node in ast.walk(test):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return True
        if isinstance(node, ast.Name) and any(word in node.id.upper() for word in _GUARDS):
            return True
    return False
