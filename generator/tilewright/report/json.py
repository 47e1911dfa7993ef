"""Results for a machine: one document each, described by the schema of the same name in `schemas/`."""

from collections import Counter
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tilewright.model.host import Host
from tilewright.model.kernel import Compilation
from tilewright.model.outcome import StepOutcome
from tilewright.model.outcome import Verdict
from tilewright.update.behind import Standing
from tilewright.verify.doctor import Finding
from tilewright.verify.status import OperatorStatus

Document = dict[str, Any]


def verify(host: Host, outcomes: Mapping[str, Sequence[StepOutcome]]) -> Document:
    """The steps of each operator."""
    counts = Counter(outcome.verdict for steps in outcomes.values() for outcome in steps)
    return {
        "host": _host(host),
        "operators": [{"name": name, "steps": [asdict(step) for step in steps]} for name, steps in outcomes.items()],
        "counts": {verdict.value: counts[verdict] for verdict in Verdict},
    }


def compilation(host: Host, result: Compilation) -> Document:
    """Every compiled kernel of one operator."""
    document = asdict(result)
    return {"host": _host(host), "operator": document.pop("op"), **document, "errors": list(result.errors)}


def status(host: Host, rows: Sequence[OperatorStatus], installed: str, standing: Standing) -> Document:
    """Operators x steps x template version."""
    behind = {each.name: each for each in standing.behind}
    return {
        "host": _host(host),
        "template_version": installed,
        "operators": [
            {
                "name": row.name,
                "template_version": row.template_version or None,
                "behind": [asdict(release) for release in behind[row.name].releases] if row.name in behind else None,
                "detached": list(standing.detached.get(row.name, ())),
                "steps": [asdict(step) for step in row.steps],
            }
            for row in rows
        ],
    }


def doctor(findings: Iterable[Finding]) -> Document:
    """What is present and what is missing."""
    return {"findings": [asdict(finding) for finding in findings]}


def _host(host: Host) -> Document:
    return {"root": str(host.root), "layout": host.layout, "package": host.package}
