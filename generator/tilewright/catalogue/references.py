"""The reference operators: filled-in examples that are shipped with the template."""

import ast
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class ReferenceOperator:
    """One example."""

    name: str
    summary: str
    path: str  # of its folder


def read_reference_operators(folder: Path) -> tuple[ReferenceOperator, ...]:
    """All examples, by name."""
    return tuple(
        ReferenceOperator(name=path.parent.name, summary=_summary(path), path=str(path.parent))
        for path in sorted(folder.glob("*/interface.py"))
    )


def _summary(interface: Path) -> str:
    """The first line of the operator's own documentation."""
    for node in ast.parse(interface.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == interface.parent.name:
            return (ast.get_docstring(node) or "").partition("\n")[0]
    return ""
