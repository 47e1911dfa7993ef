"""Rules about the grid of a launch."""

import ast
import re
from collections.abc import Iterator

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.hosts.calls import calls
from tilewright.rules.hosts.examples import KERNEL
from tilewright.rules.hosts.grids import Division
from tilewright.rules.hosts.grids import axes
from tilewright.rules.hosts.grids import differ
from tilewright.rules.hosts.grids import division
from tilewright.rules.hosts.grids import tiles
from tilewright.rules.hosts.values import integers
from tilewright.rules.hosts.values import is_argument
from tilewright.rules.hosts.values import is_dimension
from tilewright.rules.hosts.values import symbol
from tilewright.rules.kernels import Kernel
from tilewright.rules.launches import Launch
from tilewright.rules.rule import Proof
from tilewright.rules.rule import Rule
from tilewright.rules.source import Module

_BLOCK = re.compile(r"(?i)tile|block")

_DOUBLE = (
    KERNEL
    + """def double(x):
    if x.numel() == 0:
        return x
    x = x.contiguous().view(-1)
    y = torch.empty_like(x)
"""
)
_LAUNCH = """    ct.launch(torch.cuda.current_stream(x.device), grid, _double_kernel, (x, y, TILE))
    return y
"""


def _blocks(module: Module, launch: Launch) -> Iterator[tuple[Kernel, int, Division, ast.expr]]:
    """Kernel, axis, division and the size that the kernel takes a block of the axis to have."""
    for kernel in launch.kernels:
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
        "The grid and the kernel must agree on how much one block does. Where the grid divides by a larger "
        "number, the last elements are never computed; where it divides by a smaller one, blocks lie wholly "
        "outside the array, which is undefined. Neither raises an error."
    )
    advice = "Divide by the variable that is passed to the kernel."
    proof = Proof.NUMBERS
    VALID = (
        _DOUBLE + "    TILE = 1024\n    grid = (ct.cdiv(x.numel(), TILE),)\n" + _LAUNCH,
        _DOUBLE + "    TILE = 1024 if x.numel() < 1 << 20 else 4096\n"
        "    grid = ((x.numel() + TILE - 1) // TILE,)\n" + _LAUNCH,
    )
    INVALID = (
        _DOUBLE + "    TILE = 512\n    grid = ((x.numel() + 1023) // 1024,)\n" + _LAUNCH,
        _DOUBLE + "    TILE = 256\n    grid = (ct.cdiv(x.numel(), 512), 1, 1)\n" + _LAUNCH,
        _DOUBLE + "    TILE = 1024\n    if x.numel() > 1024:\n        TILE = 256\n"
        "    grid = (ct.cdiv(x.numel(), 1024),)\n" + _LAUNCH,
        _DOUBLE + "    TILE = 1024\n    grid = ((x.numel() + 255) // TILE,)\n" + _LAUNCH,
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
                        f"{kernel.name} is {_said(module, passed)}: divide by {ast.unparse(passed)}",
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
                        f"{_said(module, rounded.block)}: use one of them for both",
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
        "`n // BLOCK` counts whole blocks only: where BLOCK does not divide n, the elements behind the last whole"
        " block stay as they were in memory, and no error says so."
    )
    advice = "Use ct.cdiv(n, BLOCK), or refuse sizes that BLOCK does not divide."
    proof = Proof.NUMBERS
    VALID = (
        _DOUBLE + "    TILE = 1024\n    grid = (ct.cdiv(x.numel(), TILE),)\n" + _LAUNCH,
        _DOUBLE + "    TILE = 1024\n    if x.numel() % TILE:\n"
        "        raise ValueError('the number of elements must be a multiple of 1024')\n"
        "    grid = (x.numel() // TILE,)\n" + _LAUNCH,
    )
    INVALID = (
        _DOUBLE + "    TILE = 1024\n    grid = (x.numel() // TILE,)\n" + _LAUNCH,
        _DOUBLE
        + "    TILE = 1024\n    n = x.numel()\n    blocks = n // TILE\n    grid = (max(1, blocks),)\n"
        + _LAUNCH,
    )

    def check(self, module: Module) -> Iterator[Finding]:
        seen: set[ast.expr] = set()
        for axis, found in self._down(module):
            if found.node not in seen and not _remainder_is_known(module, found):
                seen.add(found.node)
                yield self.finding(
                    module,
                    found.node,
                    f"axis {axis} of the grid is {ast.unparse(found.node)}, rounded down: the last partial block is "
                    "left out; round up with ct.cdiv",
                    fix=self._fix(module, found),
                )

    def _down(self, module: Module) -> Iterator[tuple[int, Division]]:
        """Divisions that round down, by the block that a kernel gets or by what is called a block."""
        for launch in module.launches:
            for _, axis, found, passed in _blocks(module, launch):
                same = symbol(module, found.block) == symbol(module, passed)
                if not found.up and is_dimension(module, found.size) and (same or _is_equal(module, found, passed)):
                    yield axis, found
            for axis, extent in axes(module, launch):
                for factor in _factors(module, extent):
                    counted = division(module, factor)
                    if counted is None or counted.up or not _is_size(module, counted.size):
                        continue
                    if isinstance(counted.block, ast.Name) and _BLOCK.search(counted.block.id):
                        yield axis, counted

    def _fix(self, module: Module, found: Division) -> Fix | None:
        tile = next((each for each in ("ct", "cuda.tile") if module.names.resolve(ast.Name(each)) == "cuda.tile"), None)
        if tile is None:
            return None
        text = f"{tile}.cdiv({module.source(found.size)}, {module.source(found.block)})"
        return Fix("Round up", (module.replacement(found.node, text),))


def _is_equal(module: Module, found: Division, passed: ast.expr) -> bool:
    return integers(module, passed) is not None and not differ(module, found.block, passed)


def _factors(module: Module, extent: ast.expr) -> list[ast.expr]:
    """What an extent of a grid is the product of."""
    if isinstance(extent, ast.BinOp) and isinstance(extent.op, ast.Mult):
        return [*_factors(module, extent.left), *_factors(module, extent.right)]
    return [extent]


def _is_size(module: Module, node: ast.expr) -> bool:
    """Whether an expression is a size of a tensor, or a parameter that may be one."""
    return is_dimension(module, node) or (isinstance(node, ast.Name) and is_argument(module, node))


def _said(module: Module, node: ast.expr) -> str:
    """An expression with the integers that it can be."""
    text = ast.unparse(node)
    values = integers(module, node)
    if values is None or isinstance(node, ast.Constant):
        return text
    return f"{text} ({' or '.join(map(str, sorted(values)[:3]))})"


def _remainder_is_known(module: Module, found: Division) -> bool:
    """Whether the function or its callers look at a remainder of this size, or of a division by this block."""
    size, block, values = symbol(module, found.size), symbol(module, found.block), integers(module, found.block)
    function = module.function_of(found.node)
    around = calls(module).callers(function) if function is not None else []
    if isinstance(found.block, ast.Attribute):  # of a candidate, which another function may have sorted out
        rights = [ast.unparse(node.right) for node in module.nodes(ast.BinOp) if isinstance(node.op, ast.Mod)]
        if any(right.rpartition(".")[2].lower() == found.block.attr.lower() for right in rights):
            return True
    return any(
        symbol(module, node.left) == size
        or symbol(module, node.right) == block
        or (values is not None and integers(module, node.right) == values)
        for node in module.nodes(ast.BinOp)
        if isinstance(node.op, ast.Mod) and module.function_of(node) in around
    )
