"""Read the answers that an operator was made from."""

from pathlib import Path
from typing import Any

from tilewright.errors import UsageError

ANSWERS = Path(".tilewright", "ops")


def read_answers(op: str, root: Path) -> dict[str, Any]:
    """What `.tilewright/ops/<op>.yml` records, with copier's own keys, which begin with an underscore."""
    import yaml

    path = root / ANSWERS / f"{op}.yml"
    try:
        answers = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(
            f"no operator {op} that tilewright made in {root}",
            expected=f"expected a file {ANSWERS / op}.yml",
            hint="tilewright status shows the operators here",
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise _bad(path, f"is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(answers, dict) or answers.get("op") != op:
        raise _bad(path, f"does not record the operator {op}")
    if not isinstance(answers.get("skip", {}), dict):
        raise _bad(path, f"has skip: {answers['skip']!r}, which is no mapping of steps to reasons")
    return answers


def _bad(path: Path, what: str) -> UsageError:
    return UsageError(f"{path} {what}", hint=f"take it from the history: git checkout -- {path}")
