"""Find the operators of a repository by their registration, without importing anything."""

from collections.abc import Mapping
from collections.abc import Sequence
from functools import cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from pathlib import PurePosixPath

from tilewright.codemod.declarations import Declaration
from tilewright.codemod.declarations import declarations
from tilewright.codemod.loading import loaded_with
from tilewright.codemod.mentions import mentions
from tilewright.codemod.package import Package
from tilewright.codemod.package import parse
from tilewright.codemod.registered import Implementation
from tilewright.codemod.registered import RegisteredOperator
from tilewright.codemod.registered import Stub


def discover(root: Path, package: str | None = None) -> list[RegisteredOperator]:
    """All operators below `package` ("src/tilegym", "my_ops"), or of every package that declares one, by name."""
    packages = [Package(root, PurePosixPath(package))] if package else _packages(root)
    tests = {path: (root / path).read_bytes() for path in _test_files(root)}
    found = [operator for read in packages for operator in _operators(read, _names_used(read, tests))]
    return sorted(found, key=attrgetter("name"))


def _names_used(package: Package, tests: Mapping[PurePosixPath, bytes]) -> dict[PurePosixPath, set[str]]:
    """What of the package each test file uses; only those are parsed that have its name somewhere."""
    name = package.name.partition(".")[0].encode()
    return {path: mentions(parse(source), package.name) for path, source in tests.items() if name in source}


def _packages(root: Path) -> list[Package]:
    if (root / "src/tilegym/ops/ops.py").is_file():
        return [Package(root, PurePosixPath("src/tilegym"))]
    inits = [path for pattern in ("*/__init__.py", "src/*/__init__.py") for path in sorted(root.glob(pattern))]
    packages = [Package(root, PurePosixPath(path.parent.relative_to(root).as_posix())) for path in inits]
    return [package for package in packages if package.name != "tests" and any(declarations(package))]


def _test_files(root: Path) -> list[PurePosixPath]:
    return [PurePosixPath(path.relative_to(root).as_posix()) for path in sorted((root / "tests").rglob("*.py"))]


def _operators(package: Package, names_used: Mapping[PurePosixPath, set[str]]) -> list[RegisteredOperator]:
    @cache
    def loaded(module: str) -> set[str]:
        return loaded_with(package, module)

    operators = []
    declared = sorted(declarations(package), key=attrgetter("operator"))
    for name, group in groupby(declared, key=attrgetter("operator")):
        found = list(group)
        stub = next((_stub(package, each) for each in found if each.backend is None), None)
        reachable = loaded(_home(stub) if stub else package.name)
        users = [path for path, names in names_used.items() if stub and _uses(names, stub)]
        operators.append(
            RegisteredOperator(
                name=name,
                stub=stub,
                implementations=_implementations(package, found, reachable),
                tests=tuple(path for path in users if not _is_benchmark(path)),
                benchmarks=tuple(path for path in users if _is_benchmark(path)),
            )
        )
    return operators


def _stub(package: Package, found: Declaration) -> Stub:
    return Stub(path=package.modules[found.module], module=found.module, function=found.function, line=found.line)


def _implementations(package: Package, found: Sequence[Declaration], reachable: set[str]) -> tuple[Implementation, ...]:
    return tuple(
        Implementation(
            backend=each.backend,
            path=package.modules[each.module],
            module=each.module,
            function=each.function,
            line=each.line,
            loaded=each.module in reachable,
        )
        for each in found
        if each.backend
    )


def _home(stub: Stub) -> str:
    # The package from which the operator is imported; an operator folder is part of the one around it.
    package = stub.module.rpartition(".")[0]
    return package.removesuffix(f".{stub.function}")


def _uses(names: set[str], stub: Stub) -> bool:
    # `tilegym.ops.softmax` is the softmax of tilegym.ops.ops, and not that of tilegym.suites.liger.ops.
    ends = (name.rpartition(".") for name in names)
    return any(end == stub.function and f"{stub.module}.".startswith(f"{home}.") for home, _, end in ends)


def _is_benchmark(path: PurePosixPath) -> bool:
    return path.name.startswith("bench_") or "benchmark" in path.parts
