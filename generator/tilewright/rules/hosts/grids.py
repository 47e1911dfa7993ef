"""What a grid says about blocks, and what a kernel takes one of its blocks to be."""

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.rules.hosts.values import alternatives
from tilewright.rules.hosts.values import integers
from tilewright.rules.hosts.values import resolved
from tilewright.rules.hosts.values import symbol
from tilewright.rules.hosts.walking import walk
from tilewright.rules.kernels import Kernel
from tilewright.rules.launches import Launch
from tilewright.rules.source import Module

_ROUNDING_UP = ("cdiv", "ceil_div", "ceildiv", "div_up", "divup", "div_ceil")


@dataclass(frozen=True, eq=False)
class Division:
    """A size divided by a block, to count blocks."""

    node: ast.expr
    size: ast.expr
    block: ast.expr
    up: bool
    slack: ast.expr | None = None  # B in (n + B - 1) // C


def axes(module: Module, launch: Launch) -> Iterator[tuple[int, ast.expr]]:
    """Axis and extent of every grid that a launch may have."""
    for grid in alternatives(module, launch.grid) if launch.grid is not None else []:
        if isinstance(grid, ast.Tuple) and not any(isinstance(each, ast.Starred) for each in grid.elts):
            for axis, extent in enumerate(grid.elts):
                for value in alternatives(module, extent):
                    yield axis, value


def division(module: Module, node: ast.expr) -> Division | None:
    """The division that an extent of a grid is, or None if it is something else."""
    node = resolved(module, node)
    match node:
        case ast.Call(func=ast.Name(id="max" | "int") | ast.Attribute(attr="maximum"), args=[*arguments]):
            found = [each for each in (division(module, argument) for argument in arguments) if each is not None]
            return found[0] if len(found) == 1 else None
        case ast.Call(func=function, args=[ast.BinOp(op=ast.Div(), left=size, right=block)]) if (
            _last(function) == "ceil"
        ):
            return Division(node, size, block, up=True)
        case ast.Call(func=function, args=[size, block], keywords=[]) if _last(function).strip("_") in _ROUNDING_UP:
            return Division(node, size, block, up=True)
        case ast.UnaryOp(
            op=ast.USub(),
            operand=ast.BinOp(op=ast.FloorDiv(), left=ast.UnaryOp(op=ast.USub(), operand=size), right=block),
        ):
            return Division(node, size, block, up=True)
        case ast.BinOp(op=ast.FloorDiv(), left=left, right=block):
            return _floor(node, left, block)
    return None


def _floor(node: ast.expr, left: ast.expr, block: ast.expr) -> Division:
    match left:
        case ast.BinOp(
            op=ast.Sub(),
            left=ast.BinOp(op=ast.Add(), left=size, right=slack),
            right=ast.Constant(value=1),
        ):
            return Division(node, size, block, up=True, slack=slack)
        case ast.BinOp(
            op=ast.Add(),
            left=size,
            right=ast.BinOp(op=ast.Sub(), left=slack, right=ast.Constant(value=1)),
        ):
            return Division(node, size, block, up=True, slack=slack)
        case ast.BinOp(op=ast.Add(), left=size, right=ast.Constant(value=int(value))):
            return Division(node, size, block, up=True, slack=ast.copy_location(ast.Constant(value + 1), left))
    return Division(node, left, block, up=False)


def _last(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


@functools.lru_cache(maxsize=64)
def tiles(kernel: Kernel) -> dict[int, list[ast.expr]]:
    """By axis of the grid, the sizes of what a block of this kernel loads or computes along it."""
    found: dict[int, list[ast.expr]] = {}
    module = kernel.module
    sizes = set()
    for call in walk(kernel.node):
        if not isinstance(call, ast.Call):
            continue
        name = module.names.tile(call.func)
        if name == "arange" and call.args:
            sizes.add(ast.unparse(call.args[0]))
        if name != "load":
            continue
        given = dict(zip(("array", "index", "shape"), call.args, strict=False))
        given |= {each.arg: each.value for each in call.keywords if each.arg is not None}
        if any(key in given for key in ("order",)) or not {"index", "shape"} <= given.keys():
            continue
        for index, size in zip(_parts(module, given["index"]), _parts(module, given["shape"]), strict=False):
            axis = block_axis(module, index)
            if axis is not None:
                found.setdefault(axis, []).append(size)
    for node in walk(kernel.node):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            for index, size in ((node.left, node.right), (node.right, node.left)):
                axis = block_axis(module, index)
                if axis is not None and ast.unparse(size) in sizes:
                    found.setdefault(axis, []).append(size)
    return found


def block_axis(module: Module, node: ast.expr) -> int | None:
    """The axis if an expression is `ct.bid(axis)`, directly or through names."""
    known = resolved(module, node)
    match known:
        case ast.Call(args=[ast.Constant(value=int(axis))]) if module.names.tile(known.func) == "bid":
            return axis
    return None


def _parts(module: Module, node: ast.expr) -> list[ast.expr]:
    known = resolved(module, node)
    return known.elts if isinstance(known, ast.Tuple) else [known if isinstance(known, ast.Constant) else node]


def differ(module: Module, grid: ast.expr, passed: ast.expr) -> bool:
    """Whether the block of a grid is certainly not always the one that the kernel gets."""
    if symbol(module, grid) == symbol(module, passed):
        return False
    first, second = integers(module, grid), integers(module, passed)
    if first is None or second is None:
        return False
    return first.isdisjoint(second) or (len(first) == 1 and first != second)
