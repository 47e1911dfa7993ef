"""Rules about the tuple of arguments of a launch."""

import ast
from collections.abc import Iterator
from collections.abc import Sequence
from itertools import pairwise

from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.hosts.calls import calls
from tilewright.rules.hosts.touched import loaded
from tilewright.rules.hosts.touched import stored
from tilewright.rules.hosts.values import resolved
from tilewright.rules.kernels import Kernel
from tilewright.rules.launches import Launch
from tilewright.rules.rule import Proof
from tilewright.rules.rule import Rule
from tilewright.rules.source import Module

_KERNEL = """
import cuda.tile as ct
import torch

ConstInt = ct.Constant[int]


@ct.kernel
def _subtract_kernel(A, B, Out, TILE: ConstInt):
    ta = ct.load(A, (ct.bid(0),), (TILE,))
    tb = ct.load(B, (ct.bid(0),), (TILE,))
    ct.store(Out, (ct.bid(0),), ta - tb)


def subtract(a, b):
    out = torch.empty_like(a)
    if out.numel() == 0:
        return out
    TILE = 1024
    grid = (ct.cdiv(a.numel(), TILE),)
    stream = torch.cuda.current_stream(a.device)
"""
_LAUNCHED = _KERNEL.replace(
    "def subtract(a, b):",
    "def _launch(kernel, grid, *tensors):\n"
    "    ct.launch(torch.cuda.current_stream(), grid, kernel, (*tensors, 1024))\n\n\ndef subtract(a, b):",
)
_HELPED = _KERNEL.replace(
    "@ct.kernel",
    "def _difference(A, B, TILE):\n"
    "    return ct.load(A, (ct.bid(0),), (TILE,)) - ct.load(B, (ct.bid(0),), (TILE,))\n\n\n@ct.kernel",
).replace(
    "    ta = ct.load(A, (ct.bid(0),), (TILE,))\n    tb = ct.load(B, (ct.bid(0),), (TILE,))\n"
    "    ct.store(Out, (ct.bid(0),), ta - tb)\n",
    "    ct.store(Out, (ct.bid(0),), _difference(B, A, TILE))\n",
)


class LaunchArity(Rule):
    """Launch with more or fewer arguments than the kernel has parameters."""

    code = "TW305"
    severity = Severity.ERROR
    why = (
        "A launch binds its tuple to the kernel's parameters by position and knows no defaults: any other number "
        "of arguments is a TypeError at the first launch."
    )
    advice = "Pass one argument for each parameter, in their order; defaults of a kernel do not count."
    VALID = (_KERNEL + "    ct.launch(stream, grid, _subtract_kernel, (a, b, out, TILE))\n    return out\n",)
    INVALID = (
        _KERNEL + "    ct.launch(stream, grid, _subtract_kernel, (a, b, out))\n    return out\n",
        _KERNEL + "    ct.launch(stream, grid, _subtract_kernel, (a, b, out, a.numel(), TILE))\n    return out\n",
        _KERNEL + "    ct.launch(stream, grid, _subtract_kernel, [a, b, out, TILE])\n    return out\n",
        _KERNEL + "    ct.launch(stream, grid, _subtract_kernel, (a))\n    return out\n",
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for launch in module.launches:
            written = _written(launch)
            if isinstance(written, ast.List):
                text = module.source(written)
                fix = Fix("Make it a tuple", (module.replacement(written, f"({text[1:-1].strip()})"),))
                message = "the arguments are a list; they must be a tuple"
                yield self.finding(module, written, message, fix=fix if len(written.elts) > 1 else None)
                continue
            for kernel in launch.kernels:
                wrong = _arity(module, launch, kernel)
                if wrong:
                    yield self.finding(module, written or launch.node, wrong)


def _written(launch: Launch) -> ast.expr | None:
    if launch.search:
        return None
    if len(launch.node.args) > 3:
        return launch.node.args[3]
    return next((each.value for each in launch.node.keywords if each.arg == "kernel_args"), None)


def _arity(module: Module, launch: Launch, kernel: Kernel) -> str | None:
    expected = len(kernel.parameters)
    written = _written(launch)
    if launch.arguments is None:
        # `(a)` is `a`
        if written is None or resolved(module, written) is not written or not _in_parentheses(module, written):
            return None
        return f"({module.source(written)}) is no tuple; {kernel.name} has {expected} parameters: write a tuple"
    if len(launch.arguments) == expected:
        return None
    names = ", ".join(each.name for each in kernel.parameters)
    return (
        f"{len(launch.arguments)} arguments for {kernel.name}, which has {expected} parameters ({names}): "
        "pass one for each"
    )


def _in_parentheses(module: Module, node: ast.expr) -> bool:
    if not isinstance(node, ast.Name):
        return False
    span = module.span(node)
    return module.lines[span.line - 1][: span.column - 1].rstrip().endswith("(")


class SwappedArguments(Rule):
    """Arguments in another order than the parameters of a kernel, or of one of its helpers."""

    code = "TW306"
    severity = Severity.ERROR
    why = (
        "Launches bind by position. Two tensors of one shape, or two sizes, in the wrong order raise no error: "
        "the kernel computes something else."
    )
    advice = "Pass the arguments in the order of the kernel's parameters."
    proof = Proof.NUMBERS
    VALID = (
        _KERNEL + "    ct.launch(stream, grid, _subtract_kernel, (a, b, out, TILE))\n    return out\n",
        _KERNEL + "    ct.launch(stream, grid, _subtract_kernel, (a, a, out, TILE))\n    return out\n",
        _LAUNCHED + "    _launch(_subtract_kernel, grid, a, b, out)\n    return out\n",
    )
    INVALID = (
        _KERNEL + "    ct.launch(stream, grid, _subtract_kernel, (b, a, out, TILE))\n    return out\n",
        _LAUNCHED + "    _launch(_subtract_kernel, grid, b, a, out)\n    return out\n",
        _KERNEL + "    sizes = (TILE,)\n    ct.launch(stream, grid, _subtract_kernel, (b, a, out, *sizes))\n"
        "    return out\n",
        _HELPED + "    ct.launch(stream, grid, _subtract_kernel, (a, b, out, TILE))\n    return out\n",
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for launch in module.launches:
            for kernel in launch.kernels:
                bound = launch.bound(kernel)
                yield from self._swaps(module, list(bound.values()), list(bound), kernel.name)
        helpers = {each.name: each for kernel in module.kernels for each in kernel.helpers}
        for call in module.nodes(ast.Call):
            if isinstance(call.func, ast.Name) and call.func.id in helpers and not call.keywords:
                names = [each.arg for each in helpers[call.func.id].args.args]
                yield from self._swaps(module, call.args, names, call.func.id)
            for given, kernel in _handed_on(module, call):
                yield from self._disorder(module, given, kernel)

    def _swaps(
        self, module: Module, given: Sequence[ast.expr], names: Sequence[str], function: str
    ) -> Iterator[Finding]:
        if len(given) != len(names):
            return
        parameters = [_plain(each) for each in names]
        arguments = [_plain(_name(each)) for each in given]
        for index, argument in enumerate(arguments):
            if not argument or parameters.count(argument) != 1 or arguments.count(argument) != 1:
                continue
            other = parameters.index(argument)
            # Only where both are somebody else's name: a part of a name that fits by chance says nothing
            if other > index and arguments[other] == parameters[index]:
                first, second = given[index], given[other]
                yield self.finding(
                    module,
                    first,
                    f"{module.source(first)} is passed for {names[index]} and {module.source(second)} "
                    f"for {names[other]} of {function}: swap them",
                    fix=_exchanged(module, first, second),
                )

    def _disorder(self, module: Module, given: Sequence[ast.expr], kernel: Kernel) -> Iterator[Finding]:
        """Neighbours that the kernel has in the other order."""
        parameters = [_plain(each.name) for each in kernel.parameters]
        for first, second in pairwise(given):
            names = _plain(_name(first)), _plain(_name(second))
            places = [parameters.index(name) for name in names if parameters.count(name) == 1]
            if len(places) == 2 and places[0] == places[1] + 1:
                said = [kernel.parameters[place].name for place in reversed(places)]
                yield self.finding(
                    module,
                    first,
                    f"{module.source(first)} is passed before {module.source(second)}, but {kernel.name} takes "
                    f"{said[0]} before {said[1]}: swap them",
                    fix=_exchanged(module, first, second),
                )


def _handed_on(module: Module, call: ast.Call) -> Iterator[tuple[Sequence[ast.expr], Kernel]]:
    """What a function that is given a kernel takes as *args, to hand it on in this order; for the first such kernel."""
    kernels = {each.name: each for each in module.kernels}
    for function in calls(module).called(call):
        count = len(function.args.posonlyargs) + len(function.args.args)
        if function.args.vararg is None or any(isinstance(each, ast.Starred) for each in call.args):
            continue
        given = [kernels[each.id] for each in call.args[:count] if isinstance(each, ast.Name) and each.id in kernels]
        yield from ((call.args[count:], kernel) for kernel in given[:1])


def _exchanged(module: Module, first: ast.expr, second: ast.expr) -> Fix:
    texts = module.source(first), module.source(second)
    edits = module.replacement(first, texts[1]), module.replacement(second, texts[0])
    return Fix(f"Swap {texts[0]} and {texts[1]}", edits)


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


class AliasedArguments(Rule):
    """One tensor for two parameters of a kernel, one of which it stores to."""

    code = "TW307"
    severity = Severity.WARNING
    why = (
        "The compiler assumes that arrays do not overlap, so it may read one after it wrote the other. In place "
        "is fine through one parameter that is both loaded and stored."
    )
    advice = "Store to a new tensor, or let the kernel load and store the same parameter."
    proof = Proof.STYLE  # an interpreter computes in order, and only some GPUs do not
    VALID = (
        _KERNEL + "    ct.launch(stream, grid, _subtract_kernel, (a, b, out, TILE))\n    return out\n",
        _KERNEL + "    ct.launch(stream, grid, _subtract_kernel, (a, a, out, TILE))\n    return out\n",
    )
    INVALID = (_KERNEL + "    ct.launch(stream, grid, _subtract_kernel, (a, b, a, TILE))\n    return a\n",)

    def check(self, module: Module) -> Iterator[Finding]:
        for launch in module.launches:
            for kernel in launch.kernels:
                yield from self._aliases(module, launch, kernel)

    def _aliases(self, module: Module, launch: Launch, kernel: Kernel) -> Iterator[Finding]:
        arguments = launch.bound(kernel)
        read, written_to = loaded(kernel, always=True), stored(kernel, always=True)
        for written in written_to:
            target = arguments.get(written)
            if not isinstance(target, ast.Name):
                continue
            for name, value in arguments.items():
                same = isinstance(value, ast.Name) and value.id == target.id
                if same and name != written and (name in read or name in written_to):
                    yield self.finding(
                        module,
                        target,
                        f"{target.id} is passed for {name} and for {written} of {kernel.name}, which stores to it: "
                        "pass a tensor of its own",
                    )
                    break
