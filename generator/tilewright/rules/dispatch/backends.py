"""Names of backends."""

import ast
import difflib
from collections.abc import Iterator

from tilewright.rules.dispatch.pairs import BACKEND
from tilewright.rules.dispatch.snippets import REGISTRATION
from tilewright.rules.dispatch.snippets import package
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.hosts.calls import calls
from tilewright.rules.project import Project
from tilewright.rules.rule import Rule
from tilewright.rules.source import Module

_KNOWN = ("cutile", "cutile-rs", "triton", "torch", "pytorch")
_ASKING = ("is_backend_available", "set_backend", "register_impl")
_LAUNCHING = """
import cuda.tile as ct
import torch

from .backend import register_impl


@ct.kernel
def _scale_kernel(X, Out, factor):
    ct.store(Out, (ct.bid(0),), ct.load(X, (ct.bid(0),), (1024,)) * factor)


@register_impl("scale", backend="{backend}")
def scale(x, factor=1.0, **kwargs):
    out = torch.empty_like(x)
    if n := x.numel():
        ct.launch(torch.cuda.current_stream(x.device), (ct.cdiv(n, 1024),), _scale_kernel, (x, out, factor))
    return out
"""
_NEAR = 0.8  # of 1: one letter is missing, or in another place


class MisspeltBackend(Rule):
    """Name of a backend that is nearly that of another one."""

    code = "TW118"
    severity = Severity.ERROR
    why = (
        "No error says that there is no such backend: what asks whether it is available is told that it is not, "
        "so modules are never imported, and tests are skipped."
    )
    advice = "Write the name as the other files do."
    VALID = (package(), package(changed={"__init__.py": REGISTRATION.replace('"cutile"', '"cudnn"')}))
    INVALID = (
        package(changed={"__init__.py": REGISTRATION.replace('"cutile"', '"cutlie"')}),
        package(changed={"test_scale.py": 'class Test_Scale:\n    _backends = ["cutle"]\n'}),
    )

    def check_project(self, project: Project) -> Iterator[Finding]:
        """Texts that are asked for as backends, or listed as such."""
        for module in project.checked:
            for node in _named(module):
                near = difflib.get_close_matches(str(node.value), _KNOWN, 1, _NEAR)
                if near and node.value not in _KNOWN:
                    fix = Fix(f"Write {near[0]}", (module.replacement(node, f'"{near[0]}"'),))
                    said = f"there is no backend {node.value!r}; {near[0]} is meant"
                    yield self.finding(module, node, said, fix=fix)


class OtherBackend(Rule):
    """A function that launches cuTile kernels is registered for another backend."""

    code = "TW119"
    severity = Severity.ERROR
    why = (
        "The dispatcher finds nothing for cutile and falls back, if it does not raise: tests and benchmarks that "
        "ask for cutile never run the kernel, or compare a reference with itself."
    )
    advice = 'Register it with `backend="cutile"`.'
    VALID = (package(changed={"cutile.py": _LAUNCHING.format(backend="cutile")}),)
    INVALID = (package(changed={"cutile.py": _LAUNCHING.format(backend="triton")}),)

    def check_project(self, project: Project) -> Iterator[Finding]:
        """Implementations for another backend that reach a launch in their file."""
        for each in project.declarations:
            if each.backend in (None, BACKEND) or each.function is None or not project.is_checked(each.module):
                continue
            reached = calls(each.module).callees(each.function)
            launch = next((launch for launch in each.module.launches if launch.function in reached), None)
            if launch is not None:
                said = f"{each.key} launches a cuTile kernel in line {launch.node.lineno}, but is registered for "
                yield self.finding(each.module, each.node, f"{said}{each.backend}: register it for {BACKEND}")


def _named(module: Module) -> Iterator[ast.Constant]:
    found: list[ast.expr] = []
    for call in module.nodes(ast.Call):
        kind = module.names.backend(call.func)
        if kind in _ASKING:
            found += call.args[1:2] if kind == "register_impl" else call.args[:1]
        found += [each.value for each in call.keywords if each.arg == "backend"]
    for node in module.nodes(ast.Assign):
        match node:
            case ast.Assign(targets=[ast.Name(id="_backends")], value=ast.List(elts=elements)):
                found += elements
    yield from (each for each in found if isinstance(each, ast.Constant) and isinstance(each.value, str))
