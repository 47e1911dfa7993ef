"""Variables that are not assigned on every path, or not used."""

import ast
from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.flow import FunctionNode
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import FunctionRule
from tilewright.rules.rule import Proof


class FirstAssignedInLoop(FunctionRule):
    """A variable that is first assigned in a loop is used after it."""

    code = "TW283"
    severity = Severity.ERROR
    why = 'The loop may have no turn, so the compiler refuses it: "Use of potentially undefined variable".'
    advice = "Give the variable a value of the same type before the loop."
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def last_kernel(X, Y, N: int, TILE: ct.Constant[int]):
    """Y (TILE,) = the last tile of X (N TILE,)."""
    tile = ct.load(X, (0,), (TILE,))
    for i in range(N):
        tile = ct.load(X, (i,), (TILE,))
    ct.store(Y, (0,), tile)
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def last_kernel(X, Y, N: int, TILE: ct.Constant[int]):
    """Y (TILE,) = the last tile of X (N TILE,)."""
    for i in range(N):
        tile = ct.load(X, (i,), (TILE,))
    ct.store(Y, (0,), tile)
''',
    )

    def check_function(self, flow: Flow, function: FunctionNode) -> Iterator[Finding]:
        """Names that are read after a loop over `range`, and bound in it but nowhere before."""
        if isinstance(function, ast.FunctionDef):
            yield from self._in_block(flow, function.body, {each.arg for each in function.args.args})

    def _in_block(self, flow: Flow, body: list[ast.stmt], known: set[str]) -> Iterator[Finding]:
        known = set(known)
        doubtful: dict[str, ast.For] = {}
        for statement in body:
            reads = [n for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
            own = _stored(statement)
            for name in reads:
                if name.id in doubtful and (name.id not in own or not isinstance(statement, ast.For | ast.If)):
                    line = doubtful.pop(name.id).lineno
                    message = (
                        f"{name.id} is first assigned in the loop in line {line}, which may have no turn: assign it"
                    )
                    yield self.finding(flow.module, name, message)
            if isinstance(statement, ast.For) and _is_range(statement):
                names = own - known - {n.id for n in ast.walk(statement.target) if isinstance(n, ast.Name)}
                doubtful |= dict.fromkeys(names, statement)
            elif not isinstance(statement, ast.For | ast.While):
                for name_ in own:
                    doubtful.pop(name_, None)
                known |= own
            else:
                known |= own


def _is_range(loop: ast.For) -> bool:
    return isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name) and loop.iter.func.id == "range"


def _stored(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef):
        return {statement.name}
    nodes = ast.walk(statement)
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


class DeadLocal(FunctionRule):
    """A local variable that is not used."""

    code = "TW284"
    severity = Severity.WARNING
    why = "A mask that is computed and not used is often one that was meant to be."
    advice = "Use it, or remove it."
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def copy_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,)."""
    place = ct.bid(0) * TILE + ct.arange(TILE, dtype=ct.int32)
    ct.scatter(Y, place, ct.gather(X, place))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def copy_kernel(X, Y, N: int, TILE: ct.Constant[int]):
    """Y (N,) = X (N,)."""
    place = ct.bid(0) * TILE + ct.arange(TILE, dtype=ct.int32)
    mask = place < N
    ct.scatter(Y, place, ct.gather(X, place))
''',
    )

    def check_function(self, flow: Flow, function: FunctionNode) -> Iterator[Finding]:
        """Names that are assigned alone, and read nowhere in the function, nor in one inside."""
        nodes = list(ast.walk(function))
        read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        for node in nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id=name) as target]) if name not in read and name[0] != "_":
                    yield self.finding(flow.module, target, f"{name} is not used: use or remove it")
