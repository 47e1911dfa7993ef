"""Which functions of a module call which, so that a check in a caller counts for what it calls."""

import ast
import functools
from collections.abc import Iterator

from tilewright.rules.hosts.walking import walk
from tilewright.rules.source import Function
from tilewright.rules.source import Module


class Calls:
    """Calls between the functions and methods of one module, by name."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._by_name: dict[str, list[Function]] = {}
        functions: list[Function] = [*module.nodes(ast.FunctionDef), *module.nodes(ast.AsyncFunctionDef)]
        for each in functions:
            self._by_name.setdefault(each.name, []).append(each)
        self._sites: dict[Function, list[ast.Call]] = {}
        for call in module.nodes(ast.Call):
            for function in self.called(call):
                self._sites.setdefault(function, []).append(call)

    def sites(self, function: Function) -> list[ast.Call]:
        """Calls of a function; those of `apply` count for `forward` of an autograd function."""
        return self._sites.get(function, [])

    def direct_callers(self, function: Function) -> list[Function]:
        """Functions that call one, and the one that it is nested in; not itself."""
        around = self._module.function_of(function)
        found = [*([around] if around is not None else []), *map(self._module.function_of, self.sites(function))]
        return [each for each in dict.fromkeys(found) if each is not None and each is not function]

    def callers(self, function: Function) -> list[Function]:
        """The function, those around it, and all that call one of them, directly or through each other."""
        found: list[Function] = []
        pending = [function]
        while pending:
            each = pending.pop()
            if each not in found:
                found.append(each)
                pending += self.direct_callers(each)
        return found

    def callees(self, function: Function) -> list[Function]:
        """The function and all that it calls in this module, directly or through each other."""
        found: list[Function] = []
        pending = [function]
        while pending:
            each = pending.pop()
            if each not in found:
                found.append(each)
                pending += [called for node in walk(each) if isinstance(node, ast.Call) for called in self.called(node)]
        return found

    def passed(self, function: Function, parameter: str) -> Iterator[ast.expr]:
        """What the calls of a function pass for one of its parameters; `*x.shape` stands for every size."""
        names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        # `ctx` and `self` are passed by no one
        bound = names[1:] if names[:1] in (["ctx"], ["self"], ["cls"]) else names
        for site in self.sites(function):
            yield from (value for name, value in _positional(bound, site.args) if name == parameter)
            yield from (each.value for each in site.keywords if each.arg == parameter)

    def called(self, call: ast.Call) -> list[Function]:
        """Functions of this module that a call may be of."""
        match call.func:
            case ast.Name(id=name):
                return [each for each in self._by_name.get(name, []) if not self._is_method(each)]
            case ast.Attribute(value=ast.Name(id=owner), attr="apply"):
                return [each for each in self._by_name.get("forward", []) if self._class(each) == owner]
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
                return [each for each in self._by_name.get(name, []) if self._is_method(each)]
        return []

    def _is_method(self, function: Function) -> bool:
        return isinstance(self._module.parent(function), ast.ClassDef)

    def _class(self, function: Function) -> str | None:
        parent = self._module.parent(function)
        return parent.name if isinstance(parent, ast.ClassDef) else None


def _positional(names: list[str], values: list[ast.expr]) -> Iterator[tuple[str, ast.expr]]:
    """Parameters with their arguments; one starred argument fills as many as the others leave."""
    starred = [index for index, each in enumerate(values) if isinstance(each, ast.Starred)]
    if len(starred) > 1:
        return
    if starred:
        index = starred[0]
        count = len(names) - len(values) + 1
        values = [*values[:index], *[values[index]] * max(count, 0), *values[index + 1 :]]
    yield from zip(names, values, strict=False)


@functools.lru_cache(maxsize=8)
def calls(module: Module) -> Calls:
    """The calls of a module, found once."""
    return Calls(module)
