"""Rule about searches that change what they are to compute."""

import ast
from collections.abc import Iterator

from tilewright.rules.definitions import definitions
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Severity
from tilewright.rules.hosts.examples import COMPLETE_SEARCH
from tilewright.rules.hosts.touched import added
from tilewright.rules.hosts.touched import loaded
from tilewright.rules.hosts.touched import stored
from tilewright.rules.hosts.walking import walk
from tilewright.rules.launches import Launch
from tilewright.rules.rule import Proof
from tilewright.rules.rule import Rule
from tilewright.rules.source import Module

_IN_PLACE = COMPLETE_SEARCH.replace("def double(x):\n    y = torch.empty_like(x)\n", "def double(x, y):\n").replace(
    "(TILE,)) * 2", "(TILE,)) * 2 + ct.load(Y, (ct.bid(0),), (TILE,))"
)
_COPIED = _IN_PLACE.replace("lambda occupancy: (x, y, n, 1024)", "lambda occupancy: (x, y.clone(), n, 1024)")


class TunedInPlace(Rule):
    """Search that runs a kernel again and again on what it accumulates to."""

    code = "TW326"
    severity = Severity.ERROR
    why = (
        "A search runs every candidate many times. A kernel that reads what it stores, or adds to it, has changed"
        " the tensor by then: the first call gives another result than all later ones."
    )
    advice = "Give the search a copy (y.clone()), and launch the best candidate on the tensor itself."
    proof = Proof.NUMBERS
    VALID = (COMPLETE_SEARCH, _COPIED)
    INVALID = (_IN_PLACE,)

    def check(self, module: Module) -> Iterator[Finding]:
        for launch in module.launches:
            if launch.search:
                yield from self._changed(module, launch)

    def _changed(self, module: Module, launch: Launch) -> Iterator[Finding]:
        for kernel in launch.kernels:
            bound = launch.bound(kernel)
            for name in sorted((loaded(kernel, always=True) & stored(kernel, always=True)) | added(kernel)):
                value = bound.get(name)
                if isinstance(value, ast.Name) and _is_given(module, launch, value) and not _is_reset(launch, value.id):
                    said = (
                        f"{kernel.name} reads and writes {name}, and the search runs it on {value.id} itself: "
                        "pass a clone"
                    )
                    yield self.finding(module, launch.node.func, said)


def _is_given(module: Module, launch: Launch, name: ast.Name) -> bool:
    """Whether a tensor comes from the caller of the function that searches."""
    bindings = definitions(module).reaching(name)
    return bool(bindings) and all(
        each.parameter and module.function_of(each.node) is launch.function for each in bindings
    )


def _is_reset(launch: Launch, name: str) -> bool:
    """Whether the function gives the tensor a new content itself, before a candidate or after the search."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in ("zero_", "fill_", "copy_")
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        for node in (walk(launch.function) if launch.function is not None else ())
    )
