"""What a kernel does, as far as its source says: every operation with the values of its arguments."""

import ast
import functools
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field

from tilewright.rules.kernels import Kernel
from tilewright.rules.overhang import Launches
from tilewright.rules.source import Module
from tilewright.rules.symbols import Polynomial
from tilewright.rules.values import UNKNOWN
from tilewright.rules.values import Scalar
from tilewright.rules.values import Tile
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

    def is_flag(self, test: ast.expr) -> bool:
        """Whether a condition is a constant of the kernel, or its opposite: the same for all blocks."""
        name = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
        return isinstance(name, ast.Name) and name.id in self.kernel.constants

    def named(self, *names: str) -> list[Operation]:
        """The operations of these names, in order of the source."""
        return [each for each in self.operations if each.name in names]


@functools.lru_cache(maxsize=512)
def device_nodes(module: Module, function: FunctionNode) -> tuple[ast.AST, ...]:
    """Nodes of a function that run on the device: without functions inside, and what `ct.static_eval` computes."""
    found: list[ast.AST] = []
    waiting: list[ast.AST] = list(reversed(function.body if isinstance(function.body, list) else [function.body]))
    while waiting:
        node = waiting.pop()
        found.append(node)
        static = isinstance(node, ast.Call) and str(module.names.tile(node.func)).startswith("static_")
        if not static and not isinstance(node, ast.FunctionDef | ast.Lambda):
            waiting += reversed(list(ast.iter_child_nodes(node)))
    return tuple(found)


def _compared(flow: Flow) -> Iterator[tuple[Polynomial, Polynomial]]:
    """Sizes of rows of places that are compared with a length, as `ct.arange(TILE) < X.shape[1]`."""
    for operation in flow.named("less", "less_equal", "greater", "greater_equal"):
        for places, other in (("x", "y"), ("y", "x")):
            row, bound = operation.value(places), operation.value(other)
            if not isinstance(row, Tile) or row.element is None or not isinstance(bound, Scalar) or not bound.number:
                continue
            lanes = [atom for atom in row.element.atoms() if atom.kind == "lane"]
            if len(lanes) == 1 and lanes[0].parts and bound.number.has("dimension", "parameter"):
                yield lanes[0].parts[0], bound.number


@functools.lru_cache(maxsize=64)
def flows(module: Module) -> tuple[Flow, ...]:
    """One for each kernel of a module, or for each value of the axis that a kernel works along."""
    from tilewright.rules.walk import Walk  # it fills what is defined here

    found = []
    for kernel in module.kernels:
        launches = Launches(module, kernel)
        for given in _cases(kernel):
            launches.compared.clear()
            flow = Flow(module, kernel, launches)
            Walk(flow, given).run()
            launches.compared.update(_compared(flow))
            if launches.compared:
                flow = Flow(module, kernel, launches)
                Walk(flow, given).run()
            found.append(flow)
    return tuple(found)


def _cases(kernel: Kernel) -> Iterator[Mapping[str, int]]:
    """Values of the constants that make several kernels of one.

    These are the axis that it works along, which is compared with numbers and used as a subscript, and the first flag
    that decides how it loads or whether it masks.
    """
    functions = (kernel.node, *kernel.helpers)
    nodes = [node for function in functions for node in ast.walk(function)]
    subscripts = {
        node.slice.id for node in nodes if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name)
    }
    axis = next((name for name in kernel.constants if name in subscripts), None)
    axes = {
        node.comparators[0].value
        for node in nodes
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and node.left.id == axis
        if isinstance(node.comparators[0], ast.Constant) and type(node.comparators[0].value) is int
    }
    flags = {
        node.test.id
        for node in nodes
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name)
        if all(any(_loads(kernel.module, each) for each in branch) for branch in (node.body, node.orelse))
        or (not node.orelse and any(_masks(kernel.module, each) for each in node.body))
    }
    flag = next((name for name in kernel.constants if name in flags), None)
    along: list[dict[str, int]] = [{}]
    if axis is not None and axes:
        along = [{axis: value} for value in sorted(axes | {max(axes) + 1})]
    for case in along:
        yield from [case] if flag is None else [case | {flag: False}, case | {flag: True}]


def _loads(module: Module, statement: ast.stmt) -> bool:
    """Whether a statement loads or gathers, or calls a helper that is named so."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call):
            name = module.names.tile(node.func) or getattr(node.func, "id", "")
            if name in ("load", "gather") or name in module.functions:
                return True
    return False


def _masks(module: Module, statement: ast.stmt) -> bool:
    """Whether a statement replaces elements of a tile."""
    return any(isinstance(node, ast.Call) and module.names.tile(node.func) == "where" for node in ast.walk(statement))
