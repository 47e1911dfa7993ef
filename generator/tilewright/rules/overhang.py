"""How one can tell that the last tile hangs over its array: by the loop, what the host rounds up, or the grid."""

import ast
from collections.abc import Iterator
from functools import cached_property

from tilewright.rules.definitions import values_of
from tilewright.rules.hosts.values import resolved
from tilewright.rules.hosts.values import symbol
from tilewright.rules.kernels import Kernel
from tilewright.rules.source import Module
from tilewright.rules.symbols import Atom
from tilewright.rules.symbols import Polynomial

_DEPTH = 12
_LIKE = ("empty_like", "zeros_like", "ones_like", "full_like")
_VIEWS: tuple[str, ...] = (
    "as_strided",
    "clone",
    "contiguous",
    "detach",
    "expand",
    "flatten",
    "permute",
    "reshape",
    "squeeze",
    "t",
)
_VIEWS += ("transpose", "unsqueeze", "view")
_POWER_NAMES = ("next_power_of_2", "next_power_of_two", "next_pow2", "next_pow_2", "_power_of_two", "power_of_two")


class Launches:
    """What the host passes to one kernel, over all of its launches."""

    def __init__(self, module: Module, kernel: Kernel) -> None:
        self.module = module
        self.kernel = kernel
        self.launches = [each for each in module.launches if kernel in each.kernels]
        self.compared: dict[Polynomial, Polynomial] = {}  # sizes of rows of places, and what these are compared with
        self._rounded: dict[str, str | None] = {}
        self._bound = [each.bound(kernel) for each in self.launches]

    def given(self, parameter: str) -> list[ast.expr]:
        """Every expression that is passed for a parameter, through plain aliases."""
        return [
            resolved(self.module, value)
            for launch, bound in zip(self.launches, self._bound, strict=True)
            if parameter in bound
            for value in values_of(self.module, bound[parameter], launch.node)
        ]

    def dtypes(self, parameter: str) -> frozenset[str] | None:
        """What the dtype of an array can be, as text: "torch.float32", "x.dtype"; None where that is not known."""
        found: set[str] = set()
        for given in self.given(parameter):
            root = self._allocation(given)
            keywords = {each.arg: each.value for each in root.keywords} if isinstance(root, ast.Call) else {}
            if "dtype" in keywords:
                found |= {ast.unparse(each) for each in values_of(self.module, keywords["dtype"], keywords["dtype"])}
            elif isinstance(root, ast.Call) and root.args and self.module.names.torch(root.func) in _LIKE:
                found.add(f"{ast.unparse(self._allocation(root.args[0]))}.dtype")
            elif isinstance(root, ast.Name):
                found.add(f"{root.id}.dtype")
            else:
                return None
        return frozenset(found) or None

    def _allocation(self, node: ast.expr) -> ast.expr:
        """The tensor of which an expression is a view or a copy."""
        for _ in range(_DEPTH):
            node = resolved(self.module, node)
            match node:
                case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in _VIEWS:
                    node = owner
                case ast.Subscript(value=owner):
                    node = owner
                case _:
                    break
        return node

    def rounded_up(self, parameter: str) -> str | None:
        """What the host rounds up to a power of two to get the parameter, where it does so for all launches."""
        if parameter not in self._rounded:
            self._rounded[parameter] = self._find_rounded(parameter)
        return self._rounded[parameter]

    def _find_rounded(self, parameter: str) -> str | None:
        given = self.given(parameter)
        found = [rounded for each in given if (rounded := power_of_two_of(each)) is not None]
        if not found or len(found) != len(given):
            return None
        texts = {symbol(self.module, each) for each in found}
        if any(self._is_guarded(text) for text in texts | {ast.unparse(each) for each in found}):
            return None
        return min(texts)

    def is_restricted(self, parameter: str) -> bool:
        """Whether the host asks for a multiple, or for one of a few sizes, of what it passes for a parameter."""
        passed = [bound[parameter] for bound in self._bound if parameter in bound]
        texts = {ast.unparse(each) for each in (*passed, *self.given(parameter))}
        return any(self._is_guarded(text) for text in texts)

    @property
    def asks_for_multiples(self) -> bool:
        """Whether the host looks at a remainder anywhere."""
        nodes = (node for condition in self._conditions for node in ast.walk(condition))
        return any(isinstance(node, ast.Mod) for node in nodes)

    def grid_rounds_up(self, axis: int, parameter: str) -> bool:
        """Whether the grid along an axis is a quotient by the parameter, rounded up."""
        for launch, bound in zip(self.launches, self._bound, strict=True):
            sizes = {symbol(self.module, bound[parameter])} if parameter in bound else set()
            grids = [] if launch.grid is None else values_of(self.module, launch.grid, launch.node)
            for grid in grids:
                if not isinstance(grid, ast.Tuple) or axis >= len(grid.elts):
                    continue
                for value in values_of(self.module, grid.elts[axis], launch.node):
                    divided = _rounded_quotient(value)
                    if divided is None:
                        continue
                    number, by = divided
                    if symbol(self.module, by) in sizes and not self._is_guarded(symbol(self.module, number)):
                        return True
        return False

    @cached_property
    def _conditions(self) -> tuple[ast.expr, ...]:
        """Tests of the host that ask for a multiple, or for one of a few sizes."""
        functions = {launch.function for launch in self.launches if launch.function is not None}
        found = []
        for node in (node for function in functions for node in ast.walk(function)):
            test = node if isinstance(node, ast.Compare) else getattr(node, "test", None)
            if isinstance(test, ast.expr) and _restricts(test):
                found.append(test)
        return tuple(found)

    @cached_property
    def _guarded(self) -> frozenset[str]:
        """All that such tests are about, as it is written."""
        nodes = (node for condition in self._conditions for node in ast.walk(condition))
        return frozenset(ast.unparse(node) for node in nodes if isinstance(node, ast.expr))

    def _is_guarded(self, text: str) -> bool:
        return text in self._guarded


def _restricts(test: ast.expr) -> bool:
    for node in ast.walk(test):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod | ast.BitAnd):
            return True
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            return True
        if isinstance(node, ast.Call) and power_of_two_of(node) is not None:
            return True
    return False


def power_of_two_of(node: ast.expr) -> ast.expr | None:
    """The number that an expression rounds up to a power of two; also below a `max` with something else."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[argument]) if name in _POWER_NAMES:
            return argument
        case ast.Call(func=ast.Name(id="max"), args=arguments):
            return next((found for each in arguments if (found := power_of_two_of(each)) is not None), None)
        case ast.Call(func=ast.Name(id="int"), args=[argument]):
            return power_of_two_of(argument)
        case ast.BinOp(
            left=ast.Constant(value=1),
            op=ast.LShift(),
            right=ast.Call(func=ast.Attribute(value=ast.BinOp(left=n, op=ast.Sub(), right=ast.Constant(value=1)))),
        ):
            return n
        case ast.BinOp(
            left=ast.Constant(value=2),
            op=ast.Pow(),
            right=ast.Call(func=ast.Attribute(value=ast.BinOp(left=n, op=ast.Sub(), right=ast.Constant(value=1)))),
        ):
            return n
        case ast.BinOp(
            left=ast.Constant(value=2),
            op=ast.Pow(),
            right=ast.Call(
                func=ast.Attribute(attr="ceil"), args=[ast.Call(func=ast.Attribute(attr="log2"), args=[n, *_])]
            ),
        ):
            return n
    return None


def _rounded_quotient(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """The two numbers of `ct.cdiv(n, b)`, `math.ceil(n / b)`, `-(-n // b)` or `(n + b - 1) // b`."""
    match node:
        case ast.Call(func=ast.Attribute(attr="cdiv") | ast.Name(id="cdiv"), args=[number, by]):
            return number, by
        case ast.Call(
            func=ast.Attribute(attr="ceil") | ast.Name(id="ceil"),
            args=[ast.BinOp(left=number, op=ast.Div(), right=by)],
        ):
            return number, by
        case ast.UnaryOp(
            op=ast.USub(), operand=ast.BinOp(left=ast.UnaryOp(operand=number), op=ast.FloorDiv(), right=by)
        ):
            return number, by
        case ast.BinOp(left=ast.BinOp(left=left, op=ast.Sub()), op=ast.FloorDiv(), right=by):
            match left:
                case ast.BinOp(left=number, op=ast.Add(), right=added) if ast.unparse(added) == ast.unparse(by):
                    return number, by
        case ast.BinOp(
            left=ast.BinOp(left=number, op=ast.Add(), right=ast.BinOp(left=added, op=ast.Sub())),
            op=ast.FloorDiv(),
            right=by,
        ) if ast.unparse(added) == ast.unparse(by):
            return number, by
        case ast.BinOp(
            left=ast.BinOp(left=number, op=ast.Add(), right=ast.Constant(value=int(added))),
            op=ast.FloorDiv(),
            right=ast.Constant(value=int(divisor)) as by,
        ) if added == divisor - 1:
            return number, by
    return None


def evidence(index: Polynomial, size: Polynomial, launches: Launches) -> tuple[str, Polynomial | None] | None:
    """Why a tile of that size at that place along an axis may hang over, and over which length; None if not known."""
    if size.number == 1:
        return None
    for quotient in _rounded(index, size):
        length = quotient.key[0]
        if isinstance(length, Polynomial) and not _is_whole(length):
            return "the loop rounds the number of tiles up", length
    bound = launches.compared.get(size)
    if bound is not None and index.has("bid", "step", "floor"):
        return "the kernel compares places along it with its length", bound
    parameter = _parameter(size)
    if parameter is None:
        return None
    if index.number == 0:
        rounded = launches.rounded_up(parameter)
        return (f"the host rounds {rounded} up to a power of two", None) if rounded else None
    atom = index.atom
    place = atom.key[0] if atom is not None and atom.kind == "bid" else None
    if isinstance(place, int) and launches.grid_rounds_up(place, parameter):
        return "the grid rounds the number of tiles up", None
    return None


def _rounded(index: Polynomial, size: Polynomial) -> Iterator[Atom]:
    return (atom for atom in index.atoms() if atom.kind == "ceil" and atom.key[1] == size)


def _is_whole(length: Polynomial) -> bool:
    """Whether a length is itself made of tile sizes, so that nothing need hang over."""
    return all(any(_names_a_tile(atom) for atom in atoms) for atoms, _ in length.terms)


def _names_a_tile(atom: Atom) -> bool:
    return atom.kind == "parameter" and any(word in str(atom.key[0]).upper() for word in ("TILE", "BLOCK", "CHUNK"))


def _parameter(size: Polynomial) -> str | None:
    atom = size.atom
    return str(atom.key[0]) if atom is not None and atom.kind == "parameter" else None
