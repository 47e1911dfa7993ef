"""Rule about quotients that can be zero."""

import ast
from collections.abc import Iterator

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.hosts.examples import KERNEL
from tilewright.rules.hosts.examples import LAUNCH
from tilewright.rules.hosts.grids import axes
from tilewright.rules.hosts.grids import division
from tilewright.rules.hosts.values import alternatives
from tilewright.rules.hosts.values import integers
from tilewright.rules.hosts.values import is_dimension
from tilewright.rules.hosts.values import resolved
from tilewright.rules.hosts.walking import walk
from tilewright.rules.rule import Rule
from tilewright.rules.source import Module


class ZeroDivisor(Rule):
    """Quotient that is zero for large tensors, used as a divisor or as a grid."""

    code = "TW309"
    severity = Severity.ERROR
    why = (
        "An integer division of a limited number (multiprocessors, elements of a block) by a size gives 0 as soon"
        " as the size is larger. What divides by it raises ZeroDivisionError, and a grid of 0 is refused, but "
        "only for sizes that no small test has."
    )
    advice = "Write max(1, a // b)."
    VALID = (
        KERNEL + "def splits(x):\n    n = torch.cuda.get_device_properties(x.device).multi_processor_count\n"
        "    parts = max(1, n // x.shape[0])\n    return x.shape[1] // parts\n",
        KERNEL + "def width(x):\n    groups = x.shape[1] // x.shape[0]\n    return x.shape[1] // groups\n",
    )
    INVALID = (
        KERNEL + "def splits(x):\n    n = torch.cuda.get_device_properties(x.device).multi_processor_count\n"
        "    parts = n // x.shape[0]\n    return (x.shape[1] + parts - 1) // parts\n",
        KERNEL + "def double(x):\n    if x.numel() == 0:\n        return x\n    y = torch.empty_like(x)\n"
        "    rows = 4096 // x.shape[-1]\n    grid = (ct.cdiv(x.shape[0], rows),)\n"
        f"    {LAUNCH}\n    return y\n",
        KERNEL + "def double(x):\n    y = torch.empty_like(x)\n"
        "    n = torch.cuda.get_device_properties(x.device).multi_processor_count\n"
        f"    grid = (n // x.shape[0],)\n    {LAUNCH}\n    return y\n",
        KERNEL + "def chunks(shape, tile):\n    blocks = ct.cdiv(shape[0], tile)\n"
        "    return ct.cdiv(shape[1], 512 // blocks)\n",
    )

    def check(self, module: Module) -> Iterator[Finding]:
        seen: set[ast.expr] = set()
        for divisor in _divisors(module):
            for value in alternatives(module, divisor):
                if value in seen or not _small_over_size(module, value):
                    continue
                if isinstance(divisor, ast.Name) and _is_looked_at(module, divisor):
                    continue
                seen.add(value)
                yield self._zero(module, value, f"line {divisor.lineno} divides by it")
        for launch in module.launches:
            for axis, extent in axes(module, launch):
                if extent not in seen and _small_over_size(module, extent):
                    seen.add(extent)
                    yield self._zero(module, extent, f"it is axis {axis} of the grid")

    def _zero(self, module: Module, quotient: ast.expr, use: str) -> Finding:
        size = quotient.right if isinstance(quotient, ast.BinOp) else quotient
        text = module.source(quotient)
        said = f"{ast.unparse(quotient)} is 0 where {ast.unparse(size)} is larger, and {use}: write max(1, ...)"
        fix = Fix("Make it at least 1", (module.replacement(quotient, f"max(1, {text})"),))
        return self.finding(module, quotient, said, fix=fix)


def _divisors(module: Module) -> Iterator[ast.expr]:
    for node in module.nodes(ast.BinOp):
        if isinstance(node.op, ast.FloorDiv | ast.Mod | ast.Div):
            yield node.right
    for call in module.nodes(ast.Call):
        found = division(module, call)
        if found is not None and found.node is call:
            yield found.block


def _small_over_size(module: Module, node: ast.expr) -> bool:
    match node:
        case ast.BinOp(op=ast.FloorDiv(), left=left, right=right):
            return _is_limited(module, left) and _is_product_of_sizes(module, right)
    return False


def _is_limited(module: Module, node: ast.expr) -> bool:
    """Multiprocessors of a device, or a number that is written down."""
    known = resolved(module, node)
    if isinstance(known, ast.Attribute):
        return known.attr == "multi_processor_count"
    return integers(module, node) is not None


def _is_product_of_sizes(module: Module, node: ast.expr) -> bool:
    known = resolved(module, node)
    if isinstance(known, ast.BinOp) and isinstance(known.op, ast.Mult):
        return all(_is_product_of_sizes(module, each) for each in (known.left, known.right))
    blocks = division(module, known)
    if blocks is not None and blocks.up:
        return _is_product_of_sizes(module, blocks.size)
    return is_dimension(module, known)


def _is_looked_at(module: Module, name: ast.Name) -> bool:
    """Whether the function tests the quotient or bounds it from below."""
    function = module.function_of(name)
    for node in walk(function) if function is not None else ():
        parts: list[ast.AST] = []
        if isinstance(node, ast.If | ast.IfExp | ast.Assert):
            parts = list(ast.walk(node.test))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "max":
            parts = list(node.args)
        if any(isinstance(each, ast.Name) and each.id == name.id for each in parts):
            return True
    return False
