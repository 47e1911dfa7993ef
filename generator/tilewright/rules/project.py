"""All files that are checked together, and those of their packages that rules about registration need besides."""

import ast
import re
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from tilewright.rules.declarations import Declaration
from tilewright.rules.source import Module

_DECLARES = re.compile(r"\b(dispatch|register_impl)\s*\(\s*(?:name\s*=\s*)?[\"']([^\"']*)[\"']")


class Project:
    """Modules by path and by the name under which Python imports them; those around are parsed when asked for."""

    def __init__(self, checked: Sequence[Module], context: Mapping[Path, str] | None = None) -> None:
        """`checked` are reported on; `context`, texts by path, is read only to judge them."""
        self.checked = tuple(checked)
        self._texts = dict(context or {}) | {module.path: module.text for module in checked}
        self._modules: dict[Path, Module | None] = {module.path: module for module in checked}

    @cached_property
    def paths(self) -> dict[str, Path]:
        """Files by dotted name ("my_ops.gelu.cutile"); a package is its `__init__`."""
        return {self._name(path): path for path in self._texts}

    def module(self, name: str) -> Module | None:
        """The module of a dotted name, or None if it is not here or does not parse."""
        path = self.paths.get(name)
        return self._parse(path) if path else None

    def name(self, module: Module) -> str:
        """The dotted name: folders count as long as they are packages."""
        return self._name(module.path)

    def is_checked(self, module: Module) -> bool:
        """Whether findings in this module are wanted."""
        return module in self._checked

    @cached_property
    def declarations(self) -> tuple[Declaration, ...]:
        """Those of the checked files, and those elsewhere that have the same keys."""
        found = [each for module in self.checked for each in module.declarations]
        keys = {each.key for each in found}
        for path, written in self._keys.items():
            if path not in self._checked_paths and any(key in keys for _, key in written):
                module = self._parse(path)
                found += [each for each in module.declarations if each.key in keys] if module else []
        return tuple(found)

    def keys_around(self, module: Module, declarator: str) -> set[str]:
        """Keys that `dispatch` or `register_impl` has in the package of a module."""
        root = self.name(module).partition(".")[0]
        return {
            key
            for name, path in self.paths.items()
            if name.partition(".")[0] == root
            for kind, key in self._keys[path]
            if kind == declarator
        }

    def absolute(self, module: Module, meaning: str) -> str:
        """A dotted name without leading dots: ".utils.f" in my_ops.gelu.cutile is "my_ops.gelu.utils.f"."""
        level = len(meaning) - len(meaning.lstrip("."))
        if not level:
            return meaning
        parts = self.name(module).split(".")
        kept = parts[: len(parts) - level + (module.path.name == "__init__.py")]
        return ".".join(filter(None, [*kept, meaning.lstrip(".")]))

    def loads(self, start: str, target: str) -> bool:
        """Whether importing the module `start` imports `target`; every branch of an `if` or `try` counts."""
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            name = waiting.pop()
            if name == target:
                return True
            if name in seen or name not in self.paths:
                continue
            seen.add(name)
            # The packages around the target last, which is first in turn: the way nearly always leads through them.
            waiting += sorted(self._imported(name), key=lambda each: f"{target}.".startswith(f"{each}."))
        return False

    def imports(self, module: Module) -> Iterator[tuple[ast.stmt, str]]:
        """What importing a module may import: the statement and a dotted name, of a module or of something in one."""
        for node in module.nodes(ast.Import):
            if module.function_of(node) is None:
                yield from ((node, alias.name) for alias in node.names)
        for each in module.nodes(ast.ImportFrom):
            if module.function_of(each) is None:
                base = self.absolute(module, "." * each.level + (each.module or ""))
                yield each, base
                yield from ((each, f"{base}.{alias.name}") for alias in each.names)

    def _imported(self, name: str) -> set[str]:
        """Modules that importing a module imports, with the packages around it."""
        if name not in self._imports:
            module = self.module(name)
            parts = name.split(".")
            found = {".".join(parts[:count]) for count in range(1, len(parts))}
            if module is not None:
                found |= {each for _, each in self.imports(module) if each in self.paths}
                if any(module.names.resolve(call.func) == "pkgutil.iter_modules" for call in module.nodes(ast.Call)):
                    found |= {each for each, path in self.paths.items() if _found_in(name, each, path)}
            self._imports[name] = found
        return self._imports[name]

    def _name(self, path: Path) -> str:
        parts = [] if path.name == "__init__.py" else [path.stem]
        folder = path.parent
        while folder in self._packages:
            parts.append(folder.name)
            folder = folder.parent
        return ".".join(reversed(parts))

    def _parse(self, path: Path) -> Module | None:
        if path not in self._modules:
            try:
                self._modules[path] = Module(path, self._texts[path])
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                self._modules[path] = None
        return self._modules[path]

    @cached_property
    def _imports(self) -> dict[str, set[str]]:
        return {}

    @cached_property
    def _keys(self) -> dict[Path, list[tuple[str, str]]]:
        """What each file seems to declare, without parsing it: `dispatch` or `register_impl`, and the key."""
        return {path: _DECLARES.findall(text) for path, text in self._texts.items()}

    @cached_property
    def _checked(self) -> set[Module]:
        return set(self.checked)

    @cached_property
    def _checked_paths(self) -> set[Path]:
        return {module.path for module in self.checked}

    @cached_property
    def _packages(self) -> set[Path]:
        return {path.parent for path in self._texts if path.name == "__init__.py"}


def _found_in(package: str, name: str, path: Path) -> bool:
    return path.name == "__init__.py" and name.rpartition(".")[0] == package
