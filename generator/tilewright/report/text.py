"""Results for a person: coloured lines and tables on a terminal, plain text elsewhere."""

import sys
from collections.abc import Iterable
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tilewright.model.kernel import Compilation
from tilewright.model.kernel import CompiledKernel
from tilewright.model.measurement import OperatorBenchmark
from tilewright.model.outcome import StepOutcome
from tilewright.model.outcome import Verdict
from tilewright.report.bench import failures
from tilewright.report.bench import fill
from tilewright.report.tuning import BASES
from tilewright.report.tuning import describe_values
from tilewright.report.updates import change_lines
from tilewright.report.updates import how_far
from tilewright.tune.run import Tuning
from tilewright.update.behind import Standing
from tilewright.verify.doctor import Finding
from tilewright.verify.doctor import State
from tilewright.verify.status import OperatorStatus

_WIDE = 400  # columns: a file or a pipe has no edge to wrap at
_MOST_PROBLEMS = 8
_STYLES = {
    Verdict.OK: "green",
    Verdict.FAILED: "bold red",
    Verdict.SKIPPED: "yellow",
    Verdict.NOT_APPLICABLE: "dim",
    State.PRESENT: "green",
    State.MISSING: "bold red",
    State.UNFIT: "yellow",
}


class TextReport:
    """Prints results to stdout."""

    def __init__(self) -> None:
        terminal = sys.stdout.isatty()
        self._console = Console(highlight=False, width=None if terminal else _WIDE)
        self._box = box.SIMPLE_HEAD if terminal else None

    def operator(self, name: str) -> None:
        """Heading above the steps of an operator."""
        self._print(Text(name, style="bold"))

    def step(self, outcome: StepOutcome) -> None:
        """One line, and further problems below it."""
        line = Text(f"  {outcome.step:<14}").append(outcome.verdict, style=_STYLES[outcome.verdict])
        self._print(line.append(f": {outcome.detail}" if outcome.detail else ""))
        problems = outcome.data.get("problems", ())
        for problem in problems[1:_MOST_PROBLEMS]:
            self._print(Text(f"{'':16}{problem}"))
        if len(problems) > _MOST_PROBLEMS:
            self._print(Text(f"{'':16}and {len(problems) - _MOST_PROBLEMS} more; --json lists them"))
        for advice in outcome.data.get("advice", ()):
            self._print(Text(f"{'':16}{advice}", style="dim"))

    def compilation(self, compilation: Compilation) -> None:
        """A row for each compiled kernel, then what could not be compiled."""
        columns = ("kernel", "arch", "dtype", "signature", "registers", "spilled", "shared", "seconds")
        table = self._table(*columns[:4])
        for column in columns[4:]:
            table.add_column(column, justify="right")
        for kernel in compilation.kernels:
            table.add_row(kernel.kernel, kernel.arch, kernel.dtype, kernel.signature, *_measures(kernel))
        if compilation.kernels:
            self._console.print(table)
        for error in compilation.errors:
            self._print(Text("failed", style=_STYLES[Verdict.FAILED]).append(f": {error}"))
        for refusal in compilation.refused:
            self._print(Text("skipped", style=_STYLES[Verdict.SKIPPED]).append(f": {refusal}"))

    def benchmark(self, benchmark: OperatorBenchmark) -> None:
        """A row for each problem, then what could not be measured."""
        table = self._table()
        fill(table, benchmark)
        if benchmark.comparisons:
            self._console.print(table)
        for line in failures(benchmark):
            self._print(Text(line))

    def tuning(self, tuning: Tuning) -> None:
        """A row for each entry of the table, then why better candidates were not taken."""
        table = self._table("entry", "arch", "dtype", "was", "is", "by")
        for column in ("faster", "tried", "seconds"):
            table.add_column(column, justify="right")
        for entry in tuning.entries:
            after = describe_values(entry.after) if entry.changed else "the same"
            tried = f"{len(entry.trials)} of {entry.space}"
            gain = "-" if entry.gain is None else f"{entry.gain:.1%}"
            row = (entry.label, entry.arch, entry.dtype, describe_values(entry.before), after, BASES[entry.basis])
            table.add_row(*row, gain, tried, f"{entry.seconds:.1f}")
        self._console.print(table)
        for entry in tuning.entries:
            if entry.note:
                self._print(Text(f"{entry.label}: {entry.note}"))

    def status(self, rows: Sequence[OperatorStatus], installed: str, standing: Standing) -> None:
        """Operators x steps x template version, then what is wrong, detached, or new in the template."""
        steps = [outcome.step for outcome in rows[0].steps] if rows else []
        table = self._table("operator", *steps, "template")
        for row in rows:
            cells = [Text(outcome.verdict, style=_STYLES[outcome.verdict]) for outcome in row.steps]
            table.add_row(row.name, *cells, _version(row, installed, standing))
        self._console.print(table)
        for row in rows:
            for outcome in row.steps:
                if row.template_version and outcome.verdict in (Verdict.FAILED, Verdict.NOT_APPLICABLE):
                    self._print(Text(f"{row.name} {outcome.step}: {outcome.detail}"))
            for step in standing.detached.get(row.name, ()):
                self._print(Text(f"{row.name} {step}: detached, no update changes it"))
        for line in change_lines(standing.behind):
            self._print(Text(line))

    def findings(self, findings: Iterable[Finding]) -> None:
        """A line for each thing, with the command that mends it below."""
        for finding in findings:
            line = Text(f"{finding.name:<10}").append(f"{finding.state:<8}", style=_STYLES[finding.state])
            line.append(f" {finding.version:<14} {finding.detail}".rstrip())
            if finding.state is State.MISSING:
                line.append(f" (needed to {finding.needed_for})")
            self._print(line)
            if finding.mend:
                self._print(Text(f"{'':19}mend: {finding.mend}"))

    def _table(self, *columns: str) -> Table:
        return Table(*columns, box=self._box, pad_edge=self._box is not None)

    def _print(self, line: Text) -> None:
        self._console.print(line, soft_wrap=True)


def _version(row: OperatorStatus, installed: str, standing: Standing) -> str:
    version = row.template_version or "by hand"
    for behind in standing.behind:
        if behind.name == row.name:
            return version + how_far(behind, installed)
    return version + (f" (installed: {installed})" if row.template_version and version != installed else "")


def _measures(kernel: CompiledKernel) -> tuple[str, str, str, str]:
    seconds = f"{kernel.seconds:.2f}"
    if kernel.resources is None:
        return "failed", "", "", seconds
    found = kernel.resources
    return str(found.registers), str(found.spilled_bytes), str(found.shared_bytes), seconds
