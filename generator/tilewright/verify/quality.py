"""Step 6: the operator's files are clean, no rule finds an error, and every kernel compiles for every architecture."""

import subprocess
import sys
from collections.abc import Collection
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import PurePosixPath

from tilewright.cutile.toolchain import is_installed
from tilewright.errors import MissingError
from tilewright.model.kernel import Compilation
from tilewright.model.operator import Operator
from tilewright.model.outcome import StepOutcome
from tilewright.rules.collecting import collect
from tilewright.rules.collecting import surroundings
from tilewright.rules.engine import check_files
from tilewright.rules.finding import Severity
from tilewright.rules.reading import readable
from tilewright.rules.selection import choose
from tilewright.rules.settings import read_settings
from tilewright.verify.outcomes import failed
from tilewright.verify.outcomes import ok
from tilewright.verify.outcomes import skipped
from tilewright.verify.session import Session


def run(operator: Operator, session: Session) -> StepOutcome:
    """Lint, check, then compile."""
    lint = [*_lint(operator), *_errors(operator)]
    try:
        compilation = session.compile(operator)
    except MissingError as error:
        if lint:
            return failed("verify", lint)
        return skipped("verify", "; ".join(filter(None, [error.what, error.hint])), missing="compiler")
    data = {"compilation": asdict(compilation)}
    if lint or compilation.errors:
        return failed("verify", [*lint, *compilation.errors], **data)
    return ok("verify", summary(compilation), **data)


def summary(compilation: Compilation) -> str:
    """How many kernels were compiled for how many architectures."""
    kernels = _count({kernel.kernel for kernel in compilation.kernels}, "kernel")
    archs = _count({kernel.arch for kernel in compilation.kernels}, "architecture")
    spilling = [k for k in compilation.kernels if k.resources and k.resources.spilled_bytes]
    text = f"{kernels}, {len(compilation.kernels)} compilations for {archs}"
    if compilation.refused:
        text += f", refused for {', '.join(dict.fromkeys(each.arch for each in compilation.refused))}"
    text += ", from the cache" if compilation.cached else ""
    return text + (f", registers spilled in {len(spilling)}" if spilling else "")


def _count(things: Collection[str], name: str) -> str:
    return f"{len(things)} {name}" + ("" if len(things) == 1 else "s")


def _lint(operator: Operator) -> Iterator[str]:
    """Findings of ruff, with the settings of the host, where it is installed."""
    if not is_installed("ruff"):
        return
    files = [str(path) for path in _files(operator)]
    for arguments, remedy in (
        (["check", "--quiet", "--output-format=concise"], "ruff check --fix"),
        (["format", "--check", "--quiet"], "ruff format"),
    ):
        # Without a cache: the repository may be one that this user only reads.
        command = [sys.executable, "-m", "ruff", *arguments, "--no-cache", *files]
        done = subprocess.run(command, cwd=operator.host.root, capture_output=True, text=True, check=False)
        if done.returncode:
            first = next(iter((done.stdout or done.stderr).splitlines()), "")
            yield f"{first or 'files are not formatted'}: run {remedy} {' '.join(files)}"


def _errors(operator: Operator) -> Iterator[str]:
    """What `tilewright check` finds in the files, with the settings of the host, where it is surely wrong."""
    root = operator.host.root
    settings = read_settings(root)
    files = collect((operator.path(path) for path in _files(operator)), settings)
    rules = choose(settings.select, settings.ignore)
    for finding in check_files(files, rules, context=readable(surroundings(files))).findings:
        if finding.severity is Severity.ERROR:
            path = finding.path.relative_to(root.absolute()).as_posix()
            yield f"{path}:{finding.line}:{finding.column}: {finding.code} {finding.message}"


def _files(operator: Operator) -> list[PurePosixPath]:
    """Those that are the operator's alone, and there."""
    mine = [operator.kernel, operator.test, operator.benchmark]
    if operator.host.layout == "standalone":
        mine.append(operator.stub)
    return [path for path in mine if operator.path(path).is_file()]
