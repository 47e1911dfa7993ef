"""What a name may be where it is used: the assignments that come before, in its block and in those around it."""

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.rules.source import Module

DEPTH = 6  # names followed from one place: an alias of an alias of an alias is rare
_BLOCKS = ("body", "orelse", "finalbody", "handlers")


def values_of(module: "Module", node: ast.expr, at: ast.AST, depth: int = DEPTH) -> Iterator[ast.expr]:
    """What an expression may be: itself, or for a name what was assigned to it before `at`.

    Both branches of a conditional expression, and of an `if`, count. A name whose value is not assigned directly (a
    parameter, a loop variable) is given as it is.
    """
    if isinstance(node, ast.IfExp):
        yield from values_of(module, node.body, at, depth)
        yield from values_of(module, node.orelse, at, depth)
        return
    assigned = _reaching(module, node.id, at) if isinstance(node, ast.Name) and depth else []
    if not assigned or any(value is None for value, _ in assigned):
        yield node
        return
    for value, place in assigned:
        if value is not None:
            yield from values_of(module, value, place, depth - 1)


def _reaching(module: "Module", name: str, at: ast.AST) -> list[tuple[ast.expr | None, ast.stmt]]:
    found: list[tuple[ast.expr | None, ast.stmt]] = []
    inner = module.statement_of(at)
    if inner is not None and _bound_within(module, name, at, inner):
        return [(None, inner)]
    for outer in module.ancestors(inner) if inner is not None else ():
        for statement in _before(outer, inner):
            values = [value for bound_name, value in module.bound(statement) if bound_name == name]
            found += [(value, statement) for value in values]
            if values and _always(module, statement, name):
                return found
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef) and name in _parameters(outer):
            return [*found, (None, module.tree.body[0])]
        inner = outer  # type: ignore[assignment]
    return found


def _bound_within(module: "Module", name: str, at: ast.AST, statement: ast.stmt) -> bool:
    """Whether a lambda or comprehension of the statement binds the name."""
    for outer in module.ancestors(at):
        if outer is statement:
            return False
        if isinstance(outer, ast.Lambda) and name in _parameters(outer):
            return True
        targets = [each.target for each in getattr(outer, "generators", ())]
        if any(isinstance(node, ast.Name) and node.id == name for target in targets for node in ast.walk(target)):
            return True
    return False


def _before(outer: ast.AST, inner: ast.AST | None) -> list[ast.stmt]:
    """Statements before `inner` in its block, the nearest first."""
    for name in _BLOCKS:
        block = getattr(outer, name, None)
        if isinstance(block, list) and inner in block:
            return block[: block.index(inner)][::-1]
    return []


def _always(module: "Module", statement: ast.stmt, name: str) -> bool:
    """Whether a name is bound after a statement whichever way it takes."""
    if isinstance(statement, ast.If):
        return all(
            any(_always(module, each, name) for each in block) or _leaves(block)
            for block in (statement.body, statement.orelse)
        )
    if isinstance(statement, ast.With):
        return any(_always(module, each, name) for each in statement.body)
    if isinstance(statement, ast.For | ast.While | ast.Try):
        return False
    return any(bound_name == name for bound_name, _ in module.bound(statement))


def _leaves(block: list[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return {each.arg for each in every if each is not None}
