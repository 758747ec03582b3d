"""A thread that lies in several places, as a backup or because it was ingested, is read from one of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from stillroom.store import Store
from stillroom.store.records import Place
from stillroom.thread import FileStamp, Thread

#: Whose rollouts may be copies of a client's own files: redacted, and as they were when they were taken in.
_INGESTED = "stillroom"


class Settled(NamedTuple):
    """What a scan found, parted."""

    #: New, or changed, or in a better place than before.
    threads: list[tuple[Thread, FileStamp]]
    #: Other places, by thread id.
    copies: list[tuple[str, Place]]
    #: The ids of the threads that were known before.
    known: frozenset[str]


def settle(found: Sequence[tuple[Thread, FileStamp]], store: Store) -> Settled:
    """Take each thread from the place where it went on the longest; of equal ones from the client's own, or from where
    it was read before. So the next scan comes to the same result."""
    places = store.threads.places(thread.thread_id for thread, _ in found)
    known = frozenset(places)
    taken: dict[str, tuple[Thread, FileStamp]] = {}
    copies: list[tuple[str, Place]] = []
    for thread, stamp in found:
        here = Place(thread.agent, thread.rollout_path, thread.updated_at_ms, stamp)
        before = places.get(thread.thread_id)
        if before is not None and _file(before.path) != _file(here.path) and _is_there(before.path):
            if _rank(here) <= _rank(before):
                copies.append((thread.thread_id, here))
                continue
            copies.append((thread.thread_id, before))
        places[thread.thread_id] = here
        taken[thread.thread_id] = (thread, stamp)
    return Settled(list(taken.values()), copies, known)


def _rank(place: Place) -> tuple[int, bool]:
    return place.updated_at_ms, place.agent != _INGESTED


def _is_there(path: str) -> bool:
    """Whether the file is; of one that Codex packs, in either form."""
    return any(Path(name).exists() for name in (path, f"{path}.zst", _file(path)))


def _file(path: str) -> str:
    """Of one of many threads in a file, or in a database, that file: in it a thread may move."""
    return path.rpartition("#")[0] or path
