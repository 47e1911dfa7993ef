"""Import the package of a host once, in a child process, and ask it about operators."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.model.operator import Operator
from tilewright.verify.child import last_line
from tilewright.verify.child import run_python

_LIMIT = 120  # seconds


@dataclass(frozen=True, kw_only=True)
class Registered:
    """What the imported package knows of an operator."""

    backends: tuple[str, ...]
    exported: bool  # as a function


def registered(operators: Sequence[Operator]) -> dict[str, Registered] | str:
    """By operator, all of one host; or how the import ends where it does not succeed."""
    host = operators[0].host
    functions = json.dumps({operator.name: operator.function for operator in operators})
    arguments = [host.operators_module, f"{host.import_name}.backend", functions]
    done = run_python(operators[0], ["-m", "tilewright.verify.probe", *arguments], limit=_LIMIT)
    if done.returncode:
        return f"fails: {last_line(done)}"
    answers = [line for line in done.stdout.splitlines() if line.startswith('{"operators"')]
    if not answers:
        return "ends the process"
    found = json.loads(answers[-1])["operators"]
    return {
        name: Registered(backends=tuple(each["backends"]), exported=each["exported"]) for name, each in found.items()
    }
