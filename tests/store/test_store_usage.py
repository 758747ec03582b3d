from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from store_samples import DAY, NOW, STAMP, extract, save, selected_ids, thread

from stillroom.clock import FixedClock
from stillroom.store import Store, Use
from stillroom.thread import FileStamp


def cited(*used: str, digest: bytes = b"d", nth: int | None = 1, at: int = NOW) -> Use:
    return Use(kind="citation", digest=digest, nth=nth, at=at, used=used)


def usage(store: Store) -> dict[str, tuple[int, int | None]]:
    return {output.thread_id: (output.usage_count, output.last_usage) for output in store.outputs.latest()}


def test_a_use_counts_once_however_often_it_is_given(store: Store) -> None:
    extract(store, "a")
    extract(store, "b")
    assert [done.counted for done in store.uses.record("s", [cited("a", "unknown", "b")])] == [("a", "b")]
    assert store.uses.record("s", [cited("a", "b"), cited("a", "b")]) == []
    assert usage(store) == {"a": (1, NOW), "b": (1, NOW)}
    # Said a second time, or by another session, it is another use.
    assert len(store.uses.record("s", [cited("a", nth=2), cited("a", nth=2), cited("a", digest=b"e")])) == 2
    assert len(store.uses.record("t", [cited("a")])) == 1
    assert usage(store)["a"] == (4, NOW)
    assert store.uses.known("s") == {(b"d", 1), (b"d", 2), (b"e", 1)}


def test_a_use_without_a_number_is_one_more(store: Store) -> None:
    extract(store, "a")
    for _ in range(2):
        assert len(store.uses.record("", [cited("a", nth=None)])) == 1
    assert store.uses.known("") == {(b"d", 1), (b"d", 2)}


def test_the_last_use_is_the_latest_whatever_the_order(store: Store) -> None:
    extract(store, "a")
    store.uses.record("s", [cited("a", at=NOW - DAY)])
    store.uses.record("s", [cited("a", at=NOW - 9 * DAY, nth=2)])
    assert usage(store) == {"a": (2, NOW - DAY)}


def test_what_a_command_read_is_kept_and_counts_nothing(store: Store, tmp_path: Path) -> None:
    extract(store, "a")
    read = Use(kind="command", digest=b"c", nth=1, at=NOW, used=("memory_md", "skills"))
    store.uses.record("s", [read, cited("a", "odd\udcff")])
    assert usage(store) == {"a": (1, NOW)}
    db = sqlite3.connect(tmp_path / "state.sqlite3")
    rows = db.execute("SELECT kind, counted FROM memory_uses ORDER BY kind").fetchall()
    db.close()
    assert [(kind, json.loads(counted)) for kind, counted in rows] == [
        ("citation", ["a"]),
        ("command", ["memory_md", "skills"]),
    ]


def test_a_session_is_searched_again_only_when_its_file_changes(store: Store) -> None:
    save(store, thread("new", updated_at=NOW - DAY), thread("old", updated_at=NOW - 9 * DAY))
    due = store.uses.unsearched()
    assert [found.thread_id for found, _ in due] == ["old", "new"]  # oldest first
    store.uses.record("old", [], stamp=due[0][1])
    store.uses.mark_searched([("new", due[1][1]), ("never seen", STAMP)])
    assert store.uses.unsearched() == []
    store.threads.save([(thread("new"), FileStamp(size=11, mtime_ns=20))])
    assert [found.thread_id for found, _ in store.uses.unsearched()] == ["new"]


def test_sessions_that_are_gone_are_not_searched(store: Store) -> None:
    save(store, thread("s"), thread("t"))
    store.threads.mark_missing("codex", ["/sessions/s.jsonl"])
    assert [found.thread_id for found, _ in store.uses.unsearched()] == ["s"]


def test_uses_lead_the_selection(store: Store, clock: FixedClock) -> None:
    for name in ("a", "b", "c"):
        extract(store, name, at=NOW - 2 * DAY)
    store.uses.record("s", [cited("a", digest=b"1"), cited("a", digest=b"2"), cited("b", digest=b"3")])
    assert selected_ids(store) == ["a", "b", "c"]
    clock.advance(seconds=31 * DAY)
    assert selected_ids(store) == []
