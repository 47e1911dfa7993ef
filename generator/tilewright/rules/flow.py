"""What a kernel does, as far as its source says: every operation with the values of its arguments."""

import ast
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field

from tilewright.rules.kernels import Kernel
from tilewright.rules.overhang import Launches
from tilewright.rules.source import Module
from tilewright.rules.values import UNKNOWN
from tilewright.rules.values import Value

FunctionNode = ast.FunctionDef | ast.Lambda


@dataclass(frozen=True, eq=False)
class Operation:
    """One function of `cuda.tile`, method or operator, where the kernel, or a helper that it calls, uses it."""

    name: str  # of the function in `cuda.tile`, also for methods and operators: "load", "astype", "add"
    node: ast.expr
    values: Mapping[str, Value]  # by parameter
    nodes: Mapping[str, ast.expr]  # the arguments that are given, by parameter
    result: Value
    function: FunctionNode  # around it: the kernel, or a helper
    loops: tuple[ast.For | ast.While, ...]  # around it, outermost first
    conditions: tuple[ast.expr, ...]  # tests of the branches that it is in

    def value(self, parameter: str) -> Value:
        """The value of one argument; nothing is known of one that is not given."""
        return self.values.get(parameter, UNKNOWN)


@dataclass(frozen=True, eq=False)
class Carry:
    """A variable that a loop changes."""

    name: str
    before: Value
    after: Value  # its first turn
    loop: ast.For | ast.While
    function: FunctionNode


@dataclass(eq=False)
class Flow:
    """What is known of one kernel."""

    module: Module
    kernel: Kernel
    launches: Launches
    operations: list[Operation] = field(default_factory=list)
    carries: list[Carry] = field(default_factory=list)
    values: dict[ast.AST, Value] = field(default_factory=dict)  # of each expression, when it was last evaluated
    functions: dict[FunctionNode, None] = field(default_factory=dict)  # that run on the device, in order

    def named(self, *names: str) -> list[Operation]:
        """The operations of these names, in order of the source."""
        return [each for each in self.operations if each.name in names]


@functools.lru_cache(maxsize=64)
def flows(module: Module) -> tuple[Flow, ...]:
    """One for each kernel of a module."""
    from tilewright.rules.walk import Walk  # it fills what is defined here

    found = []
    for kernel in module.kernels:
        flow = Flow(module, kernel, Launches(module, kernel))
        Walk(flow).run()
        found.append(flow)
    return tuple(found)
