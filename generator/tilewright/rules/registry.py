"""Every rule, found in the folders of rules: a new module there needs no list to be edited."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from tilewright.rules import benchmarks
from tilewright.rules import dispatch
from tilewright.rules import files
from tilewright.rules import hosts
from tilewright.rules import kernel
from tilewright.rules import tests
from tilewright.rules.rule import Rule

_GROUPS = (files, dispatch, kernel, hosts, tests, benchmarks)


@cache
def all_rules() -> tuple[Rule, ...]:
    """One instance of every rule, by code."""
    found: dict[str, Rule] = {}
    for group in _GROUPS:
        for module in sorted(iter_modules(group.__path__), key=lambda each: each.name):
            for kind in vars(import_module(f"{group.__name__}.{module.name}")).values():
                if isinstance(kind, type) and issubclass(kind, Rule) and "code" in vars(kind):
                    known = found.setdefault(kind.code, kind())
                    assert type(known) is kind, f"{kind.__name__} and {type(known).__name__} are both {kind.code}"
    return tuple(found[code] for code in sorted(found))
