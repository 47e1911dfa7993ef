"""Tables of Markdown."""

from collections.abc import Iterator


def table(*columns: str, rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    """A table, or nothing where there are no rows."""
    cells = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
    if cells:
        yield f"| {' | '.join(columns)} |"
        yield "|" + "---|" * len(columns)
        yield from (f"| {row} |".replace("|  |", "| |") for row in cells)
        yield ""
