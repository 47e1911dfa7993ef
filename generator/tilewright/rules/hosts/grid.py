"""Rules about the grid of a launch."""

import ast
import re
from collections.abc import Iterator

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.hosts.grids import Division
from tilewright.rules.hosts.grids import axes
from tilewright.rules.hosts.grids import differ
from tilewright.rules.hosts.grids import division
from tilewright.rules.hosts.grids import tiles
from tilewright.rules.hosts.launched import kernels
from tilewright.rules.hosts.values import alternatives
from tilewright.rules.hosts.values import integers
from tilewright.rules.hosts.values import is_dimension
from tilewright.rules.hosts.values import symbol
from tilewright.rules.kernels import Kernel
from tilewright.rules.launches import Launch
from tilewright.rules.rule import Proof
from tilewright.rules.rule import Rule
from tilewright.rules.source import Module

_FEW = re.compile(r"(?i)head|batch|group|expert|^(b|bs|bsz|h|g)$")  # names of sizes that are small in practice

_KERNEL = """
import cuda.tile as ct
import torch

ConstInt = ct.Constant[int]


@ct.kernel
def _double_kernel(X, Y, TILE: ConstInt):
    ct.store(Y, (ct.bid(0),), ct.load(X, (ct.bid(0),), (TILE,)) * 2)


def double(x):
    if x.numel() == 0:
        return x
    x = x.contiguous().view(-1)
    y = torch.empty_like(x)
"""
_LAUNCH = """    ct.launch(torch.cuda.current_stream(x.device), grid, _double_kernel, (x, y, TILE))
    return y
"""


def _blocks(module: Module, launch: Launch) -> Iterator[tuple[Kernel, int, Division, ast.expr]]:
    """Kernel, axis, division and the size that the kernel takes a block of the axis to have."""
    for kernel in kernels(module, launch):
        bound = launch.bound(kernel)
        expected = tiles(kernel)
        for axis, extent in axes(module, launch):
            found = division(module, extent)
            for size in expected.get(axis, []) if found is not None and bound else []:
                passed = bound.get(size.id, size) if isinstance(size, ast.Name) else size
                yield kernel, axis, found, passed  # type: ignore[misc]


class GridBlock(Rule):
    """Grid counts blocks of another size than the kernel gets."""

    code = "TW301"
    severity = Severity.ERROR
    why = (
        "The grid and the kernel must agree on how much one block does. Where the grid divides by a larger number, "
        "the last elements are never computed; where it divides by a smaller one, blocks lie wholly outside the array, "
        "which is undefined. Neither raises an error."
    )
    advice = "Divide by the variable that is passed to the kernel."
    proof = Proof.NUMBERS
    VALID = (
        _KERNEL + "    TILE = 1024\n    grid = (ct.cdiv(x.numel(), TILE),)\n" + _LAUNCH,
        _KERNEL + "    TILE = 1024 if x.numel() < 1 << 20 else 4096\n"
        "    grid = ((x.numel() + TILE - 1) // TILE,)\n" + _LAUNCH,
    )
    INVALID = (
        _KERNEL + "    TILE = 512\n    grid = ((x.numel() + 1023) // 1024,)\n" + _LAUNCH,
        _KERNEL + "    TILE = 256\n    grid = (ct.cdiv(x.numel(), 512), 1, 1)\n" + _LAUNCH,
        _KERNEL + "    TILE = 1024\n    if x.numel() > 1 << 20:\n        TILE = 4096\n"
        "    grid = (ct.cdiv(x.numel(), 1024),)\n" + _LAUNCH,
        _KERNEL + "    TILE = 1024\n    grid = ((x.numel() + 255) // TILE,)\n" + _LAUNCH,
    )

    def check(self, module: Module) -> Iterator[Finding]:
        seen: set[ast.expr] = set()
        for launch in module.launches:
            for kernel, axis, found, passed in _blocks(module, launch):
                if found.block in seen:
                    continue
                if differ(module, found.block, passed):
                    seen.add(found.block)
                    yield self.finding(
                        module,
                        found.node,
                        f"axis {axis} of the grid divides by {_said(module, found.block)}, but a block of "
                        f"{kernel.name} is {_said(module, passed)}",
                        fix=self._fix(module, found, passed),
                    )
            for axis, extent in axes(module, launch):
                rounded = division(module, extent)
                if rounded is None or rounded.slack is None or rounded.node in seen:
                    continue
                seen.add(rounded.node)
                if differ(module, rounded.slack, rounded.block):
                    yield self.finding(
                        module,
                        rounded.node,
                        f"axis {axis} of the grid rounds up with {_said(module, rounded.slack)}, but divides by "
                        f"{_said(module, rounded.block)}",
                    )

    def _fix(self, module: Module, found: Division, passed: ast.expr) -> Fix | None:
        if found.slack is None and isinstance(found.block, ast.Constant) and isinstance(passed, ast.Name):
            return Fix(f"Divide by {passed.id}", (module.replacement(found.block, passed.id),))
        return None


class GridRoundsDown(Rule):
    """Grid rounds down, and the last partial block is never computed."""

    code = "TW302"
    severity = Severity.ERROR
    why = (
        "`n // BLOCK` counts whole blocks only: where BLOCK does not divide n, the elements behind the last whole "
        "block stay as they were in memory, and no error says so."
    )
    advice = "Use ct.cdiv(n, BLOCK), or refuse sizes that BLOCK does not divide."
    proof = Proof.NUMBERS
    VALID = (
        _KERNEL + "    TILE = 1024\n    grid = (ct.cdiv(x.numel(), TILE),)\n" + _LAUNCH,
        _KERNEL + "    TILE = 1024\n    if x.numel() % TILE:\n"
        "        raise ValueError('the number of elements must be a multiple of 1024')\n"
        "    grid = (x.numel() // TILE,)\n" + _LAUNCH,
    )
    INVALID = (
        _KERNEL + "    TILE = 1024\n    grid = (x.numel() // TILE,)\n" + _LAUNCH,
        _KERNEL
        + "    TILE = 1024\n    n = x.numel()\n    blocks = n // TILE\n    grid = (max(1, blocks),)\n"
        + _LAUNCH,
    )

    def check(self, module: Module) -> Iterator[Finding]:
        seen: set[ast.expr] = set()
        for launch in module.launches:
            for _, axis, found, passed in _blocks(module, launch):
                if found.up or found.node in seen or not is_dimension(module, found.size):
                    continue
                if symbol(module, found.block) != symbol(module, passed) and (
                    differ(module, found.block, passed) or integers(module, passed) is None
                ):
                    continue
                if _remainder_is_known(module, found):
                    continue
                seen.add(found.node)
                yield self.finding(
                    module,
                    found.node,
                    f"axis {axis} of the grid is {ast.unparse(found.node)}, rounded down: the last partial block is "
                    "left out",
                    fix=self._fix(module, found),
                )

    def _fix(self, module: Module, found: Division) -> Fix | None:
        tile = next((each for each in ("ct", "cuda.tile") if module.names.resolve(ast.Name(each)) == "cuda.tile"), None)
        if tile is None:
            return None
        text = f"{tile}.cdiv({module.source(found.size)}, {module.source(found.block)})"
        return Fix("Round up", (module.replacement(found.node, text),))


class GridForm(Rule):
    """Grid that no launch accepts."""

    code = "TW303"
    severity = Severity.ERROR
    why = (
        "A grid is a tuple of at most three Python integers from 1 on. The first may be up to 2^24 - 1, the others up "
        "to 65535. Everything else is an error at the launch, some of them only deep in the driver."
    )
    advice = "Pass a tuple of one to three positive integers; put the largest extent first."
    VALID = (
        _KERNEL + "    TILE = 1024\n    grid = (ct.cdiv(x.numel(), TILE), 1, 1)\n" + _LAUNCH,
        _KERNEL + "    TILE = 1024\n    blocks = ct.cdiv(x.numel(), TILE)\n    grid = (blocks,)\n" + _LAUNCH,
    )
    INVALID = (
        _KERNEL + "    TILE = 1024\n    grid = ct.cdiv(x.numel(), TILE)\n" + _LAUNCH,
        _KERNEL + "    TILE = 1024\n    grid = [ct.cdiv(x.numel(), TILE)]\n" + _LAUNCH,
        _KERNEL + "    TILE = 1024\n    grid = (ct.cdiv(x.numel(), TILE), 1, 1, 1)\n" + _LAUNCH,
        _KERNEL + "    TILE = 1024\n    grid = (x.numel() / TILE,)\n" + _LAUNCH,
        _KERNEL + "    TILE = 1024\n    grid = (ct.cdiv(x.numel(), TILE), 0)\n" + _LAUNCH,
        _KERNEL + "    TILE = 1024\n    grid = (1, 1 << 16)\n" + _LAUNCH,
    )

    def check(self, module: Module) -> Iterator[Finding]:
        seen: set[ast.expr] = set()
        for launch in module.launches:
            for grid in alternatives(module, launch.grid) if launch.grid is not None else []:
                if grid not in seen:
                    seen.add(grid)
                    yield from self._grid(module, grid)

    def _grid(self, module: Module, grid: ast.expr) -> Iterator[Finding]:
        if not isinstance(grid, ast.Tuple):
            if isinstance(grid, ast.List):
                yield self.finding(module, grid, "the grid is a list; it must be a tuple")
            elif division(module, grid) is not None or isinstance(grid, ast.Constant):
                text = module.source(grid)
                fix = Fix("Make it a tuple", (module.replacement(grid, f"({text},)"),))
                yield self.finding(module, grid, f"the grid is the number {text}; it must be a tuple", fix=fix)
            return
        if any(isinstance(each, ast.Starred) for each in grid.elts):
            return
        if len(grid.elts) > 3:
            yield self.finding(module, grid, f"the grid has {len(grid.elts)} axes; three is the most")
            return
        for axis, extent in enumerate(grid.elts):
            message = self._extent(module, axis, extent)
            if message:
                yield self.finding(module, extent, f"axis {axis} of the grid is {message}")

    def _extent(self, module: Module, axis: int, extent: ast.expr) -> str | None:
        for value in alternatives(module, extent):
            if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
                return f"{module.source(value)}, which is a float; use ct.cdiv"
        values = integers(module, extent) or frozenset()
        most = 2**24 - 1 if axis == 0 else 65535
        wrong = [value for value in values if not 1 <= value <= most]
        return f"{wrong[0]}; it must lie between 1 and {most}" if wrong else None


class GridAxisLimit(Rule):
    """Size of a tensor as the second or third extent of a grid, which end at 65535."""

    code = "TW304"
    severity = Severity.WARNING
    why = (
        "Along the second and third axis a grid has at most 65535 blocks. A size taken from a tensor works in every "
        "small test, and raises `Grid[1] is too big` for the first larger one."
    )
    advice = "Put it on the first axis, which goes to 2^24 - 1, or fold it into that one and divide in the kernel."
    VALID = (
        _KERNEL + "    TILE = 1024\n    grid = (ct.cdiv(x.numel(), TILE), 1, 1)\n" + _LAUNCH,
        _KERNEL + "    TILE = 1024\n    grid = (x.shape[0], min(65535, x.shape[1]))\n" + _LAUNCH,
    )
    INVALID = (_KERNEL + "    TILE = 1024\n    grid = (1, x.numel())\n" + _LAUNCH,)

    def check(self, module: Module) -> Iterator[Finding]:
        seen: set[ast.expr] = set()
        for launch in module.launches:
            for axis, extent in axes(module, launch):
                if axis == 0 or extent in seen or not _is_size(module, extent):
                    continue
                seen.add(extent)
                if "65535" in module.text or "65_535" in module.text or "2**16" in module.text:
                    continue  # the limit is thought of
                few = any(_FEW.search(text) for text in re.findall(r"\w+", module.source(extent)))
                yield self.finding(
                    module,
                    extent,
                    f"axis {axis} of the grid is {ast.unparse(extent)}, a size that may exceed 65535",
                    severity=Severity.INFO if few else None,
                )


def _is_size(module: Module, extent: ast.expr) -> bool:
    return is_dimension(module, extent) and division(module, extent) is None


def _said(module: Module, node: ast.expr) -> str:
    """An expression with the integers that it can be."""
    text = ast.unparse(node)
    values = integers(module, node)
    if values is None or isinstance(node, ast.Constant):
        return text
    return f"{text} ({' or '.join(map(str, sorted(values)[:3]))})"


def _remainder_is_known(module: Module, found: Division) -> bool:
    """Whether the module looks anywhere at a remainder of this size, or of a division by this block."""
    size, block, values = symbol(module, found.size), symbol(module, found.block), integers(module, found.block)
    return any(
        symbol(module, node.left) == size
        or symbol(module, node.right) == block
        or (values is not None and integers(module, node.right) == values)
        for node in module.nodes(ast.BinOp)
        if isinstance(node.op, ast.Mod)
    )
