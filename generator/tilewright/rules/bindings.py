"""What the names of one scope are bound to, as far as plain assignments say."""

import ast
from collections.abc import Iterator


def bindings(scope: ast.AST) -> dict[str, list[ast.expr | None]]:
    """Values bound to each name of a module or function, in order; None for a parameter, a loop variable, an import.

    Part of an unpacked value is written as a subscript: `m, n = x.shape` binds m to `x.shape[0]`.
    """
    found: dict[str, list[ast.expr | None]] = {}
    if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        arguments = scope.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        found = {each.arg: [None] for each in every if each is not None}
    body = [] if isinstance(scope, ast.Lambda) else scope.body  # type: ignore[attr-defined]
    for name, value in (each for statement in body for each in _bound(statement)):
        found.setdefault(name, []).append(value)
    return found


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """What one statement, with those inside it, binds."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name, None
            return
        case ast.Lambda():
            return
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from ((alias.asname or alias.name.partition(".")[0], None) for alias in names)
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _target(target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield from _target(target, value)
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            yield name, value
        case ast.AugAssign(target=ast.Name(id=name)):
            yield name, None
        case ast.For(target=target) | ast.AsyncFor(target=target) | ast.comprehension(target=target):
            yield from ((each.id, None) for each in ast.walk(target) if isinstance(each, ast.Name))
        case ast.withitem(optional_vars=ast.expr() as target):
            yield from ((each.id, None) for each in ast.walk(target) if isinstance(each, ast.Name))
        case ast.ExceptHandler(name=str() as name):
            yield name, None
    for child in ast.iter_child_nodes(node):
        yield from _bound(child)


def _target(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr | None]]:
    match target, value:
        case ast.Name(id=name), _:
            yield name, value
        case ((ast.Tuple(elts=targets) | ast.List(elts=targets)), (ast.Tuple(elts=values) | ast.List(elts=values))) if (
            len(targets) == len(values)
        ) and not any(isinstance(each, ast.Starred) for each in (*targets, *values)):
            for each, part in zip(targets, values, strict=True):
                yield from _target(each, part)
        case ((ast.Tuple(elts=targets) | ast.List(elts=targets)), _) if not any(
            isinstance(each, ast.Starred) for each in targets
        ):
            for index, each in enumerate(targets):
                part = ast.Subscript(value=value, slice=ast.Constant(index), ctx=ast.Load())
                yield from _target(each, ast.copy_location(part, each))
        case _:
            yield from (
                (each.id, None)
                for each in ast.walk(target)
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
            )
