"""Threads that a person had forgotten: nothing of them stays but hashes, by which they are known if they come again.

A hash is of a thread's id, or of what a copy of its session under another id has in common with it: when it began, and
with which words. Hashes of what was said in it tell what a fork repeats. A sub-agent of a forgotten thread is forgotten
with it.

Each method of `Forgetting` is one transaction; the functions run inside one of the caller.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from stillroom.clock import Clock
from stillroom.store import rewriting
from stillroom.store.database import Database
from stillroom.store.rewriting import Change
from stillroom.store.selection import enqueue
from stillroom.store.sql import QUERIES, execute
from stillroom.store.texts import from_sql, to_sql
from stillroom.thread import Thread

#: Shorter first words ("fix the tests") are those of many sessions.
_LEAST_WORDS_CHARS = 40
#: What stands where a forgotten session's words were.
FORGOTTEN = "[forgotten]"


class KeptOutput(NamedTuple):
    """What is kept of a thread, whether it may be remembered or not."""

    thread_id: str
    source_updated_at: int  #: seconds
    raw_memory: str
    rollout_summary: str
    rollout_slug: str | None
    #: The memory folder rests on it.
    is_selected: bool


class Forgetting:
    """What is kept of threads, what is taken away of it, and what was forgotten."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def each_output(self, visit: Callable[[KeptOutput], None]) -> None:
        """Show everything that was extracted of threads, whatever their modes, one by one."""
        with self._database.read() as db:
            for row in execute(db, "list_kept_outputs"):
                kept = KeptOutput(
                    thread_id=from_sql(row["thread_id"]),
                    source_updated_at=row["source_updated_at"],
                    raw_memory=from_sql(row["raw_memory"]),
                    rollout_summary=from_sql(row["rollout_summary"]),
                    rollout_slug=row["rollout_slug"] and from_sql(row["rollout_slug"]),
                    is_selected=bool(row["selected_for_phase2"]),
                )
                visit(kept)

    def each_text(self, visit: Callable[[str], None]) -> None:
        """Show every text that is kept of sessions."""
        with self._database.read() as db:
            for text in rewriting.each_text(db):
                visit(text)

    def rewrite_texts(self, change: Change) -> int:
        """Put every text that is kept of sessions through `change`; returns how many rows differ by it."""
        with self._database.write() as db:
            return rewriting.rewrite_texts(db, change)

    def forget(self, forgotten: Iterable[Thread], change: Change, *, may_change: Callable[[str], bool]) -> None:
        """Remove all that is kept of these threads, put every text of others through `change`, and leave hashes, by
        which they are known and refused if they come again. Of which texts `may_change` is asked for many at once.

        What they cost stays in the sums. Doing it twice is doing it once.
        """
        now = self._clock.now()
        with self._database.write() as db:
            for thread in forgotten:
                _remove(db, thread, now=now)
            execute(db, "drop_unused_folders")
            rewriting.rewrite_texts(db, change, may_change)
            enqueue(db, now)

    def is_forgotten(self, thread_id: str) -> bool:
        """Whether a person had this thread forgotten."""
        with self._database.read() as db:
            return execute(db, "get_forgotten", digest=id_digest(thread_id)).fetchone() is not None

    def keep_exchanges(self, digests: Iterable[bytes]) -> None:
        """Know from now on what forgotten threads said (`rollouts.exchanges`), wherever it comes again."""
        with self._database.write() as db:
            keep_exchanges(db, digests)

    def exchange_check(self) -> Callable[[bytes], bool] | None:
        """What asks whether a forgotten thread said this; None when none is known, as in most homes."""
        with self._database.read() as db:
            if not has_exchanges(db):
                return None

        def ask(digest: bytes) -> bool:
            with self._database.read() as db:
                return is_forgotten_exchange(db, digest)

        return ask


def _remove(db: sqlite3.Connection, thread: Thread, *, now: int) -> None:
    """Take away all that is kept of the thread but the texts of others, and leave its hashes."""
    key = to_sql(thread.thread_id)
    for digest in _own_digests(thread):
        execute(db, "save_forgotten", digest=digest, at=now)
    keep_exchanges(db, filter(None, map(_words_digest, (thread.title, thread.preview))))
    for query in ("delete_output", "delete_stage1_job", "delete_uses", "delete_thread", "unname_calls"):
        execute(db, query, thread_id=key)
    name = f"forgotten-{id_digest(thread.thread_id).hex()[:12]}"
    for query in ("rename_budget_node", "rename_budget_parent", "rename_budget_crosser", "rename_budget_hold"):
        execute(db, query, thread_id=key, name=name)


def id_digest(thread_id: str) -> bytes:
    """By which a thread is known again."""
    return _sha256(b"id\0" + thread_id.encode("utf-8", "surrogatepass"))


def content_digest(thread: Thread) -> bytes | None:
    """By which a copy of it is known; None: too little is known of it."""
    if thread.created_at_ms <= 0 or not thread.preview:
        return None
    said = f"{thread.created_at_ms}\0{thread.preview}".encode("utf-8", "surrogatepass")
    return _sha256(b"content\0" + said)


def _sha256(data: bytes) -> bytes:
    import hashlib  # OpenSSL takes long to load, and most commands ask for no digest

    return hashlib.sha256(data).digest()


def without_forgotten(db: sqlite3.Connection, threads: Iterable[Thread]) -> set[str]:
    """The ids of those that may be registered."""
    listed = list(threads)
    known = {bytes(row["digest"]) for row in execute(db, "list_forgotten")}
    if not known:
        return {thread.thread_id for thread in listed}
    return {thread.thread_id for thread in listed if known.isdisjoint(_digests(thread))}


def without_first_words(db: sqlite3.Connection, thread: Thread) -> Thread:
    """The same thread; if it begins as a forgotten one did, as a fork does, without these words."""
    if _words_digest(thread.preview) is None or not has_exchanges(db):
        return thread
    known = {name: _is_known(db, text) for name, text in (("title", thread.title), ("preview", thread.preview))}
    return msgspec.structs.replace(thread, **{name: FORGOTTEN for name, is_known in known.items() if is_known})


def _is_known(db: sqlite3.Connection, words: str) -> bool:
    digest = _words_digest(words)
    return digest is not None and is_forgotten_exchange(db, digest)


def _words_digest(words: str) -> bytes | None:
    """Of a thread's first words; None: so few of them are anybody's."""
    if len(words) < _LEAST_WORDS_CHARS:
        return None
    return _sha256(b"words\0" + words.encode("utf-8", "surrogatepass"))[:16]


def is_forgotten_exchange(db: sqlite3.Connection, digest: bytes) -> bool:
    return execute(db, "get_forgotten_exchange", digest=digest).fetchone() is not None


def has_exchanges(db: sqlite3.Connection) -> bool:
    return execute(db, "any_forgotten_exchange").fetchone() is not None


def keep_exchanges(db: sqlite3.Connection, digests: Iterable[bytes]) -> None:
    """What forgotten threads said; twice is once."""
    db.executemany(QUERIES["save_forgotten_exchange"], [{"digest": digest} for digest in digests])


def _digests(thread: Thread) -> list[bytes]:
    parent = [] if thread.parent_thread_id is None else [id_digest(thread.parent_thread_id)]
    return _own_digests(thread) + parent


def _own_digests(thread: Thread) -> list[bytes]:
    content = content_digest(thread)
    return [id_digest(thread.thread_id), *([] if content is None else [content])]
