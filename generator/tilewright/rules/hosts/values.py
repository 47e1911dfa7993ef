"""What is known about an expression of a host function: integers it may be, its name, and whether it is a dimension."""

import ast
import functools
import operator
from collections.abc import Callable
from itertools import product

from tilewright.rules.definitions import Binding
from tilewright.rules.definitions import definitions
from tilewright.rules.hosts.walking import walk
from tilewright.rules.source import Module

_MOST = 64  # values of one expression that are followed
_DEPTH = 12
_BITS = 128  # shifts by more are no size, and would fill the memory
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: lambda a, b: operator.lshift(a, min(b, _BITS)),
    ast.RShift: operator.rshift,
}


@functools.lru_cache(maxsize=4096)
def integers(module: Module, node: ast.expr, depth: int = _DEPTH) -> frozenset[int] | None:
    """All integers that an expression can be, or None where that is not known."""
    if depth == 0:
        return None
    match node:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int(value)):
            return frozenset([value])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            positive = integers(module, operand, depth - 1)
            return None if positive is None else frozenset(-each for each in positive)
        case ast.IfExp():
            return _union(module, [node.body, node.orelse], depth)
        case ast.Name():
            bindings = definitions(module).reaching(node)
            values = [value for binding in bindings for value in _written(module, binding)]
            known = [each for each in values if each is not None]
            return _union(module, known, depth) if known and len(known) == len(values) else None
        case ast.BinOp():
            return _combined(module, node, depth)
    return None


def _written(module: Module, binding: Binding) -> list[ast.expr | None]:
    """Expressions that a binding gives its name; None for what cannot be told."""
    loop = module.parent(binding.node)
    if isinstance(loop, ast.For | ast.comprehension) and isinstance(loop.iter, ast.List | ast.Tuple | ast.Set):
        return list(loop.iter.elts)
    return [binding.value if binding.position is None else None]


def _union(module: Module, nodes: list[ast.expr], depth: int) -> frozenset[int] | None:
    found: set[int] = set()
    for node in nodes:
        values = integers(module, node, depth - 1)
        if values is None:
            return None
        found |= values
    return frozenset(found) if len(found) <= _MOST else None


def _combined(module: Module, node: ast.BinOp, depth: int) -> frozenset[int] | None:
    function = _OPERATORS.get(type(node.op))
    left, right = integers(module, node.left, depth - 1), integers(module, node.right, depth - 1)
    if function is None or left is None or right is None or len(left) * len(right) > _MOST:
        return None
    try:
        return frozenset(function(a, b) for a, b in product(left, right))
    except (ArithmeticError, ValueError):
        return None


def resolved(module: Module, node: ast.expr) -> ast.expr:
    """The expression that a name stands for, through plain assignments, as far as only one is possible."""
    for _ in range(_DEPTH):
        if not isinstance(node, ast.Name):
            break
        bindings = definitions(module).reaching(node)
        if len(bindings) != 1 or bindings[0].value is None or bindings[0].position is not None:
            break
        node = bindings[0].value
    return node


def symbol(module: Module, node: ast.expr) -> str:
    """A text that is equal for two expressions only if they are written the same, through plain aliases."""
    known = resolved(module, node)
    return ast.unparse(known if isinstance(known, ast.Name | ast.Attribute | ast.Constant) else node)


@functools.lru_cache(maxsize=4096)
def is_dimension(module: Module, node: ast.expr, depth: int = _DEPTH) -> bool:
    """Whether an expression is computed from the shape of a tensor alone, and may be anything from 0 on."""
    if depth == 0:
        return False
    match node:
        case ast.Name():
            bindings = definitions(module).reaching(node)
            return bool(bindings) and all(
                each.value is not None and is_dimension(module, each.value, depth - 1) for each in bindings
            )
        case ast.Attribute(attr="shape"):
            return True
        case ast.Subscript(value=ast.Name(id="shape" | "size" | "sizes") as name) if is_argument(module, name):
            return True
        case ast.Subscript(value=value) | ast.Starred(value=value):
            return is_dimension(module, value, depth - 1)
        case ast.Call(func=ast.Attribute(attr="numel" | "size")):
            return True
        case ast.Call(func=ast.Name(id="int" | "list" | "tuple"), args=[argument]):
            return is_dimension(module, argument, depth - 1)
        case ast.Call(func=ast.Attribute(attr="prod"), args=[argument]):
            return is_dimension(module, argument, depth - 1)
        case ast.BinOp(op=ast.Mult() | ast.FloorDiv(), left=left, right=right):
            return is_dimension(module, left, depth - 1) or (
                isinstance(node.op, ast.Mult) and is_dimension(module, right, depth - 1)
            )
    return False


@functools.lru_cache(maxsize=4096)
def alternatives(module: Module, node: ast.expr, depth: int = _DEPTH) -> tuple[ast.expr, ...]:
    """Expressions that a name may stand for where it is used, both sides of conditional expressions included."""
    values: list[ast.expr] = []
    if depth and isinstance(node, ast.IfExp):
        values = [node.body, node.orelse]
    if depth and isinstance(node, ast.Name):
        given = [_given(module, each) for each in definitions(module).reaching(node)]
        values = [value for each in given for value in each] if all(given) else []
    found = dict.fromkeys(each for value in values for each in alternatives(module, value, depth - 1))
    return tuple(found) if 0 < len(found) <= _MOST else (node,)


def _given(module: Module, binding: Binding) -> list[ast.expr]:
    """Expressions that a binding may give; of an unpacked call the part that the function of this module returns."""
    if binding.value is None:
        return []
    if binding.position is None:
        return [binding.value]
    if not isinstance(binding.value, ast.Call) or not isinstance(binding.value.func, ast.Name):
        return []
    function = module.functions.get(binding.value.func.id)
    returns = [
        node.value
        for node in (walk(function) if function is not None else ())
        if isinstance(node, ast.Return) and module.function_of(node) is function
    ]
    parts = [each.elts for each in returns if isinstance(each, ast.Tuple) and len(each.elts) > binding.position]
    return [each[binding.position] for each in parts] if len(parts) == len(returns) else []


def is_argument(module: Module, name: ast.Name) -> bool:
    """Whether a name is a parameter of the function around, and nothing else."""
    bindings = definitions(module).reaching(name)
    return bool(bindings) and all(each.parameter for each in bindings)
