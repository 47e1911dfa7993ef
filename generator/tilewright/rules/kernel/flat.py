"""Flat indices that run past the end of their row."""

from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.memory import entries_of
from tilewright.rules.memory import first_of_row
from tilewright.rules.overhang import evidence
from tilewright.rules.reduced import NEUTRAL
from tilewright.rules.reduced import reached
from tilewright.rules.rule import Proof
from tilewright.rules.symbols import integer
from tilewright.rules.values import Array
from tilewright.rules.values import Outside


class NextRow(KernelRule):
    """A flat index runs into the next row."""

    code = "TW217"
    severity = Severity.ERROR
    why = (
        "`row * N + ct.arange(TILE)` with TILE > N goes on in the next row: these are places of the array, so the test "
        "for bounds lets them pass. They are summed with the row, or overwritten."
    )
    advice = "Index with two axes, `(row, ct.arange(TILE, dtype=ct.int32))`, or pass `mask=ct.arange(TILE) < N`."
    proof = Proof.NUMBERS
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def row_sum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M,) = sums of the rows of X (M, N), where N <= TILE."""
    row = ct.bid(0)
    tile = ct.gather(X, (row, ct.arange(TILE, dtype=ct.int32))).astype(ct.float32)
    ct.scatter(Y, row, ct.sum(tile).astype(Y.dtype))


def row_sum(x, out):
    tile = 1 << (x.shape[1] - 1).bit_length()
    ct.launch(torch.cuda.current_stream(), (x.shape[0],), row_sum_kernel, (x, out, tile))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def row_sum_kernel(X, Y, N: ct.Constant[int], TILE: ct.Constant[int]):
    """Y (M,) = sums of the rows of X (M N,), where N <= TILE."""
    row = ct.bid(0)
    tile = ct.gather(X, row * N + ct.arange(TILE, dtype=ct.int32)).astype(ct.float32)
    ct.scatter(Y, row, ct.sum(tile).astype(Y.dtype))


def row_sum(x, out):
    n = x.shape[1]
    tile = 1 << (n - 1).bit_length()
    ct.launch(torch.cuda.current_stream(), (x.shape[0],), row_sum_kernel, (x.view(-1), out, n, tile))
''',
        HEAD
        + '''@ct.kernel
def double_kernel(X, Y, N: ct.Constant[int], TILE: ct.Constant[int]):
    """Y (M N,) = 2 X (M N,), row by row, where N <= TILE."""
    place = ct.bid(0) * N + ct.arange(TILE, dtype=ct.int32)
    ct.scatter(Y, place, ct.gather(X, place) * 2)


def double(x, out):
    m, n = x.shape
    tile = 1 << (n - 1).bit_length()
    ct.launch(torch.cuda.current_stream(), (m,), double_kernel, (x.view(-1), out.view(-1), n, tile))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Rows that are gathered so and reduced, or scattered to."""
        for operation in flow.named(*NEUTRAL, "mma", "matmul"):
            for padding, _ in reached(operation):
                if padding.kind is Outside.NEIGHBOUR:
                    message = (
                        f"a row of {padding.array} goes on in the next one ({padding.why}), which reaches "
                        f"ct.{operation.name} in line {operation.node.lineno}: mask it"
                    )
                    yield self.finding(flow.module, padding.load, message)
        for operation in flow.named("scatter"):
            entries, array = entries_of(operation.value("indices")), operation.value("array")
            size = first_of_row(entries[0]) if len(entries) == 1 else None
            if size is None or "mask" in operation.values or not isinstance(array, Array):
                continue
            found = evidence(integer(0), size, flow.launches)
            if found is not None:
                message = (
                    f"a row of {array.name} goes on in the next one ({found[0]}), which this overwrites: index by axis"
                )
                yield self.finding(flow.module, operation.node, message)
