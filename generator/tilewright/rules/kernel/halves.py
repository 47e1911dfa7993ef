"""float16 and bfloat16 together."""

from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.dtypes import HALF
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.rule import Proof
from tilewright.rules.values import Tile


class MixedHalves(KernelRule):
    """float16 meets bfloat16."""

    code = "TW233"
    severity = Severity.ERROR
    why = "Neither holds all values of the other, so the compiler refuses to choose."
    advice = "Convert both to float32."
    proof = Proof.COMPILER
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def add_kernel(X, Y, Z, TILE: ct.Constant[int]):
    """Z (N,) = X (N,) of float16 + Y (N,) of bfloat16."""
    x, y = ct.load(X, (ct.bid(0),), (TILE,)), ct.load(Y, (ct.bid(0),), (TILE,))
    ct.store(Z, (ct.bid(0),), (x.astype(ct.float32) + y.astype(ct.float32)).astype(Z.dtype))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def add_kernel(X, Y, Z, TILE: ct.Constant[int]):
    """Z (N,) = X (N,) + Y (N,)."""
    x, y = ct.load(X, (ct.bid(0),), (TILE,)), ct.load(Y, (ct.bid(0),), (TILE,))
    ct.store(Z, (ct.bid(0),), x.astype(ct.float16) + y.astype(ct.bfloat16))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Arithmetic between the two."""
        for operation in flow.named("add", "sub", "mul", "truediv", "maximum", "minimum", "where"):
            dtypes = {each.dtype for each in (operation.value("x"), operation.value("y")) if isinstance(each, Tile)}
            if dtypes == HALF:
                yield self.finding(
                    flow.module, operation.node, "float16 and bfloat16 have no common dtype: convert one"
                )
