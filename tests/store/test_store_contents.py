"""Which session another one leaves its words to, against the same said in a few lines of Python."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_samples import NOW, STAMP, save, thread

from stillroom.store import Store, contents, threads
from stillroom.store.database import MIGRATIONS, create_schema
from stillroom.store.leases import STAGE1

NAMES = "abcde"
#: A few words, so that many talks begin alike.
TALKS = st.text("xy", min_size=1, max_size=4)


def chain(talk: str) -> bytes:
    return b"".join(blake2b(talk[: end + 1].encode(), digest_size=8).digest() for end in range(len(talk)))


def shared(talk: str, other: str) -> int:
    """So much of the talk the other one tells: all of it, or as much as the other has."""
    size = min(len(talk), len(other))
    return size if talk[:size] == other[:size] else 0


@pytest.fixture(scope="module")
def db() -> Iterator[sqlite3.Connection]:
    """A database in memory, for all examples: a file for each would take seconds."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.row_factory = sqlite3.Row
    create_schema(db, version=len(MIGRATIONS))
    threads.save(db, [(thread(name), STAMP) for name in NAMES], now=NOW)
    jobs = "INSERT INTO jobs (kind, job_key, status, retry_remaining) VALUES (?, ?, 'done', 3)"
    db.executemany(jobs, [(STAGE1, name) for name in NAMES])
    yield db
    db.close()


@given(st.lists(st.tuples(st.sampled_from(NAMES), TALKS), max_size=14))
def test_the_longest_beginning_is_left_to_another_and_never_in_a_circle(
    db: sqlite3.Connection, told: list[tuple[str, str]]
) -> None:
    db.execute("DELETE FROM thread_contents")
    talks: dict[str, str] = {}
    left_to: dict[str, str | None] = {}

    def leans(name: str | None, on: str) -> bool:
        return name is not None and (name == on or leans(left_to.get(name), on))

    for name, talk in told:
        most = max((shared(talk, talks[other]) for other in talks if not leans(other, name)), default=0)
        found = contents.settle(db, name, chain(talk))
        assert (found.items, found.of) == (most, len(talk)) if found else most == 0
        assert found is None or shared(talk, talks[found.thread_id]) == most
        talks[name], left_to[name] = talk, found.thread_id if found else None
        assert not leans(left_to[name], name)


def test_a_session_that_was_not_extracted_has_nothing_to_give(store: Store) -> None:
    save(store, thread("a"), thread("b"))
    assert store.extraction.settle_contents("a", chain("xy")) is None
    assert store.extraction.settle_contents("b", chain("xy")) is None
    assert store.extraction.settle_contents("nobody", chain("xy")) is None
