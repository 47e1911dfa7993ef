"""Rules about autotuning and hinted kernels."""

import ast
import re
from collections.abc import Iterator

from tilewright.rules.definitions import definitions
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.hosts.examples import COMPLETE_SEARCH
from tilewright.rules.hosts.examples import search
from tilewright.rules.hosts.walking import walk
from tilewright.rules.launches import Launch
from tilewright.rules.rule import Rule
from tilewright.rules.source import Module

_BLOCK = re.compile(r"(?i)tile|block|pow")


class TuningKey(Rule):
    """Key of tuned kernels that leaves out what they were tuned for."""

    code = "TW316"
    severity = Severity.WARNING
    why = (
        "What was measured for one size, dtype, flag or device is then taken for another: slow at best, and a "
        "kernel that does not fit at worst. Which one wins depends on the order of calls."
    )
    advice = "Put every size, flag, dtype and the device that the search passes into the key."
    VALID = (COMPLETE_SEARCH, search("(tuple(x.shape), x.dtype, x.device.index)"))
    INVALID = (
        search("(x.dtype, str(x.device))"),
        search("(n, str(x.device))"),
        search("(n, x.dtype)"),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for launch in module.launches:
            key = _key(module, launch) if launch.search else None
            if key is None:
                continue
            missing = list(dict.fromkeys(_missing(module, launch, key)))
            if missing:
                yield self.finding(
                    module, key, f"the key leaves out {', '.join(missing)}, which the search depends on: add it"
                )


def _key(module: Module, launch: Launch) -> ast.Tuple | None:
    """The tuple that the result of a search is kept under, if one can be told."""
    for node in walk(launch.function) if launch.function is not None else ():
        match node:
            case ast.Assign(targets=[ast.Subscript(slice=ast.Name() as name)]):
                pass
            case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Name() as name, *_]):
                pass
            case _:
                continue
        bindings = definitions(module).reaching(name)
        if len(bindings) == 1 and isinstance(bindings[0].value, ast.Tuple):
            return bindings[0].value
    return None


def _missing(module: Module, launch: Launch, key: ast.Tuple) -> Iterator[str]:
    text = ast.unparse(key)
    known = {ast.unparse(node) for node in ast.walk(key) if isinstance(node, ast.expr)}
    for kernel in launch.kernels:
        bound = launch.bound(kernel)
        for parameter in kernel.parameters:
            value = bound.get(parameter.name)
            annotation = ast.unparse(parameter.node.annotation).lower() if parameter.node.annotation else ""
            if not parameter.constant or "float" in annotation or _BLOCK.search(parameter.name):
                continue  # a factor changes no timing, and a block follows from a size
            if not isinstance(value, ast.Name) or _is_of_candidate(module, launch, value):
                continue
            if not _is_covered(module, value, known):
                yield value.id
    if any(each in text for each in ("key", "*")):
        return
    if "dtype" not in text and "itemsize" not in text and "element_size" not in text:
        yield "the dtype"
    if "device" not in text and "capability" not in text and "arch" not in text:
        yield "the device"


def _is_of_candidate(module: Module, launch: Launch, name: ast.Name) -> bool:
    """Whether a name is a parameter of the function that makes the arguments, not of the one around it."""
    bindings = definitions(module).reaching(name)
    return any(each.parameter and module.function_of(each.node) is not launch.function for each in bindings)


def _is_covered(module: Module, node: ast.expr, known: set[str], depth: int = 8) -> bool:
    """Whether an expression follows from what a key holds."""
    if ast.unparse(node) in known or isinstance(node, ast.Constant) or depth == 0:
        return True
    match node:
        case ast.Name():
            bindings = definitions(module).reaching(node)
            if not bindings or any(each.parameter for each in bindings):
                return not bindings
            return all(each.value is None or _is_covered(module, each.value, known, depth - 1) for each in bindings)
        case ast.Attribute(value=ast.Name(id="self" | "cfg" | "config")):
            return True
        case ast.Attribute(attr="shape", value=owner):
            return _holds_size(known, owner)
        case ast.Attribute():
            return True
        case ast.Call(func=ast.Attribute(attr="size" | "numel" | "stride", value=owner)):
            return _holds_size(known, owner)
        case ast.Subscript(value=value):
            return _is_covered(module, value, known, depth - 1)
        case ast.Call(args=arguments):
            return all(_is_covered(module, each, known, depth - 1) for each in arguments)
        case ast.BinOp(left=left, right=right):
            return all(_is_covered(module, each, known, depth - 1) for each in (left, right))
        case ast.IfExp(body=body, orelse=other, test=test):
            return all(_is_covered(module, each, known, depth - 1) for each in (body, other, test))
        case ast.Compare(left=left, comparators=others):
            return all(_is_covered(module, each, known, depth - 1) for each in (left, *others))
    return True


def _holds_size(known: set[str], tensor: ast.expr) -> bool:
    """Whether a key holds any size of a tensor: which ones it needs, a reader must judge."""
    return any(
        f"{ast.unparse(tensor)}.{name}" in each for each in known for name in ("shape", "size", "numel", "stride")
    )
