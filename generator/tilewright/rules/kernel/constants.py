"""Parameters that a kernel does not need."""

import ast
from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.rule import Proof


class UnusedConstant(KernelRule):
    """A parameter that the kernel does not use."""

    code = "TW222"
    severity = Severity.WARNING
    why = (
        "A kernel is compiled again for every value of a constant, also of one that it does not use; where another "
        "parameter is not used, what it stands for does not reach the result."
    )
    advice = "Use the parameter, or remove it and its argument from every launch."
    proof = Proof.STYLE
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
def double_kernel(X, Y, N: ct.Constant[int], TILE: ct.Constant[int]):
    """Y (N,) = 2 X (N,)."""
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (TILE,)) * 2)
''',
        HEAD
        + '''@ct.kernel
def scale_kernel(X, Y, N, TILE: ct.Constant[int]):
    """Y (N,) = N X (N,)."""
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (TILE,)))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Parameters whose name the body does not read."""
        body = flow.kernel.node.body
        read = {node.id for statement in body for node in ast.walk(statement) if isinstance(node, ast.Name)}
        for parameter in flow.kernel.parameters:
            if parameter.name not in read and not parameter.name.startswith("_"):
                message = f"{flow.kernel.name} does not use {parameter.name}"
                if parameter.constant:
                    message += ", but is compiled again for each of its values"
                else:
                    message += ", so what a launch passes for it changes nothing"
                yield self.finding(flow.module, parameter.node, message)
