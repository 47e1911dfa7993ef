"""Which assignments a name may come from, where it is used."""

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.rules.source import Module

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module
_BINDING: tuple[type[ast.AST], ...] = (
    ast.arg,
    ast.Assign,
    ast.AnnAssign,
    ast.NamedExpr,
    ast.AugAssign,
    ast.For,
    ast.AsyncFor,
    ast.comprehension,
    ast.withitem,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Import,
    ast.ImportFrom,
    ast.ExceptHandler,
)
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True, eq=False)
class Binding:
    """One way in which a name gets its value."""

    name: str
    node: ast.AST  # the target, parameter, import or definition
    value: ast.expr | None = None  # what is assigned; None where it is no plain expression
    position: int | None = None  # of the name, where `value` is unpacked into several
    parameter: bool = False

    @property
    def expression(self) -> ast.expr | None:
        """What is assigned; part of an unpacked value as a subscript: `m, n = x.shape` binds m to `x.shape[0]`."""
        if self.value is None or self.position is None:
            return self.value
        part = ast.Subscript(value=self.value, slice=ast.Constant(self.position), ctx=ast.Load())
        return ast.copy_location(part, self.node)


class Definitions:
    """Bindings of a module's names, by scope."""

    def __init__(self, module: "Module") -> None:
        self._module = module
        self._bindings: dict[ast.AST, dict[str, list[Binding]]] = {module.tree: {}}
        for kind in _BINDING:
            for node in module.nodes(kind):
                for binding in _bindings(node):
                    self._bindings.setdefault(self.scope(node), {}).setdefault(binding.name, []).append(binding)

    def scope(self, node: ast.AST) -> Scope:
        """The innermost function, lambda or module around a node."""
        return next(
            (each for each in self._module.ancestors(node) if isinstance(each, Scope)),
            self._module.tree,
        )

    def bound_in(self, scope: ast.AST, name: str) -> tuple[Binding, ...]:
        """Everything that binds the name directly in a scope, in no order of execution."""
        return tuple(self._bindings.get(scope, {}).get(name, ()))

    def reaching(self, use: ast.Name, at: ast.AST | None = None) -> tuple[Binding, ...]:
        """Bindings that may hold where `use` is read; empty where none is known, as for a builtin.

        A nested function around `use` runs at the node `at`, or at any later time where that is not given.
        """
        if variables := self._comprehended(use):
            return variables
        scope: Scope = self.scope(use)
        if self.bound_in(scope, use.id):
            return self._backwards(use.id, use, scope)
        while not isinstance(scope, ast.Module):
            inner, scope = scope, self.scope(scope)
            if found := self.bound_in(scope, use.id):
                if at is not None and self.scope(at) is scope:
                    return self._backwards(use.id, at, scope)
                # A nested function may run later: whatever is assigned by then
                return found if len(found) == 1 else self._enclosing(use.id, inner, scope, found)
        return ()

    def _comprehended(self, use: ast.Name) -> tuple[Binding, ...]:
        """The variable of the innermost comprehension around `use` that has one of this name."""
        for outer in self._module.ancestors(use):
            if isinstance(outer, ast.stmt) or (isinstance(outer, ast.Lambda) and self.bound_in(outer, use.id)):
                break
            targets = [each.target for each in getattr(outer, "generators", ())]
            found = [
                each
                for each in (self.bound_in(self.scope(outer), use.id) if targets else ())
                if any(self._within(each.node, target) for target in targets)
            ]
            if found:
                return tuple(found)
        return ()

    def _enclosing(self, name: str, inner: Scope, scope: Scope, found: tuple[Binding, ...]) -> tuple[Binding, ...]:
        if isinstance(scope, ast.Module):
            return found
        line = getattr(inner, "lineno", 0)
        later = [each for each in found if getattr(each.node, "lineno", 0) > line]
        before = self._backwards(name, inner, scope)
        return tuple(dict.fromkeys((*before, *later)))

    def _backwards(self, name: str, use: ast.AST, scope: Scope) -> tuple[Binding, ...]:
        """Walk from the statement of the use towards the start of the function."""
        candidates = self.bound_in(scope, name)
        if isinstance(scope, ast.Lambda) or len(candidates) == 1:
            return candidates
        found: list[Binding] = []
        node: ast.AST = self._module.statement_of(use) or use
        while node is not scope:
            parent = self._module.parent(node)
            if parent is None:
                break
            for sibling in _before(parent, node):
                inside = [each for each in candidates if self._within(each.node, sibling)]
                found += [each for each in inside if each not in found]
                if inside and _certain(sibling, {each.node for each in inside}, self._module):
                    return tuple(found)
            if isinstance(parent, ast.For | ast.AsyncFor | ast.While):
                found += [each for each in candidates if self._within(each.node, parent) and each not in found]
                if isinstance(parent, ast.For) and any(self._within(each.node, parent.target) for each in candidates):
                    return tuple(found)
            if isinstance(parent, ast.With):
                found += [
                    each
                    for each in candidates
                    if each not in found and any(self._within(each.node, item) for item in parent.items)
                ]
            node = parent
        return tuple(found + [each for each in candidates if each.parameter and each not in found])

    def _within(self, node: ast.AST, outer: ast.AST) -> bool:
        return node is outer or any(each is outer for each in self._module.ancestors(node))


@functools.lru_cache(maxsize=8)
def definitions(module: "Module") -> Definitions:
    """The bindings of a module, found once."""
    return Definitions(module)


def values_of(module: "Module", node: ast.expr, at: ast.AST) -> list[ast.expr]:
    """What an expression may be where it stands: itself, or for a name what may have been assigned to it.

    Both branches of a conditional expression, and of an `if`, count. A name whose value is not always assigned directly
    (a parameter, a loop variable) is given as it is. Nested functions around the expression run at the node `at`.
    """
    found: list[ast.expr] = []
    followed: set[ast.Name] = set()
    left = [node]
    while left:
        each = left.pop()
        if isinstance(each, ast.IfExp):
            left += (each.orelse, each.body)
        elif not isinstance(each, ast.Name):
            found.append(each)
        elif each not in followed:  # a loop may lead back to it
            followed.add(each)
            values = [binding.expression for binding in definitions(module).reaching(each, at)]
            known = [value for value in values if value is not None]
            if known and len(known) == len(values):
                left += reversed(known)
            else:
                found.append(each)
    return found


def _before(parent: ast.AST, node: ast.AST) -> list[ast.stmt]:
    """Statements of the same block before a node, the nearest first."""
    for _, block in ast.iter_fields(parent):
        if isinstance(block, list) and any(each is node for each in block):
            index = next(number for number, each in enumerate(block) if each is node)
            return [each for each in reversed(block[:index]) if isinstance(each, ast.stmt)]
    return []


def _certain(statement: ast.stmt, targets: set[ast.AST], module: "Module") -> bool:
    """Whether one of the targets is bound on every path through the statement."""
    if isinstance(statement, ast.If):
        return bool(statement.orelse) and all(
            any(_certain(each, targets, module) for each in block) or isinstance(block[-1], _LEAVES)
            for block in (statement.body, statement.orelse)
        )
    if isinstance(statement, ast.With):
        return any(_certain(each, targets, module) for each in statement.body)
    if isinstance(statement, ast.For | ast.While | ast.Try | ast.AsyncFor | ast.Match):
        return False
    return any(node is statement or statement in module.ancestors(node) for node in targets)


def _bindings(node: ast.AST) -> Iterator[Binding]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _targets(target, node.value)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
        if node.value is not None:
            yield from _targets(node.target, node.value)
    elif isinstance(node, ast.AugAssign | ast.For | ast.AsyncFor | ast.comprehension):
        yield from _targets(node.target, None)
    elif isinstance(node, ast.withitem):
        if node.optional_vars is not None:
            yield from _targets(node.optional_vars, None)
    elif isinstance(node, ast.arg):
        yield Binding(node.arg, node, parameter=True)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield Binding(node.name, node)
    elif isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            yield Binding((alias.asname or alias.name).partition(".")[0], node)
    elif isinstance(node, ast.ExceptHandler) and node.name:
        yield Binding(node.name, node)


def _targets(target: ast.expr, value: ast.expr | None, position: int | None = None) -> Iterator[Binding]:
    if isinstance(target, ast.Name):
        yield Binding(target.id, target, value, position)
    elif isinstance(target, ast.Starred):
        yield from _targets(target.value, None)
    elif isinstance(target, ast.Tuple | ast.List):
        display = value if isinstance(value, ast.Tuple | ast.List) else None
        starred = any(isinstance(each, ast.Starred) for each in target.elts)
        for number, each in enumerate(target.elts):
            if display is not None and not starred and len(display.elts) == len(target.elts):
                yield from _targets(each, display.elts[number])
            else:
                yield from _targets(each, None if starred or position is not None else value, number)
