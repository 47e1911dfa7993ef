"""A progress bar on stderr, where that is a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tilewright.aot.compile import Progress


@contextmanager
def progress_bar(title: str, *, shown: bool = True) -> Iterator[Progress | None]:
    """A function to be told of progress, or None; the bar is gone when the work is done."""
    if not (shown and sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn
    from rich.progress import MofNCompleteColumn
    from rich.progress import Progress as Bar
    from rich.progress import TextColumn
    from rich.progress import TimeElapsedColumn

    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total or None)
