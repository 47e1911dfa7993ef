"""Rules that look at what kernels do."""

import ast
from abc import abstractmethod
from collections.abc import Iterator

from tilewright.rules.finding import Finding
from tilewright.rules.flow import Flow
from tilewright.rules.flow import FunctionNode
from tilewright.rules.flow import Operation
from tilewright.rules.flow import flows
from tilewright.rules.rule import Rule
from tilewright.rules.source import Module

HEAD = "import cuda.tile as ct\nimport torch\n\n\n"  # of snippets


class KernelRule(Rule):
    """A rule that asks the flow of each kernel; of several findings at one place the first counts."""

    def check(self, module: Module) -> Iterator[Finding]:
        """What this rule finds in the kernels of one file."""
        seen: set[tuple[int, int]] = set()
        for flow in flows(module):
            for finding in self.check_flow(flow):
                if (finding.line, finding.column) not in seen:
                    seen.add((finding.line, finding.column))
                    yield finding

    @abstractmethod
    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """What this rule finds in one kernel and the helpers that it calls."""


class FunctionRule(KernelRule):
    """A rule that looks at the source of each function that runs on the device, once."""

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """What this rule finds in the kernel and its helpers."""
        for function in flow.functions:
            yield from self.check_function(flow, function)

    def check(self, module: Module) -> Iterator[Finding]:
        """What this rule finds in the functions of one file that run on the device."""
        seen: set[FunctionNode] = set()
        for flow in flows(module):
            for function in flow.functions:
                if function not in seen:
                    seen.add(function)
                    yield from self.check_function(flow, function)

    @abstractmethod
    def check_function(self, flow: Flow, function: FunctionNode) -> Iterator[Finding]:
        """What this rule finds in one function."""


def tile_alias(module: Module) -> str | None:
    """How the module writes `ct.`."""
    for node in module.nodes(ast.Import):
        for each in node.names:
            if each.name == "cuda.tile" and each.asname:
                return f"{each.asname}."
    return None


def given(call: ast.expr, name: str) -> ast.expr | None:
    """The keyword argument of that name."""
    if not isinstance(call, ast.Call):
        return None
    return next((each.value for each in call.keywords if each.arg == name), None)


def is_only_compared(flow: Flow, operation: Operation) -> bool:
    """Whether a sum only serves to find NaN: `total = ct.sum(x)`, then `total != total`."""
    statement = flow.module.parent(operation.node)
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            reads = [node for node in ast.walk(operation.function) if isinstance(node, ast.Name) and node.id == name]
            later = [node for node in reads if isinstance(node.ctx, ast.Load) and node.lineno > statement.lineno]
            return bool(later) and all(isinstance(flow.module.parent(node), ast.Compare) for node in later)
    return False
