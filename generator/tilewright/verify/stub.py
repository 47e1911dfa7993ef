"""Step 1: the dispatch stub names the operator and refuses to compute."""

import ast
from collections.abc import Iterator

from tilewright.model.operator import Operator
from tilewright.verify.reading import called
from tilewright.verify.reading import decorated
from tilewright.verify.reading import parse


def problems(operator: Operator) -> Iterator[str]:
    """What is wrong with it."""
    function = decorated(parse(operator, operator.stub), "dispatch", operator.name)
    if function is None:
        remedy = f"run: tilewright register {operator.name}" if operator.host.layout == "tilegym" else "add it"
        yield f'{operator.stub} has no @dispatch("{operator.name}"): {remedy}'
        return
    place = f"{operator.stub}:{function.lineno}"
    if function.name != operator.name.rpartition(".")[2]:
        yield f'{place} @dispatch("{operator.name}") decorates {function.name}: give both the same name'
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    if len(body) != 1 or not _raises_not_implemented(body[0]):
        yield f"{place} {function.name} must only raise NotImplementedError: backends do the work"


def _raises_not_implemented(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Raise)
        and statement.exc is not None
        and called(statement.exc) == "NotImplementedError"
    )
