"""Count what sessions hold, where somebody wants to know it before they are extracted."""

from __future__ import annotations

from collections.abc import Sequence

from stillroom.config import Settings
from stillroom.errors import RolloutError
from stillroom.extract.reading import count_thread
from stillroom.progress import Progress, ProgressListener, silent
from stillroom.store import Store
from stillroom.thread import Thread


def count_threads(
    threads: Sequence[Thread], settings: Settings, store: Store, *, on_progress: ProgressListener = silent
) -> None:
    """Read each and keep what was counted. One that can't be read stays uncounted."""
    for number, thread in enumerate(threads):
        on_progress(Progress(stage="count", done=number, total=len(threads)))
        try:
            read = count_thread(thread, stage=settings.stage_one)
        except RolloutError:
            continue
        store.reads.save(thread.thread_id, read)
    on_progress(Progress(stage="count", done=len(threads), total=len(threads)))
