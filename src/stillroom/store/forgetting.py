"""Threads that a person had forgotten: nothing of them stays but hashes, by which they are known if they come again.

A hash is of a thread's id, or of what a copy of its session under another id has in common with it: when it began, and
with which words. Hashes of what was said in it tell what a fork repeats. A sub-agent of a forgotten thread is forgotten
with it.

All functions run inside a transaction of the caller.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from stillroom.store.consolidation import enqueue
from stillroom.store.sql import QUERIES, execute
from stillroom.store.texts import from_sql, to_sql
from stillroom.thread import Thread

#: Every place where a text of a person's sessions may be kept: the query that lists it, the one that writes it back,
#: the columns that name a row, those that hold text, and those that hold JSON.
_PLACES = (
    ("list_output_texts", "set_output_texts", ("thread_id",), ("raw_memory", "rollout_summary", "rollout_slug"), ()),
    ("list_thread_texts", "set_thread_texts", ("thread_id",), ("title", "preview", "git_branch", "git_origin_url"), ()),
    ("list_job_texts", "set_job_texts", ("kind", "job_key"), ("worker_id", "last_error"), ()),
    ("list_call_texts", "set_call_texts", ("call_id",), ("error",), ()),
    ("list_pass_texts", "set_pass_texts", ("pass_id",), (), ("report_json",)),
    ("list_use_texts", "set_use_texts", ("thread_id", "digest", "nth"), (), ("counted",)),
)

Change = Callable[[str], str]
#: A hundred kilobytes of texts.
_ROWS_AT_ONCE = 16
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


def is_forgotten(db: sqlite3.Connection, thread_id: str) -> bool:
    return execute(db, "get_forgotten", digest=id_digest(thread_id)).fetchone() is not None


def is_forgotten_exchange(db: sqlite3.Connection, digest: bytes) -> bool:
    return execute(db, "get_forgotten_exchange", digest=digest).fetchone() is not None


def has_exchanges(db: sqlite3.Connection) -> bool:
    return execute(db, "any_forgotten_exchange").fetchone() is not None


def keep_exchanges(db: sqlite3.Connection, digests: Iterable[bytes]) -> None:
    """What forgotten threads said; twice is once."""
    db.executemany(QUERIES["save_forgotten_exchange"], [{"digest": digest} for digest in digests])


def each_output(db: sqlite3.Connection) -> Iterator[KeptOutput]:
    """All of them, a row at a time."""
    for row in execute(db, "list_kept_outputs"):
        yield KeptOutput(
            thread_id=from_sql(row["thread_id"]),
            source_updated_at=row["source_updated_at"],
            raw_memory=from_sql(row["raw_memory"]),
            rollout_summary=from_sql(row["rollout_summary"]),
            rollout_slug=row["rollout_slug"] and from_sql(row["rollout_slug"]),
            is_selected=bool(row["selected_for_phase2"]),
        )


def forget(
    db: sqlite3.Connection,
    threads: Iterable[Thread],
    change: Change,
    may_change: Callable[[str], bool],
    *,
    now: int,
) -> None:
    """Remove all that is kept of the threads, have `change` clear every text of others, and leave the hashes.

    What they cost stays in the sums. Doing it twice is doing it once.
    """
    for thread in threads:
        key = to_sql(thread.thread_id)
        for digest in _own_digests(thread):
            execute(db, "save_forgotten", digest=digest, at=now)
        keep_exchanges(db, filter(None, map(_words_digest, (thread.title, thread.preview))))
        for query in ("delete_output", "delete_stage1_job", "delete_uses", "delete_thread", "unname_calls"):
            execute(db, query, thread_id=key)
        name = f"forgotten-{id_digest(thread.thread_id).hex()[:12]}"
        for query in ("rename_budget_node", "rename_budget_parent", "rename_budget_crosser", "rename_budget_hold"):
            execute(db, query, thread_id=key, name=name)
    execute(db, "drop_unused_folders")
    rewrite_texts(db, change, may_change)
    enqueue(db, now)


def rewrite_texts(
    db: sqlite3.Connection, change: Change, may_change: Callable[[str], bool] = lambda texts: True
) -> int:
    """Put every text through `change`; returns how many rows differ by it."""
    changed = 0
    for listing, writing, keys, texts, documents in _PLACES:
        rows: list[dict[str, object]] = []
        listed = execute(db, listing)
        # In JSON a word may be spelled otherwise.
        for row in listed if documents else _touched(listed, texts, may_change):
            new: dict[str, object] = {name: _text(row[name], change) for name in texts}
            new |= {name: _document(row[name], change) for name in documents}
            if any(new[name] != row[name] for name in new):
                rows.append({**{name: row[name] for name in keys}, **new})
        db.executemany(QUERIES[writing], rows)
        changed += len(rows)
    return changed


def _touched(rows: sqlite3.Cursor, texts: Sequence[str], may_change: Callable[[str], bool]) -> Iterator[sqlite3.Row]:
    """Without rows of which no text may change. Some are asked about together: most are shorter than the question."""
    while some := rows.fetchmany(_ROWS_AT_ONCE):
        if may_change("\n".join(from_sql(row[name]) for row in some for name in texts if row[name] is not None)):
            yield from some


def each_text(db: sqlite3.Connection) -> Iterator[str]:
    """Every text that `rewrite_texts` would put through a change."""
    for listing, _, _, texts, documents in _PLACES:
        for row in execute(db, listing):
            yield from (from_sql(row[name]) for name in (*texts, *documents) if row[name] is not None)


def _digests(thread: Thread) -> list[bytes]:
    parent = [] if thread.parent_thread_id is None else [id_digest(thread.parent_thread_id)]
    return _own_digests(thread) + parent


def _own_digests(thread: Thread) -> list[bytes]:
    content = content_digest(thread)
    return [id_digest(thread.thread_id), *([] if content is None else [content])]


def _text(value: str | bytes | None, change: Change) -> str | bytes | None:
    return None if value is None else to_sql(change(from_sql(value)))


def _document(value: str | bytes, change: Change) -> str | bytes:
    """JSON of the same shape, every string in it changed; as it was if nothing differs."""
    import json  # only what forgets needs it

    text = from_sql(value)
    try:
        data = json.loads(text)
    except ValueError:
        return change(text).encode("utf-8", "replace") if isinstance(value, bytes) else to_sql(change(text))
    new = _changed(data, change)
    if new == data:
        return value
    encoded = json.dumps(new)
    return encoded.encode() if isinstance(value, bytes) else encoded


def _changed(data: Any, change: Change) -> Any:  # Any: JSON
    match data:
        case str():
            return change(data)
        case list():
            return [_changed(each, change) for each in data]
        case dict():
            return {change(key): _changed(each, change) for key, each in data.items()}
        case _:
            return data
