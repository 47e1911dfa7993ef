"""The axis of a softmax."""

from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.flow import Operation
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.rule import Proof
from tilewright.rules.shapes import Shape
from tilewright.rules.shapes import reduced
from tilewright.rules.values import Tile


class SoftmaxAcrossAxes(KernelRule):
    """A softmax whose largest element and whose sum are taken along different axes."""

    code = "TW254"
    severity = Severity.WARNING
    why = (
        "The exponentials are of differences to the largest element along one axis, but are added up along another: "
        "the sum is one over elements that were scaled differently, and the shares do not add up to 1."
    )
    advice = "Reduce along the same axis both times."
    proof = Proof.NUMBERS
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def softmax_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, TILE) = softmax of the rows of X (M, TILE)."""
    x = ct.load(X, (ct.bid(0), 0), (1, TILE)).astype(ct.float32)
    e = ct.exp(x - ct.max(x, 1, keepdims=True))
    ct.store(Y, (ct.bid(0), 0), (e / ct.sum(e, 1, keepdims=True)).astype(Y.dtype))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def softmax_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, TILE) = softmax of the rows of X (M, TILE)."""
    x = ct.load(X, (ct.bid(0), 0), (1, TILE)).astype(ct.float32)
    e = ct.exp(x - ct.max(x, 1, keepdims=True))
    ct.store(Y, (ct.bid(0), 0), (e / ct.sum(e, 0, keepdims=True)).astype(Y.dtype))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Sums of tiles as large as those of which the largest element is sought, none of them along its axis."""
        if not flow.named("exp", "exp2"):
            return
        sought = {key for each in flow.named("max") if (key := _along(each)) is not None}
        summed = {key for each in flow.named("sum") if (key := _along(each)) is not None}
        for operation in flow.named("sum"):
            shape, axis = _along(operation) or (None, None)
            axes = {each for other, each in sought if other == shape}
            if len(axes) == 1 and axis not in axes and not any((shape, each) in summed for each in axes):
                message = (
                    f"the sum is along axis {axis}, but the largest element is along axis {axes.pop()}: use one axis"
                )
                yield self.finding(flow.module, operation.node, message)


def _along(reduction: Operation) -> tuple[Shape, int] | None:
    """The shape of what is reduced, and along which axis; None where either is not known."""
    x = reduction.value("x")
    found = reduced(x, reduction.values.get("axis"), keepdims=True) if isinstance(x, Tile) else None
    if not isinstance(x, Tile) or x.shape is None or None in x.shape or found is None or len(found[1]) != 1:
        return None
    return x.shape, found[1][0]
