"""Read a Python file of an operator without importing it."""

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

from tilewright.config import ANSWERS
from tilewright.model.operator import Operator


class UnreadableError(Exception):
    """A file is missing or does not parse; the message says what to do."""


def parse(operator: Operator, relative: PurePosixPath) -> ast.Module:
    """The parsed file."""
    try:
        return ast.parse(operator.path(relative).read_bytes())
    except OSError as error:
        remedy = f"copier recopy -a {ANSWERS / operator.name}.yml" if operator.template_version else "add it"
        raise UnreadableError(f"{relative} does not exist: {remedy}") from error
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) else ""
        raise UnreadableError(f"{relative}{line} is not Python: {error.args[0]}") from error


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """All functions and methods, also below `if` and `try`."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def called(node: ast.expr) -> str:
    """Last part of what an expression names or calls: `kernel` for `@ct.kernel(occupancy=2)`."""
    match node:
        case ast.Call(func=function):
            return called(function)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def decorated(tree: ast.AST, decorator: str, *constants: str) -> ast.FunctionDef | None:
    """The first function with a decorator of this name whose arguments are these strings, also if applied by a call."""

    def matches(node: ast.expr) -> bool:
        return called(node) == decorator and _strings(node)[: len(constants)] == list(constants)

    applied = {
        node.args[0].id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and matches(node.func) and node.args and isinstance(node.args[0], ast.Name)
    }
    found = (f for f in functions(tree) if f.name in applied or any(map(matches, f.decorator_list)))
    return next(found, None)


def _strings(node: ast.expr) -> list[object]:
    if not isinstance(node, ast.Call):
        return []
    values = [*node.args, *(keyword.value for keyword in node.keywords)]
    return [value.value for value in values if isinstance(value, ast.Constant)]


def imported_modules(tree: ast.AST) -> Iterator[str]:
    """Dotted names of what a file imports, with the name appended for `from module import name`."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names):
                yield from (f"{module or ''}.{alias.name}" for alias in names)
