"""Rules about grids that a launch refuses."""

import ast
import re
from collections.abc import Iterator

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.hosts.examples import KERNEL
from tilewright.rules.hosts.grids import axes
from tilewright.rules.hosts.grids import division
from tilewright.rules.hosts.values import alternatives
from tilewright.rules.hosts.values import integers
from tilewright.rules.hosts.values import is_dimension
from tilewright.rules.hosts.values import resolved
from tilewright.rules.rule import Rule
from tilewright.rules.source import Module

_FEW = re.compile(r"(?i)head|batch|group|expert|^(b|bs|bsz|h|g)$")  # names of sizes that are small in practice

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


_ROWS = """
import cuda.tile as ct
import torch

ConstInt = ct.Constant[int]


@ct.kernel
def _double_kernel(X, Y, TILE: ConstInt):
    tx = ct.load(X, (ct.bid({row}), ct.bid({column})), (1, TILE))
    ct.store(Y, (ct.bid({row}), ct.bid({column})), tx * 2)


def double(x):
    x = x.reshape(1, -1) if x.ndim == 1 else x
    y = torch.empty_like(x)
    if y.numel():
        ct.launch(torch.cuda.current_stream(x.device), {grid}, _double_kernel, (x, y, 1024))
    return y
"""


class GridForm(Rule):
    """Grid that no launch accepts."""

    code = "TW303"
    severity = Severity.ERROR
    why = (
        "A grid is a tuple of at most three Python integers from 1 on. The first may be up to 2^24 - 1, the "
        "others up to 65535. Everything else is an error at the launch, some of them only deep in the driver."
    )
    advice = "Pass a tuple of one to three positive integers; put the largest extent first."
    VALID = (
        _DOUBLE + "    TILE = 1024\n    grid = (ct.cdiv(x.numel(), TILE), 1, 1)\n" + _LAUNCH,
        _DOUBLE + "    TILE = 1024\n    blocks = ct.cdiv(x.numel(), TILE)\n    grid = (blocks,)\n" + _LAUNCH,
    )
    INVALID = (
        _DOUBLE + "    TILE = 1024\n    grid = ct.cdiv(x.numel(), TILE)\n" + _LAUNCH,
        _DOUBLE + "    TILE = 1024\n    grid = [ct.cdiv(x.numel(), TILE)]\n" + _LAUNCH,
        _DOUBLE + "    TILE = 1024\n    grid = (ct.cdiv(x.numel(), TILE), 1, 1, 1)\n" + _LAUNCH,
        _DOUBLE + "    TILE = 1024\n    grid = (x.numel() / TILE,)\n" + _LAUNCH,
        _DOUBLE + "    TILE = 1024\n    grid = (ct.cdiv(x.numel(), TILE), 0)\n" + _LAUNCH,
        _DOUBLE + "    TILE = 1024\n    grid = (1, 1 << 16)\n" + _LAUNCH,
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
            elif _is_number(module, grid):
                text = ast.unparse(grid)
                fix = Fix("Make it a tuple", (module.replacement(grid, f"({text},)"),))
                yield self.finding(module, grid, f"the grid is the number {text}; it must be a tuple", fix=fix)
            return
        if any(isinstance(each, ast.Starred) for each in grid.elts):
            return
        if len(grid.elts) > 3:
            yield self.finding(module, grid, f"the grid has {len(grid.elts)} axes; it must have at most three")
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


def _is_number(module: Module, grid: ast.expr) -> bool:
    """Whether what is passed as a grid is certainly one number."""
    match grid:
        case ast.Constant(value=int()):
            return True
        case ast.BinOp(op=ast.Mult() | ast.FloorDiv(), left=left, right=right):
            return not isinstance(left, ast.Tuple) and not isinstance(right, ast.Tuple)
        case ast.Call(func=ast.Name(id="min" | "max" | "int")):
            return True
    return division(module, grid) is not None


class GridAxisLimit(Rule):
    """Size of a tensor as the second or third extent of a grid, which end at 65535."""

    code = "TW304"
    severity = Severity.WARNING
    why = (
        "Along the second and third axis a grid has at most 65535 blocks. A size taken from a tensor works in "
        "every small test, and raises `Grid[1] is too big` for the first larger one."
    )
    advice = "Put it on the first axis, which goes to 2^24 - 1, or fold it into that one and divide in the kernel."
    VALID = (
        _DOUBLE + "    TILE = 1024\n    grid = (ct.cdiv(x.numel(), TILE), 1, 1)\n" + _LAUNCH,
        _ROWS.format(row=0, column=1, grid="(x.shape[0], ct.cdiv(x.shape[1], 1024))"),
    )
    INVALID = (
        _ROWS.format(row=1, column=0, grid="(ct.cdiv(x.shape[1], 1024), x.shape[0])"),
        _ROWS.format(row=1, column=0, grid="(ct.cdiv(x.shape[1], 1024), ct.cdiv(x.shape[0], rows))").replace(
            "    y = ", "    rows = min(8, 1024 // x.shape[1])\n    y = "
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        seen: set[ast.expr] = set()
        for launch in module.launches:
            for axis, extent in axes(module, launch):
                if axis == 0 or extent in seen or not _is_size(module, extent):
                    continue
                seen.add(extent)
                if any(limit in module.text for limit in ("65535", "65_535", "2**16 - 1")):
                    continue  # the limit is thought of
                text = ast.unparse(extent)
                few = ".shape" in text or any(_FEW.search(name) for name in re.findall(r"\w+", text))
                yield self.finding(
                    module,
                    extent,
                    f"axis {axis} of the grid is {text}, a size that may exceed 65535: put it on axis 0",
                    severity=Severity.INFO if few else None,
                )


def _is_size(module: Module, extent: ast.expr) -> bool:
    """Whether an extent is a size, or counts tiles of it that may have one element only."""
    counted = division(module, extent)
    if counted is None:
        return is_dimension(module, extent)
    return is_dimension(module, counted.size) and _may_be_one(module, counted.block)


def _may_be_one(module: Module, block: ast.expr) -> bool:
    """Whether a block shrinks to one element where something else grows: `min(rows, 2048 // columns)`."""
    match resolved(module, block):
        case ast.Call(func=ast.Name(id="min"), args=arguments):
            return any(_may_be_one(module, each) for each in arguments)
        case ast.BinOp(op=ast.FloorDiv(), left=left, right=right):
            return integers(module, left) is not None and integers(module, right) is None
    return integers(module, block) == frozenset([1])
