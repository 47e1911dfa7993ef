"""What a test file says: its tests, their parameters, and the operator that they are about."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from tilewright.rules.source import Function
from tilewright.rules.source import Module

_MOST = 512  # combinations of one test that are looked at


@dataclass(frozen=True, eq=False)
class Parametrized:
    """One `pytest.mark.parametrize` of a test."""

    names: tuple[str, ...]
    values: tuple[ast.expr, ...]  # one for each case; of several names a tuple


def is_operator_test(module: Module) -> bool:
    """Whether a file tests operators: the folders of both hosts are called ops and suites."""
    return module.is_test and any(part in ("ops", "suites") for part in module.path.parts[:-1])


def tests(module: Module) -> list[Function]:
    """Functions that pytest collects: `test_*` of the module and of its classes."""
    return [
        node
        for node in module.nodes(ast.FunctionDef)
        if node.name.startswith("test_")
        and module.function_of(node) is None
        and isinstance(module.parent(node), ast.Module | ast.ClassDef | ast.If)
    ]


def operator(module: Module) -> str | None:
    """Name of the operator that a test or benchmark is about, by the name of its file."""
    for prefix in ("test_", "bench_"):
        if module.path.name.startswith(prefix):
            return module.path.stem.removeprefix(prefix)
    return None


def parametrized(module: Module, function: Function) -> Iterator[Parametrized]:
    """The parameters of a test: of its own, and of its class."""
    owner = module.parent(function)
    decorators = [*function.decorator_list, *(owner.decorator_list if isinstance(owner, ast.ClassDef) else [])]
    for decorator in decorators:
        match decorator:
            case ast.Call(func=ast.Attribute(attr="parametrize"), args=[names, values, *_]):
                found, rows = _names(names), _elements(module, values, function)
                if len(found) == 1 and not isinstance(names, ast.Constant):
                    rows = [each.elts[0] if isinstance(each, ast.Tuple) and each.elts else each for each in rows]
                if found:
                    yield Parametrized(found, tuple(rows))


def _names(node: ast.expr) -> tuple[str, ...]:
    match node:
        case ast.Constant(value=str(text)):
            return tuple(each.strip() for each in text.split(",") if each.strip())
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return tuple(str(each.value) for each in elements if isinstance(each, ast.Constant))
    return ()


def _elements(module: Module, node: ast.expr, at: Function, depth: int = 6) -> list[ast.expr]:
    """Elements of a list that is written out, named in the class or module, or added up."""
    if depth == 0:
        return []
    match node:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            found = []
            for each in elements:
                if isinstance(each, ast.Starred):
                    found += _elements(module, each.value, at, depth - 1)
                else:
                    found.append(_unmarked(each))
            return found
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return [*_elements(module, left, at, depth - 1), *_elements(module, right, at, depth - 1)]
        case ast.ListComp(elt=element, generators=[ast.comprehension()]):
            return [element]
        case ast.Name(id=name):
            for scope in (module.parent(at), module.tree):
                values = [each for each in module.bindings(scope).get(name, []) if each is not None] if scope else []
                if values:
                    return _elements(module, values[-1], at, depth - 1)
    return []


def _unmarked(node: ast.expr) -> ast.expr:
    """The values of `pytest.param(a, b, marks=...)`."""
    match node:
        case ast.Call(func=ast.Attribute(attr="param"), args=[value]):
            return value
        case ast.Call(func=ast.Attribute(attr="param"), args=values):
            return ast.copy_location(ast.Tuple(list(values), ast.Load()), node)
    return node


def cases(module: Module, function: Function) -> Iterator[dict[str, ast.expr]]:
    """Values of a test's parameters in each of its cases, as far as they are written out."""
    choices: list[list[dict[str, ast.expr]]] = []
    for each in parametrized(module, function):
        rows: list[dict[str, ast.expr]] = []
        for value in each.values:
            if len(each.names) == 1:
                rows.append({each.names[0]: value})
            elif isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(each.names):
                rows.append(dict(zip(each.names, value.elts, strict=True)))
        if rows:
            choices.append(rows)
    for count, combination in enumerate(product(*choices)):
        if count == _MOST:
            return
        yield {name: value for row in combination for name, value in row.items()}


def calls_of(node: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Calls with the last part of the name that is called."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call):
            function = each.func
            yield function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", ""), each
