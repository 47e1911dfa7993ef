"""Statements that kernels cannot have."""

import ast
from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.flow import FunctionNode
from tilewright.rules.flow import device_nodes
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import FunctionRule
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.rule import Proof

_REFUSED: dict[type[ast.AST], str] = {
    ast.Try: "try",
    ast.TryStar: "try",
    ast.Assert: "assert",
    ast.Raise: "raise",
    ast.ListComp: "a list comprehension",
    ast.SetComp: "a set comprehension",
    ast.DictComp: "a dict comprehension",
    ast.Dict: "a dict",
    ast.Set: "a set",
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.Delete: "del",
    ast.ClassDef: "a class",
    ast.Yield: "yield",
    ast.Await: "await",
}


class RefusedStatement(FunctionRule):
    """A statement that the compiler does not know."""

    code = "TW280"
    severity = Severity.ERROR
    why = "Kernels are compiled from a part of Python: assignments, if, for over range, while, functions, tuples."
    advice = (
        "Use ct.static_assert or ct.assert_ for checks, ct.static_iter for loops over tuples; do the rest on the host."
    )
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def copy_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,)."""
    ct.static_assert(TILE >= 32)
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (TILE,)))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def copy_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = X (N,)."""
    assert TILE >= 32
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (TILE,)))
''',
        HEAD
        + '''@ct.kernel
def copy_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (2, N) = X (2, N)."""
    tiles = [ct.load(X, (i, ct.bid(0)), (1, TILE)) for i in range(2)]
    ct.store(Y, (0, ct.bid(0)), tiles[0])
    ct.store(Y, (1, ct.bid(0)), tiles[1])
''',
    )

    def check_function(self, flow: Flow, function: FunctionNode) -> Iterator[Finding]:
        """Statements and expressions of these kinds."""
        for node in device_nodes(flow.module, function):
            word = _REFUSED.get(type(node))
            if word is not None and not isinstance(flow.module.parent(node), ast.Raise):
                yield self.finding(flow.module, node, f"kernels cannot have {word}: write it otherwise")


class ReturnedValue(KernelRule):
    """A kernel returns a value."""

    code = "TW281"
    severity = Severity.ERROR
    why = "A kernel has no result: what it computes is written to arrays."
    advice = "Store the result with ct.store or ct.scatter."
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def copy_kernel(X, Y, N: int, TILE: ct.Constant[int]):
    """Y (N,) = X (N,)."""
    if ct.bid(0) * TILE >= N:
        return
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (TILE,)))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def double_kernel(X, TILE: ct.Constant[int]):
    """2 X (N,)."""
    return ct.load(X, (ct.bid(0),), (TILE,)) * 2
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Returns of the kernel itself."""
        for node in device_nodes(flow.module, flow.kernel.node):
            given = node.value if isinstance(node, ast.Return) else None
            if given is not None and not (isinstance(given, ast.Constant) and given.value is None):
                yield self.finding(
                    flow.module, node, f"{flow.kernel.name} is a kernel, which cannot return a value: store it"
                )


class BackwardRange(FunctionRule):
    """A range with a negative step."""

    code = "TW282"
    severity = Severity.ERROR
    why = 'Loops of kernels only count up: "Step must be positive". A step that is negative at run time is not noticed.'
    advice = "Count up, and subtract: `for i in range(n)` with `j = n - 1 - i`."
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def reversed_kernel(X, Y, N: int, TILE: ct.Constant[int]):
    """Y (N TILE,) = the tiles of X (N TILE,), last first."""
    for i in range(N):
        ct.store(Y, (i,), ct.load(X, (N - 1 - i,), (TILE,)))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def reversed_kernel(X, Y, N: int, TILE: ct.Constant[int]):
    """Y (N TILE,) = the tiles of X (N TILE,), last first."""
    for i in range(N - 1, -1, -1):
        ct.store(Y, (N - 1 - i,), ct.load(X, (i,), (TILE,)))
''',
    )

    def check_function(self, flow: Flow, function: FunctionNode) -> Iterator[Finding]:
        """Ranges whose step is written so."""
        for node in device_nodes(flow.module, function):
            match node:
                case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[_, _, ast.UnaryOp(op=ast.USub())])):
                    yield self.finding(
                        flow.module, node.iter, "a loop of a kernel cannot count down: count up and subtract"
                    )


class DefaultOfParameter(KernelRule):
    """A parameter of a kernel has a default."""

    code = "TW285"
    severity = Severity.WARNING
    why = 'A launch passes every argument; without them it says "Kernel expects 3 arguments but 2 were given".'
    advice = "Remove the default, and pass the argument in every launch."
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def double_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (N,) = 2 X (N,)."""
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (TILE,)) * 2)
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def double_kernel(X, Y, TILE: ct.Constant[int] = 1024):
    """Y (N,) = 2 X (N,)."""
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (TILE,)) * 2)
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Defaults of parameters."""
        arguments = flow.kernel.node.args
        every = [*arguments.posonlyargs, *arguments.args]
        for argument in every[len(every) - len(arguments.defaults) :]:
            message = f"the default of {argument.arg} is not used: a launch of {flow.kernel.name} passes every argument"
            yield self.finding(flow.module, argument, message)
