"""The operators of a host: those that were made with the template and those that its code declares."""

from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from tilewright.codemod import RegisteredOperator
from tilewright.codemod import discover
from tilewright.config import ANSWERS
from tilewright.config import read_answers
from tilewright.config.versions import tag
from tilewright.errors import UsageError
from tilewright.model.host import Host
from tilewright.model.operator import Operator


def find_operators(host: Host) -> list[Operator]:
    """All operators, by name."""
    declared = {found.name: found for found in discover(host.root, host.package)}
    recorded = {path.stem: read_answers(path.stem, host.root) for path in sorted((host.root / ANSWERS).glob("*.yml"))}
    return [
        _operator(host, name, declared.get(name), recorded.get(name, {})) for name in sorted({*declared, *recorded})
    ]


def choose(operators: Sequence[Operator], names: Sequence[str], host: Host) -> list[Operator]:
    """The operators of these names; without names those that were made with the template, or all of a host of ours."""
    if not names:
        return [operator for operator in operators if operator.template_version or host.layout == "standalone"]
    known = {operator.name: operator for operator in operators}
    for name in names:
        if name not in known:
            listed = ", ".join(known) if len(known) < 30 else f"its {len(known)} operators"
            raise UsageError(
                f"{host.root} has no operator {name!r}",
                expected=f"expected one of {listed}" if known else "",
                hint=f"to see them: tilewright status; to add it: tilewright new {name}",
            )
    return [known[name] for name in dict.fromkeys(names)]


def _operator(host: Host, name: str, declared: RegisteredOperator | None, recorded: Mapping[str, Any]) -> Operator:
    stub = declared.stub if declared else None
    implementation = declared.implementation("cutile") if declared else None
    function = stub.function if stub else name
    usual = _usual_paths(host, function, str(recorded.get("placement", "main")))
    skip = recorded.get("skip") or {}
    return Operator(
        name=name,
        function=function,
        host=host,
        stub=stub.path if stub else usual["stub"],
        kernel=implementation.path if implementation else usual["kernel"],
        test=_best(declared.tests if declared else (), usual["test"]),
        benchmark=_best(declared.benchmarks if declared else (), usual["benchmark"]),
        declared=stub is not None,
        loaded=implementation is not None and implementation.loaded,
        template_version=tag(str(recorded.get("_commit", ""))).removeprefix("v"),
        skip={str(step): str(reason) for step, reason in skip.items()},
    )


def _usual_paths(host: Host, function: str, placement: str) -> dict[str, PurePosixPath]:
    """Where the template puts the files."""
    if host.layout == "tilegym":
        ops = PurePosixPath(host.package, "ops")
        below = "experimental" if placement == "experimental" else ""
        stub, kernel = ops / "ops.py", ops / "cutile" / below / f"{function}.py"
    else:
        below = ""
        folder = PurePosixPath(host.package, function)
        stub, kernel = folder / "interface.py", folder / "cutile.py"
    return {
        "stub": stub,
        "kernel": kernel,
        "test": PurePosixPath("tests/ops", below, f"test_{function}.py"),
        "benchmark": PurePosixPath("tests/benchmark", below, f"bench_{function}.py"),
    }


def _best(found: Sequence[PurePosixPath], usual: PurePosixPath) -> PurePosixPath:
    """The file of the usual name, else the first that uses the operator."""
    return next((path for path in found if path.name == usual.name), found[0] if found else usual)
