"""All files that are checked together, and those of their packages that rules about registration need besides."""

import ast
from collections.abc import Iterator
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from tilewright.rules.source import Module


class Project:
    """Modules by path and by the name under which Python imports them."""

    def __init__(self, checked: Sequence[Module], context: Sequence[Module] = ()) -> None:
        """`checked` are reported on; `context` are read only to judge them."""
        self.checked = tuple(checked)
        self.modules = (*checked, *context)

    @cached_property
    def by_name(self) -> dict[str, Module]:
        """Modules by dotted name ("my_ops.gelu.cutile"); a package is its `__init__`."""
        return {self.name(module): module for module in self.modules}

    def name(self, module: Module) -> str:
        """The dotted name: folders count as long as they are packages."""
        parts = [] if module.path.name == "__init__.py" else [module.path.stem]
        folder = module.path.parent
        while folder in self._packages:
            parts.append(folder.name)
            folder = folder.parent
        return ".".join(reversed(parts))

    def is_checked(self, module: Module) -> bool:
        """Whether findings in this module are wanted."""
        return module in self._checked

    def find(self, module: Module, meaning: str) -> tuple[Module, str] | None:
        """The module that defines what `names.resolve` gave in `module`, and the name there; None if not here."""
        origin, _, name = self.absolute(module, meaning).rpartition(".")
        found = self.by_name.get(origin)
        return (found, name) if found else None

    def absolute(self, module: Module, meaning: str) -> str:
        """A dotted name without leading dots: ".utils.f" in my_ops.gelu.cutile is "my_ops.gelu.utils.f"."""
        level = len(meaning) - len(meaning.lstrip("."))
        if not level:
            return meaning
        parts = self.name(module).split(".")
        kept = parts[: len(parts) - level + (module.path.name == "__init__.py")]
        return ".".join([*kept, meaning.lstrip(".")])

    def loaded_with(self, name: str) -> set[str]:
        """Modules that Python loads once `name` is imported; every branch of an `if` or `try` counts."""
        loaded: set[str] = set()
        waiting = [name]
        while waiting:
            name = waiting.pop()
            if name in loaded or name not in self.by_name:
                continue
            loaded.add(name)
            parts = name.split(".")
            waiting += [".".join(parts[:count]) for count in range(1, len(parts))]
            waiting += self._imported(self.by_name[name])
        return loaded

    def _imported(self, module: Module) -> Iterator[str]:
        for node in module.nodes(ast.Import):
            if module.function_of(node) is None:
                yield from (alias.name for alias in node.names)
        for each in module.nodes(ast.ImportFrom):
            if module.function_of(each) is None:
                base = self.absolute(module, "." * each.level + (each.module or "")).rstrip(".")
                yield base
                yield from (f"{base}.{alias.name}" for alias in each.names)  # each may be a module
        if any(module.names.resolve(call.func) == "pkgutil.iter_modules" for call in module.nodes(ast.Call)):
            name = self.name(module)
            yield from (each for each in self.by_name if each.rpartition(".")[0] == name and self._is_package(each))

    def _is_package(self, name: str) -> bool:
        return self.by_name[name].path.name == "__init__.py"

    @cached_property
    def _checked(self) -> set[Module]:
        return set(self.checked)

    @cached_property
    def _packages(self) -> set[Path]:
        return {module.path.parent for module in self.modules if module.path.name == "__init__.py"}
