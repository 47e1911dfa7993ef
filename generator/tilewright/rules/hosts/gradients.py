"""Rule about the gradients that an autograd function returns."""

import ast
from collections.abc import Iterator
from collections.abc import Sequence

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.hosts.walking import walk
from tilewright.rules.rule import Proof
from tilewright.rules.rule import Rule
from tilewright.rules.source import Module

_AFFINE = """
import torch


class Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return x * weight + bias

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        dx, dw, db = dy * weight, dy * x, dy.clone()
        return {returned}
"""


class GradientOrder(Rule):
    """Gradients that backward returns are not those of forward's inputs, one by one."""

    code = "TW327"
    severity = Severity.ERROR
    why = (
        "Autograd binds what backward returns to the inputs of forward by position. Two gradients of one shape in the "
        "wrong order raise no error, and train the wrong parameter; another number of them is a RuntimeError."
    )
    advice = "Return one gradient for each input of forward, in their order, and None for what has none."
    proof = Proof.NUMBERS
    VALID = (
        _AFFINE.format(returned="dx, dw, db"),
        _AFFINE.format(returned="dx, None, db"),
        _AFFINE.format(returned="dx, dw, db, None"),
        _AFFINE.replace("ctx, x, weight, bias", "ctx, x, weight, *bias").format(returned="dx, dw"),
    )
    INVALID = (
        _AFFINE.format(returned="dx, db, dw"),
        _AFFINE.format(returned="dx, dw"),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for each in module.nodes(ast.ClassDef):
            if any(module.names.torch(base) == "autograd.Function" for base in each.bases):
                yield from self._check_class(module, each)

    def _check_class(self, module: Module, function: ast.ClassDef) -> Iterator[Finding]:
        methods = {each.name: each for each in function.body if isinstance(each, ast.FunctionDef)}
        if not {"forward", "backward"} <= methods.keys() or methods["forward"].args.vararg is not None:
            return
        inputs = [each.arg for each in (*methods["forward"].args.posonlyargs, *methods["forward"].args.args)]
        if "setup_context" not in methods:
            del inputs[:1]  # the context
        for node in walk(methods["backward"]):
            if not isinstance(node, ast.Return) or module.function_of(node) is not methods["backward"]:
                continue
            match node.value:
                case ast.Tuple(elts=returned) if not any(isinstance(each, ast.Starred) for each in returned):
                    required = len(inputs) - len(methods["forward"].args.defaults)
                    if len(returned) < required or not all(map(_is_none, returned[len(inputs) :])):
                        said = f"{function.name}.backward returns {len(returned)} gradients, but forward has "
                        yield self.finding(
                            module, node.value, f"{said}{len(inputs)} inputs ({', '.join(inputs)}): return one for each"
                        )
                    else:
                        yield from self._exchanged(module, returned[: len(inputs)], inputs)

    def _exchanged(self, module: Module, returned: Sequence[ast.expr], inputs: Sequence[str]) -> Iterator[Finding]:
        meant = [_input_of(each.id, inputs) if isinstance(each, ast.Name) else None for each in returned]
        for place, other in enumerate(meant):
            if other is not None and other > place and meant[other] == place:
                first, second = module.source(returned[place]), module.source(returned[other])
                edits = module.replacement(returned[place], second), module.replacement(returned[other], first)
                yield self.finding(
                    module,
                    returned[place],
                    f"{first} is returned for {inputs[place]} and {second} for {inputs[other]}: swap them",
                    fix=Fix(f"Swap {first} and {second}", edits),
                )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _input_of(gradient: str, inputs: Sequence[str]) -> int | None:
    """The place of the input that a gradient is named after (`dw`, `d_weight`, `grad_weight`); None if not one."""
    name = gradient.lower()
    for prefix in ("grad_", "d_", "d"):
        if name.startswith(prefix) and name != prefix:
            rest = name.removeprefix(prefix)
            same = [place for place, each in enumerate(inputs) if each.lower() == rest]
            named = same or [place for place, each in enumerate(inputs) if each.lower().startswith(rest)]
            return named[0] if len(named) == 1 else None
    return None
