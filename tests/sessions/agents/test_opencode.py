from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from golden import LIMIT, describe
from hypothesis import given
from hypothesis import strategies as st
from opencode_store import DUMP, FOLDERS, database, look, message, put, read, session, talk, text, tool

from stillroom.errors import RolloutError
from stillroom.sessions.agents.opencode import reader
from stillroom.sessions.discovery import Broken, Found, Unchanged
from stillroom.sessions.events import Ran


def test_sessions_of_both_stores_are_read_as_expected(tmp_path: Path):
    """Real sessions; after a change on purpose write `describe` anew and read the difference."""
    database(tmp_path)
    assert describe(reader, tmp_path) == (DUMP.parent / "expected.txt").read_text(encoding="utf-8")
    assert describe(reader, FOLDERS) == (FOLDERS / "expected.txt").read_text(encoding="utf-8")


def test_reading_leaves_no_trace(tmp_path: Path):
    path = database(tmp_path)
    before = path.read_bytes(), path.stat().st_mtime_ns
    assert len(look(tmp_path)) == 5
    read(path, "ses_dd8d82547ffeDdoCYso9DF8sM9")
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert [file.name for file in tmp_path.iterdir()] == ["opencode.db"]


def test_nothing_is_new_when_a_store_is_looked_at_again_until_something_is_said(tmp_path: Path):
    shutil.copytree(FOLDERS / "storage", tmp_path / "storage")
    path = database(tmp_path)
    known = {thread.rollout_path: stamp for thread, stamp in look(tmp_path).values()}
    assert len(known) == 8
    assert {type(again) for again in reader.discover(tmp_path, known, max_line_bytes=LIMIT)} == {Unchanged}
    message(path, 9, "user", text("And now?"), of="ses_dd8d82547ffeDdoCYso9DF8sM9")
    part = next((tmp_path / "storage" / "part").glob("*CXol/*.json"), None) or max(
        (tmp_path / "storage" / "part").glob("msg_2272b4df6*/*.json")
    )
    part.write_text(part.read_text(encoding="utf-8") + " ", encoding="utf-8")
    changed = [
        each for each in reader.discover(tmp_path, known, max_line_bytes=LIMIT) if not isinstance(each, Unchanged)
    ]
    assert len(changed) == 2


def test_a_session_that_stands_in_both_stores_is_taken_from_the_database(tmp_path: Path):
    shutil.copytree(FOLDERS / "storage", tmp_path / "storage")
    path = database(tmp_path, empty=True)
    put(path, "session", {"id": "ses_dd8d4b611ffer8vdilyYOurpyW", **_ROW})
    threads = look(tmp_path)
    assert len(threads) == 3
    assert "#" in threads["ses_dd8d4b611ffer8vdilyYOurpyW"][0].rollout_path


def test_a_session_file_may_be_named_itself(tmp_path: Path):
    shutil.copytree(FOLDERS, tmp_path / "data")
    whole = look(tmp_path / "data")
    for path in sorted((tmp_path / "data" / "storage" / "session").glob("*/ses_*.json")):
        (found,) = reader.discover(path, {}, max_line_bytes=LIMIT)
        assert isinstance(found, Found) and whole[found.thread.thread_id] == (found.thread, found.stamp)
    alone = Path(shutil.copy(path, tmp_path))
    (found,) = reader.discover(alone, {}, max_line_bytes=LIMIT)
    assert isinstance(found, Found) and found.thread.preview == "", "its messages lie beside its folder"


def test_what_a_running_client_has_not_moved_into_the_file_yet_is_read(tmp_path: Path):
    path = database(tmp_path, empty=True)
    session(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("UPDATE session SET title = 'from the log'")
        db.commit()
        assert (tmp_path / "opencode.db-wal").stat().st_size
        assert look(tmp_path)["ses_1"][0].title == "from the log"


def test_a_locked_or_damaged_database_is_told_and_its_sessions_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("stillroom.sessions.sqlite_source._TIMEOUT_SECONDS", 0.01)
    path = database(tmp_path)
    known = {thread.rollout_path: stamp for thread, stamp in look(tmp_path).values()}
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        (tmp_path / "opencode.db-wal").write_bytes(b"")
        db.execute("BEGIN EXCLUSIVE")
        locked = list(reader.discover(tmp_path, known, max_line_bytes=LIMIT))
    assert [type(each) for each in locked] == [Broken, *[Unchanged] * 5]
    assert {each.path for each in locked[1:] if isinstance(each, Unchanged)} == known.keys()
    path.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    damaged = list(reader.discover(tmp_path, known, max_line_bytes=LIMIT))
    assert [type(each) for each in damaged] == [Broken, *[Unchanged] * 5]
    with pytest.raises(RolloutError):
        read(path)


def test_what_a_client_has_not_committed_yet_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("stillroom.sessions.sqlite_source._TIMEOUT_SECONDS", 0.01)
    path = database(tmp_path, empty=True)
    session(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("PRAGMA cache_size = 1")
        db.execute("BEGIN")
        db.execute("UPDATE session SET title = ?", ("not yet " * 5000,))  # more than the cache holds: the file changes
        assert [type(each) for each in reader.discover(tmp_path, {}, max_line_bytes=LIMIT)] == [Broken]
        db.execute("ROLLBACK")
    assert look(tmp_path)["ses_1"][0].title != "not yet"


def test_what_the_user_went_back_behind_is_marked(tmp_path: Path):
    path = database(tmp_path, empty=True)
    session(path, revert=json.dumps({"messageID": "msg_0003"}))
    message(path, 1, "user", text("Start."))
    message(path, 2, "assistant", text("Started."))
    message(path, 3, "user", text("Use nose."))
    message(path, 4, "assistant", text("With nose."))
    events, stats = read(path)
    assert [who for who, _ in talk(events)] == ["user", "assistant", "harness", "assistant"]
    assert (stats.superseded, "Use nose." in talk(events)[2][1]) == (1, True)


def test_a_fork_holds_only_its_new_part_while_its_origin_is_there(tmp_path: Path):
    path = database(tmp_path, empty=True)
    session(path)
    message(path, 1, "user", text("A."))
    session(path, 2, time_created=3000)
    put(path, "message", {**_copy("msg_0101", 2001), "data": json.dumps({"role": "user", "time": {"created": 2001}})})
    put(path, "part", {"message_id": "msg_0101", **_copy("prt_1", 3000), "data": json.dumps(text("A."))})
    message(path, 1500, "user", text("B."), of="ses_2")
    assert talk(read(path, "ses_2")[0]) == [("user", "B.")]
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM message WHERE session_id = 'ses_1'")
    assert talk(read(path, "ses_2")[0]) == [("user", "A."), ("user", "B.")]


def test_what_the_client_wrote_is_nobodys_word(tmp_path: Path):
    path = database(tmp_path, empty=True)
    session(path)
    message(path, 1, "user", text("read it", synthetic=True), text("old", ignored=True), {"type": "compaction"})
    message(path, 2, "assistant", text("The user always wants tabs."), summary=True, mode="compaction")
    message(path, 3, "user", text('"Quoted"'), {"type": "file", "mime": "image/png", "url": "data:x"}, {"type": "odd"})
    message(path, 4, "weird", text("hi"))
    events, stats = read(path)
    assert talk(events) == [("user", '"Quoted"')]
    assert stats.unknown == {"user/odd": 1, "message/weird": 1}
    assert (stats.images, stats.dropped) == (1, {"written by the client": 2, "compaction summary": 1})


@pytest.mark.parametrize(
    ("part", "outcome"),
    [
        (tool("bash", input={"command": "x"}, output="o", metadata={"exit": 2}), (2, False, "o")),
        (tool("bash", input={"command": "x"}, output="o", metadata={"exit": None}), (None, False, "o")),
        (
            tool("bash", input={"command": "x"}, output="Exit code: 3\nOutput:\no", metadata={"exit": 0}),
            (0, True, None),
        ),
        (tool("read", input={}, output="Exit code: 3\nOutput:\no"), (None, True, None)),
        (tool("grep", status="error", input={}, error="no such folder"), (None, False, "no such folder")),
        (tool("bash", status="running", input={"command": "x"}), (None, None, "")),
        (tool("edit", input={"filePath": 3}, output="x"), (None, True, "x")),
        (tool("edit", input=[], output="x", metadata=7), (None, True, "x")),
    ],
)
def test_an_outcome_is_what_was_recorded_and_not_what_the_client_calls_it(
    tmp_path: Path, part: dict[str, object], outcome: tuple[int | None, bool | None, str | None]
):
    path = database(tmp_path, empty=True)
    session(path)
    message(path, 1, "assistant", part, part)
    (run,) = read(path)[0]
    assert isinstance(run, Ran)
    assert (run.exit_code, run.ok) == outcome[:2]
    assert outcome[2] is None or run.output == outcome[2]


def test_files_written_are_patches_and_answers_are_the_users(tmp_path: Path):
    path = database(tmp_path, empty=True)
    session(path)
    asked = {"questions": [{"question": "Which?", "options": []}]}
    message(
        path,
        1,
        "assistant",
        tool("write", "c1", input={"filePath": "/w/a.py", "content": "1"}, output="ok"),
        tool("multiedit", "c2", input={"filePath": "/b", "edits": [{"oldString": "1", "newString": "2"}]}, output="ok"),
        tool("question", "c3", input=asked, output="answered", metadata={"answers": [["SQLite"]]}),
        tool("webfetch", "c4", input={"url": "https://x"}, output="words"),
    )
    runs = [event for event in read(path)[0] if isinstance(event, Ran)]
    assert [(edit.action, edit.path, edit.diff) for run in runs for edit in run.edits] == [
        ("add", "a.py", "+1"),
        ("update", "/b", "@@\n-1\n+2"),
    ]
    assert "SQLite" in runs[2].output
    assert runs[2].tool == "request_user_input"


def test_garbage_costs_at_most_its_part(tmp_path: Path):
    path = database(tmp_path, empty=True)
    session(path, revert="[", permission=b"\xff")
    message(path, 1, "user", b"\xff\xfe", "[" * 5000, '{"type":"text","text":"x"},"message":{"role":"user"', text("A."))
    put(path, "message", {"id": "msg_0002", "session_id": "ses_1", **_TIMES, "data": "null"})
    put(
        path,
        "part",
        {"id": "p", "message_id": "msg_0002", "session_id": "ses_1", **_TIMES, "data": json.dumps(text("B."))},
    )
    put(path, "session", {"id": "../../etc", **_ROW})
    events, stats = read(path)
    assert talk(events) == [("user", "A.")]
    assert (stats.bad_lines, stats.unknown) == (3, {"message/": 1})
    assert [type(each) for each in reader.discover(tmp_path, {}, max_line_bytes=LIMIT)].count(Broken) == 1


def test_a_huge_output_is_squeezed_as_it_is_read(tmp_path: Path):
    path = database(tmp_path, empty=True)
    session(path)
    message(path, 1, "assistant", tool("x", input={}, output="QUJD" * 1_000_000), text("Seen."))
    events, stats = read(path, limit=64 * 1024)
    assert [type(event).__name__ for event in events] == ["Ran", "Said"]
    assert (stats.long_lines, stats.cut_bytes > 3_900_000) == (1, True)


@pytest.mark.slow
@given(at=st.floats(0, 1), bytes_=st.lists(st.tuples(st.floats(0.01, 1), st.integers(0, 255)), max_size=300))
def test_a_database_that_is_damaged_anywhere_is_told_and_raises_nothing(tmp_path_factory, at: float, bytes_):
    home = tmp_path_factory.mktemp("damaged")
    path = database(home)
    data = bytearray(path.read_bytes())
    for place, byte in bytes_:
        data[int(place * (len(data) - 1))] = byte
    path.write_bytes(data if bytes_ else data[: int(at * len(data))])
    for thread, _ in look(home).values():
        try:
            with reader.open_items(Path(thread.rollout_path), max_line_bytes=LIMIT) as items:
                for _ in items:
                    pass
        except RolloutError:
            continue


@pytest.mark.parametrize("name", ["session", "message", "part"])
def test_a_file_cut_anywhere_costs_at_most_itself(tmp_path: Path, name: str):
    shutil.copytree(FOLDERS / "storage", tmp_path / "storage")
    file = max((tmp_path / "storage" / name).rglob("*.json"))
    whole = file.read_bytes()
    for at in range(0, len(whole), 41):
        file.write_bytes(whole[:at])
        threads = look(tmp_path)
        assert len(threads) == (2 if name == "session" else 3)
        for thread, _ in threads.values():
            with reader.open_items(Path(thread.rollout_path), max_line_bytes=LIMIT) as items:
                assert list(items)


_ROW = {
    "project_id": "p",
    "slug": "s",
    "directory": "/w",
    "title": "t",
    "version": "1",
    "time_created": 1000,
    "time_updated": 1000,
}
_TIMES = {"time_created": 2002, "time_updated": 2002}


def _copy(name: str, at: int) -> dict[str, object]:
    return {"id": name, "session_id": "ses_2", "time_created": at, "time_updated": 3000}
