"""Step 2: the cuTile module has a kernel, and its host function takes what the stub promises."""

import ast
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from tilewright.model.operator import Operator
from tilewright.verify.reading import called
from tilewright.verify.reading import decorated
from tilewright.verify.reading import functions
from tilewright.verify.reading import parse


def problems(operator: Operator) -> Iterator[str]:
    """What is wrong with it."""
    tree = parse(operator, operator.kernel)
    # By hand, kernels may be anywhere.
    if operator.template_version and not any(
        called(node) == "kernel" for function in functions(tree) for node in function.decorator_list
    ):
        yield f"{operator.kernel} has no @ct.kernel: write one"
    implementation = decorated(tree, "register_impl", operator.name, "cutile")
    if implementation is None:
        yield f'{operator.kernel} has no @register_impl("{operator.name}", backend="cutile"): add it to the host'
    elif operator.declared:
        stub = decorated(parse(operator, operator.stub), "dispatch", operator.name)
        if stub is not None:
            yield from _difference(operator, stub, implementation)


def _difference(operator: Operator, stub: ast.FunctionDef, implementation: ast.FunctionDef) -> Iterator[str]:
    """The first parameter that is not the same.

    A default of None in the stub leaves the value to the backend, and where the stub passes `**kwargs` on, a backend
    may have options of its own.
    """
    promised, taken = _parameters(stub), _parameters(implementation)
    for position, (left, right) in enumerate(zip_longest(promised, taken), start=1):
        left_to_backend = bool(left and right and right.default and left == right._replace(default="None"))
        option_of_backend = bool(left is None and right and right.default and stub.args.kwarg)
        if left == right or left_to_backend or option_of_backend:
            continue
        yield (
            f"{operator.kernel}:{implementation.lineno} parameter {position} is {_quoted(right)}, "
            f"in the stub {_quoted(left)}: make them equal"
        )
        return


class Parameter(NamedTuple):
    """One parameter; positions come from the order of the list that it is in."""

    name: str
    default: str  # source text, empty for none
    keyword: bool  # only by name


def _quoted(parameter: Parameter | None) -> str:
    if parameter is None:
        return "missing"
    default = f"={parameter.default}" if parameter.default else ""
    return f"`{'*, ' if parameter.keyword else ''}{parameter.name}{default}`"


def _parameters(function: ast.FunctionDef) -> list[Parameter]:
    """All but `*args` and `**kwargs`, in order."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [*[None] * (len(positional) - len(arguments.defaults)), *arguments.defaults]
    return [
        *(_parameter(*pair, keyword=False) for pair in zip(positional, defaults, strict=True)),
        *(_parameter(*pair, keyword=True) for pair in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)),
    ]


def _parameter(argument: ast.arg, default: ast.expr | None, *, keyword: bool) -> Parameter:
    return Parameter(argument.arg, "" if default is None else ast.unparse(default), keyword)
