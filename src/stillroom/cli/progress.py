"""Progress bars, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from stillroom.progress import Progress, ProgressListener, silent

_TITLES = {
    "scan": "Reading sessions",
    "count": "Counting messages",
    "usage": "Counting uses",
    "price": "Estimating costs",
    "extract": "Extracting",
    "consolidate": "Consolidating",
    "ingest": "Taking in",
    "export": "Writing out",
    "evaluate": "Evaluating",
}


@contextmanager
def progress_bars(*, wanted: bool) -> Iterator[ProgressListener]:
    """A listener that draws bars on stderr, or one that says nothing when stderr is no terminal."""
    if not wanted or not sys.stderr.isatty():
        yield silent
        return
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    from stillroom.cli.output import console

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description:<17}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("[dim]{task.fields[note]}[/]"),
    )
    with Bars(*columns, console=console()) as bars:
        rows = {}

        def listen(progress: Progress) -> None:
            if progress.stage not in rows:
                rows[progress.stage] = bars.add_task(_TITLES[progress.stage], total=progress.total, note="")
            bars.update(rows[progress.stage], completed=progress.done, total=progress.total, note=progress.note[:60])

        yield listen
