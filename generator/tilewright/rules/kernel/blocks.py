"""What depends on the place of a block in the grid: where it writes, and how wide its index is."""

import ast
from collections.abc import Iterator
from typing import ClassVar

from tilewright.rules.definitions import values_of
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.flow import Flow
from tilewright.rules.flow import Operation
from tilewright.rules.kernel_rule import HEAD
from tilewright.rules.kernel_rule import KernelRule
from tilewright.rules.memory import entries_of
from tilewright.rules.rule import Proof
from tilewright.rules.symbols import Atom
from tilewright.rules.symbols import Polynomial
from tilewright.rules.values import Array
from tilewright.rules.values import Scalar
from tilewright.rules.values import Tile
from tilewright.rules.values import Value

_ATOMICS = tuple(f"atomic_{name}" for name in ("add", "and", "cas", "max", "min", "or", "xchg", "xor"))


class BlocksWriteTheSame(KernelRule):
    """Several blocks write the same elements."""

    code = "TW203"
    severity = Severity.ERROR
    why = (
        "The kernel asks for its place along an axis of the grid, but writes to the same elements for every place "
        "there: whichever block comes last wins, and the work of the others is lost."
    )
    advice = "Make the index of what is written depend on every axis of the grid, or add with ct.atomic_add."
    proof = Proof.NUMBERS
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def split_sum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, blocks) = sums of parts of the rows of X (M, N)."""
    m, part = ct.bid(0), ct.bid(1)
    tile = ct.load(X, (m, part), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    ct.store(Y, (m, part), ct.sum(tile, 1, keepdims=True).astype(Y.dtype))
''',
        HEAD
        + '''@ct.kernel
def copy_tiles_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, N) = X (M, N)."""
    across = ct.cdiv(X.shape[1], TILE)
    m, n = ct.bid(0) // across, ct.bid(0) % across
    ct.store(Y, (m, n), ct.load(X, (m, n), (1, TILE)))
''',
        HEAD
        + '''@ct.kernel
def copy_tiles_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, N) = X (M, N)."""
    across = ct.cdiv(X.shape[1], TILE)
    m, n = ct.bid(0) // across, ct.bid(0) % across
    ct.store(Y.slice(0, m, m + 1), (0, n), ct.load(X, (m, n), (1, TILE)))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def split_sum_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, 1) = sums of the rows of X (M, N)."""
    m, part = ct.bid(0), ct.bid(1)
    tile = ct.load(X, (m, part), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    ct.store(Y, (m, 0), ct.sum(tile, 1, keepdims=True).astype(Y.dtype))
''',
        HEAD
        + '''@ct.kernel
def copy_tiles_kernel(X, Y, TILE: ct.Constant[int]):
    """Y (M, N) = X (M, N)."""
    across = ct.cdiv(X.shape[1], TILE)
    m, n = ct.bid(0) // across, ct.bid(0) % across
    ct.store(Y, (m, 0), ct.load(X, (m, n), (1, TILE)))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Stores whose value comes from an axis of the grid that their index does not depend on."""
        if flow.named(*_ATOMICS) or any(each.name.startswith("atomic") for each in flow.operations):
            return
        reads = {axis for each in flow.named("load", "gather") for axis in _axes(each)}
        stores = flow.named("store", "scatter")
        if any(map(_is_to_part, stores)):
            return
        unread = {axis for axis in reads if stores and not any(axis in _axes(each) for each in stores)}
        for store in stores:
            if not all(map(flow.is_flag, store.conditions)) or not all(
                _is_known(each) for each in entries_of(_index(store))
            ):
                return
        for axis in sorted(unread):
            if any(_grid_is_one(flow, axis)):
                continue
            message = (
                f"what is written does not depend on ct.bid({axis}): all blocks along that axis write the same elements"
            )
            yield self.finding(flow.module, stores[0].node, message)
        for part, other in _dropped(flow.named("load", "gather"), stores):
            message = (
                f"what is read depends on the quotient and the remainder of a block's number, what is written on its "
                f"{other} alone: blocks that differ in the {part} write the same elements"
            )
            yield self.finding(flow.module, stores[0].node, message)


def _index(operation: Operation) -> Value:
    return operation.value("index" if operation.name in ("load", "store") else "indices")


def _is_to_part(store: Operation) -> bool:
    """Whether it writes to a slice, whose place in the array may depend on the block too."""
    array = store.value("array")
    return isinstance(array, Array) and array.name.endswith(".slice")


def _number(entry: Value) -> Polynomial | None:
    return entry.number if isinstance(entry, Scalar) else entry.element if isinstance(entry, Tile) else None


def _is_known(entry: Value) -> bool:
    number = _number(entry)
    return number is not None and not number.has("merge", "other")


def _numbers(operation: Operation) -> list[Polynomial]:
    return [number for entry in entries_of(_index(operation)) if (number := _number(entry)) is not None]


def _axes(operation: Operation) -> set[int]:
    atoms = (atom for number in _numbers(operation) for atom in number.atoms())
    return {atom.key[0] for atom in atoms if atom.kind == "bid" and isinstance(atom.key[0], int)}


def _dropped(loads: list[Operation], stores: list[Operation]) -> Iterator[tuple[str, str]]:
    """Of a number cut into quotient and remainder, both of which are read at: which part no store depends on."""
    read = {atom for each in loads for number in _numbers(each) for atom in number.atoms()}
    written = {atom for each in stores for number in _numbers(each) for atom in number.atoms()}
    for quotient in read:
        remainder = Atom("mod", quotient.key)
        if quotient.kind != "floor" or remainder not in read or not any(each.has("bid") for each in quotient.parts):
            continue
        whole = quotient.parts[0].atom
        for part, other, said in (
            (quotient, remainder, ("quotient", "remainder")),
            (remainder, quotient, ("remainder", "quotient")),
        ):
            if part in written or other not in written or whole is None:
                continue
            if not any(whole in _outside(number, other) for each in stores for number in _numbers(each)):
                yield said


def _outside(number: Polynomial, known: Atom) -> Iterator[Atom]:
    """The atoms of a number but those inside of one."""
    for monomial, _ in number.terms:
        for atom in monomial:
            if atom != known:
                yield atom
                for part in atom.parts:
                    yield from _outside(part, known)


def _grid_is_one(flow: Flow, axis: int) -> Iterator[bool]:
    for launch in flow.launches.launches:
        for grid in values_of(flow.module, launch.grid, launch.node) if launch.grid is not None else ():
            if isinstance(grid, ast.Tuple):
                size = grid.elts[axis] if axis < len(grid.elts) else None
                yield size is None or (isinstance(size, ast.Constant) and size.value == 1)


class WideIndex(KernelRule):
    """A flat index is computed with 32 bits."""

    code = "TW204"
    severity = Severity.INFO
    why = "`ct.bid(0) * TILE` has 32 bits: for more than 2^31 elements it overflows before it is widened."
    advice = "Compute with `ct.int64(ct.bid(0))`, or let the host cut the work into pieces of less than 2^31 elements."
    VALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def copy_kernel(X: ct.IndexedWithInt64, Y: ct.IndexedWithInt64, TILE: ct.Constant[int]):
    """Y (N,) = X (N,)."""
    place = ct.int64(ct.bid(0)) * TILE + ct.arange(TILE, dtype=ct.int64)
    ct.scatter(Y, place, ct.gather(X, place))
''',
    )
    INVALID: ClassVar = (
        HEAD
        + '''@ct.kernel
def copy_kernel(X: ct.IndexedWithInt64, Y: ct.IndexedWithInt64, TILE: ct.Constant[int]):
    """Y (N,) = X (N,)."""
    place = ct.bid(0) * TILE + ct.arange(TILE, dtype=ct.int32)
    ct.scatter(Y, place, ct.gather(X, place))
''',
    )

    def check_flow(self, flow: Flow) -> Iterator[Finding]:
        """Flat indices of 32 bits into arrays that say that they need 64."""
        wide = {
            each.name
            for each in flow.kernel.parameters
            if each.node.annotation is not None and "IndexedWithInt64" in ast.unparse(each.node.annotation)
        }
        for operation in flow.named("gather", "scatter"):
            array, entries = operation.value("array"), entries_of(operation.value("indices"))
            if not isinstance(array, Array) or array.name not in wide or len(entries) != 1:
                continue
            entry = entries[0]
            if isinstance(entry, Tile) and entry.dtype == "int32" and entry.element and entry.element.has("bid"):
                node = operation.nodes["indices"]
                message = (
                    f"`{ast.unparse(node)}` is computed with 32 bits, but {array.name} is indexed with 64: widen it"
                )
                yield self.finding(flow.module, node, message)
