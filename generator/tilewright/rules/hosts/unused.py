"""Rule about arguments that an operator takes and ignores."""

import ast
import re
from collections.abc import Iterator

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.hosts.calls import calls
from tilewright.rules.hosts.examples import KERNEL
from tilewright.rules.hosts.walking import walk
from tilewright.rules.rule import Proof
from tilewright.rules.rule import Rule
from tilewright.rules.source import Function
from tilewright.rules.source import Module

_EXAMPLE = """
from .backend import register_impl


def _launch(x, y, tile):
    if n := x.numel():
        ct.launch(torch.cuda.current_stream(x.device), (ct.cdiv(n, {tile}),), _double_kernel, (x, y, {tile}))


@register_impl("twice", backend="cutile")
def twice(x, tile=1024, **kwargs):
    y = torch.empty_like(x)
    _launch(x, y, tile)
    return y
"""


class IgnoredArgument(Rule):
    """An argument of an operator that its implementation, or a function it is handed on to, does not read."""

    code = "TW328"
    severity = Severity.WARNING
    why = "A caller who passes it gets no error, and a result that does not depend on it."
    advice = "Use it, remove it, or refuse what is not supported; the docstring may say that it is unused."
    proof = Proof.STYLE
    VALID = (
        KERNEL + _EXAMPLE.format(tile="tile"),
        KERNEL
        + _EXAMPLE.format(tile="1024").replace(
            "    y =",
            '    """Double x; what else is given is passed on.\n\n'
            '    tile: unused, kept for callers of the first version\n    """\n    y =',
        ),
    )
    INVALID = (KERNEL + _EXAMPLE.format(tile="1024"),)

    def check(self, module: Module) -> Iterator[Finding]:
        for each in module.declarations:
            if each.backend != "cutile" or each.function is None:
                continue
            offered = {argument.arg for argument in _arguments(each.function)}
            for function in calls(module).callees(each.function):
                for argument in _unread(function):
                    if argument.arg in offered and not _is_explained(argument.arg, function, each.function):
                        said = f"{function.name} does not use {argument.arg}, so what {each.key} is given for it "
                        yield self.finding(module, argument, f"{said}changes nothing: use or refuse it")


def _arguments(function: Function) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def _is_explained(name: str, *functions: Function) -> bool:
    """Whether a docstring says that the argument is not used."""
    texts = [ast.get_docstring(each) or "" for each in functions]
    lines = [line for text in texts for line in text.splitlines() if line.strip().startswith((f"{name}:", f"{name} "))]
    return any(re.search(r"(?i)unused|not used|ignored", line) for line in lines)


def _unread(function: Function) -> list[ast.arg]:
    """Arguments of which the name is not read anywhere in the function."""
    names = (node for node in walk(function) if isinstance(node, ast.Name))
    used = {name.id for name in names if isinstance(name.ctx, ast.Load | ast.Del)}
    return [each for each in _arguments(function) if each.arg not in used and not each.arg.startswith("_")]
