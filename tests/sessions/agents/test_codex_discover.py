from __future__ import annotations

import json
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from stillroom.config import Reading
from stillroom.sessions.agents.codex import State, described_otherwise, discover, state_threads
from stillroom.sessions.discovery import Broken, Found, Unchanged
from stillroom.thread import FileStamp, Thread

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples/codex-home"
SCHEMA = ROOT / "tests/data/codex/state_5.sqlite.sql"
ID = "01a2273c-0036-7133-90f0-7698c74b216a"
OTHER_ID = "01a2273c-0761-7c02-b133-ea717e072038"
NAME = f"rollout-2026-11-29T12-16-13-{ID}.jsonl"


def line(payload: object, *, type: str, second: int = 0) -> bytes:
    record = {"timestamp": f"2026-11-29T12:16:{second:02}.000Z", "type": type, "payload": payload}
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def meta(*, second: int = 0, **fields: object) -> bytes:
    payload = {"id": ID, "timestamp": "2026-11-29T12:16:00.000Z", "cwd": "/w", "source": "cli", **fields}
    return line(payload, type="session_meta", second=second)


def user(text: str, *, second: int = 1) -> bytes:
    payload = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return line(payload, type="response_item", second=second)


def write(home: Path, data: bytes, *, name: str = NAME, folder: str = "sessions/2026/11/29") -> Path:
    path = home / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def look(home: Path, known: dict[str, FileStamp] | None = None) -> Found:
    (found,) = discover(home, known or {})
    assert isinstance(found, Found), found
    return found


def known(found: Found) -> dict[str, FileStamp]:
    return {found.thread.rollout_path: found.stamp}


def state(home: Path, **row: object) -> None:
    full = {
        "id": ID,
        "rollout_path": "",
        "created_at": 1,
        "updated_at": 1,
        "source": "cli",
        "model_provider": "p",
        "cwd": "/w",
        "title": "",
        "sandbox_policy": "",
        "approval_mode": "",
        **row,
    }
    with closing(sqlite3.connect(home / "state_5.sqlite")) as db:
        db.executescript(SCHEMA.read_text(encoding="utf-8").replace("CREATE TABLE sqlite_sequence(name,seq);", ""))
        columns, marks = ", ".join(full), ", ".join("?" * len(full))
        db.execute(f"INSERT INTO threads ({columns}) VALUES ({marks})", tuple(full.values()))
        db.commit()


def test_the_example_sessions_are_found() -> None:
    found = [entry for entry in discover(EXAMPLE, {}) if isinstance(entry, Found)]
    assert len(found) == 6
    threads = {entry.thread.thread_id: entry.thread for entry in found}
    assert threads[ID] == Thread(
        thread_id=ID,
        agent="codex",
        rollout_path=str(EXAMPLE / "sessions/2026/11/29" / NAME),
        source="vscode",
        cwd="/home/dev/work/ledgerkit",
        created_at_ms=1795954573377,
        updated_at_ms=1795954575185,
        preview="The split_evenly test in ledgerkit is failing. Please find out why and fix it. Don't touch the tests.",
        git_branch="main",
        git_sha="93ad6150a58a044a1605f116d93f146eb624afc1",
        cli_version="0.171.0",
        model_provider="mock",
    )
    again = list(discover(EXAMPLE, {entry.thread.rollout_path: entry.stamp for entry in found}))
    assert again == [Unchanged(entry.thread.rollout_path) for entry in found]


def test_a_home_without_sessions_has_none(tmp_path: Path) -> None:
    assert list(discover(tmp_path / "nowhere", {})) == []


def test_the_first_meta_line_is_who_the_thread_is(tmp_path: Path) -> None:
    write(tmp_path, meta() + meta(id=OTHER_ID, source="exec", memory_mode="disabled", cwd="/x") + user("hello"))
    thread = look(tmp_path).thread
    assert (thread.thread_id, thread.source, thread.cwd, thread.memory_mode) == (ID, "cli", "/w", "enabled")


@pytest.mark.parametrize(
    ("fields", "source"),
    [
        ({"source": "vscode"}, "vscode"),
        ({"source": "exec"}, "exec"),
        ({"source": {"custom": "atlas"}}, '{"custom":"atlas"}'),
        ({"source": {"subagent": "review"}}, '{"subagent":"review"}'),
        ({"source": {"internal": "memory_consolidation"}}, '{"internal":"memory_consolidation"}'),
        ({"source": "cli", "thread_source": "user"}, "cli"),
        ({"source": "cli", "thread_source": "subagent"}, '{"subagent":"other"}'),
        ({"source": "cli", "thread_source": "memory_consolidation"}, '{"internal":"memory_consolidation"}'),
        ({"source": "cli", "parent_thread_id": OTHER_ID, "agent_nickname": "Kepler"}, '{"subagent":"other"}'),
        ({"source": None}, "vscode"),
    ],
)
def test_sources_that_are_no_person_at_a_client_are_told_apart(
    tmp_path: Path, fields: dict[str, object], source: str
) -> None:
    write(tmp_path, meta(**fields) + user("hello"))
    assert look(tmp_path).thread.source == source


def test_the_preview_is_the_first_thing_that_a_person_said(tmp_path: Path) -> None:
    texts = [
        "# AGENTS.md instructions for /w\n<INSTRUCTIONS>x</INSTRUCTIONS>",
        "<environment_context>x</environment_context>",
        "<stillroom-memory>old</stillroom-memory>",
        "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nfix\n  the " + "x" * 300,
    ]
    write(tmp_path, meta() + b"".join(user(text) for text in texts))
    preview = look(tmp_path).thread.preview
    assert preview.startswith("fix the xxx") and len(preview) == 200


def test_without_words_of_a_person_there_is_no_preview(tmp_path: Path) -> None:
    write(tmp_path, meta() + user("<environment_context>x</environment_context>"))
    assert look(tmp_path).thread.preview == ""


LONG = 20 * 1024 * 1024


@pytest.mark.slow
def test_a_first_line_of_20_mb_hides_neither_thread_nor_preview(tmp_path: Path) -> None:
    write(tmp_path, meta(base_instructions={"text": "obey me " * (LONG // 8)}) + user("hello"))
    thread = look(tmp_path).thread
    assert (thread.thread_id, thread.preview) == (ID, "hello")


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["", ".zst"])
def test_an_early_output_of_20_mb_does_not_hide_the_preview(tmp_path: Path, ending: str) -> None:
    output = {"type": "function_call_output", "call_id": "c", "output": "a log \n" * (LONG // 8)}
    data = meta() + line(output, type="response_item") + user("hello")
    write(tmp_path, zstd.compress(data) if ending else data, name=NAME + ending)
    assert look(tmp_path).thread.preview == "hello"


@pytest.mark.slow
def test_an_image_of_20_mb_does_not_hide_what_was_said_with_it(tmp_path: Path) -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64," + "iVBORw0KGgo" * (LONG // 11)}
    content = [image, {"type": "input_text", "text": "what is this?"}]
    write(tmp_path, meta() + line({"type": "message", "role": "user", "content": content}, type="response_item"))
    assert look(tmp_path).thread.preview == "what is this?"


@pytest.mark.slow
def test_first_words_are_not_looked_for_without_end_nor_where_the_table_has_them(tmp_path: Path) -> None:
    reading = Reading(head_bytes=1000, long_head_bytes=50_000)
    context = user("<environment_context>x</environment_context>")
    write(tmp_path, meta() + context * 100 + user("hello"))
    (found,) = discover(tmp_path, {}, reading=reading)
    assert isinstance(found, Found) and found.thread.preview == "hello"
    state(tmp_path, preview="From the table")
    (found,) = discover(tmp_path, {}, reading=reading)
    assert isinstance(found, Found) and found.thread.preview == "From the table"
    (tmp_path / "state_5.sqlite").unlink()
    write(tmp_path, meta() + context * 1000 + user("hello"))
    (found,) = discover(tmp_path, {}, reading=reading)
    assert isinstance(found, Found) and found.thread.preview == ""


def test_the_last_line_tells_when_the_thread_was_active(tmp_path: Path) -> None:
    write(tmp_path, meta() + user("hello", second=7) + b'{"timestamp":"2026-11-29T12:16:09.000Z","type":"event_m')
    thread = look(tmp_path).thread
    assert thread.created_at_ms == 1795954560000
    assert thread.updated_at_ms in (1795954567000, 1795954569000)


def test_without_times_the_file_system_tells(tmp_path: Path) -> None:
    path = write(tmp_path, b'{"type":"session_meta","payload":{"id":"%s"}}\n' % ID.encode())
    os.utime(path, (1_800_000_000, 1_800_000_000))
    thread = look(tmp_path).thread
    assert (thread.created_at_ms, thread.updated_at_ms) == (1_800_000_000_000, 1_800_000_000_000)


def test_a_file_with_the_known_stamp_is_not_opened(tmp_path: Path) -> None:
    path = write(tmp_path, meta() + user("hello"))
    stamps = known(look(tmp_path))
    before = path.stat()
    path.write_bytes(b"\0" * before.st_size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert list(discover(tmp_path, stamps)) == [Unchanged(str(path))]


def test_what_was_appended_changes_mode_branch_and_time(tmp_path: Path) -> None:
    path = write(tmp_path, meta(git={"branch": "main"}) + user("hello"))
    first = look(tmp_path)
    assert (first.thread.memory_mode, first.thread.git_branch) == ("enabled", "main")
    with path.open("ab") as file:
        file.write(meta(memory_mode="disabled", git={"branch": "topic"}, second=30) + user("more", second=31))
    second = look(tmp_path, known(first))
    assert (second.thread.memory_mode, second.thread.git_branch) == ("disabled", "topic")
    assert second.thread.updated_at_ms == 1795954560000 + 31_000
    with path.open("ab") as file:
        file.write(user("x" * 300_000, second=40) + user("still", second=41))
    third = look(tmp_path, known(second))
    assert (third.thread.memory_mode, third.thread.git_branch) == ("disabled", "topic")
    assert third.thread.updated_at_ms == 1795954560000 + 41_000


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
def test_the_next_look_begins_at_the_line_with_news(tmp_path: Path, start: bytes) -> None:
    news = meta(second=5, memory_mode="disabled")
    data = start + meta() + user("hi") + meta(second=4, id=OTHER_ID) + news + user("x") * 3
    write(tmp_path, data)
    found = look(tmp_path)
    assert found.stamp.offset == data.index(news)
    assert found.thread.memory_mode == "disabled"
    write(tmp_path, data + user("torn")[:-3])
    assert look(tmp_path, known(found)).stamp.offset == data.index(news)


def test_a_file_that_shrank_is_read_anew(tmp_path: Path) -> None:
    write(tmp_path, meta() + user("hello") * 10)
    first = look(tmp_path)
    write(tmp_path, meta(cwd="/new") + user("other", second=9))
    second = look(tmp_path, known(first))
    assert (second.thread.cwd, second.thread.preview) == ("/new", "other")
    assert second.thread.updated_at_ms == 1795954569000


def test_a_compressed_rollout_has_the_path_and_the_times_of_the_plain_one(tmp_path: Path) -> None:
    data = meta() + user("hello", second=5) + user("x" * 400_000, second=6) + user("bye", second=7)
    path = write(tmp_path, data)
    plain = look(tmp_path)
    path.unlink()
    write(tmp_path, zstd.compress(data), name=NAME + ".zst")
    compressed = look(tmp_path, known(plain))
    assert compressed.thread == plain.thread
    write(tmp_path, data)
    assert look(tmp_path).stamp.size == len(data)


def test_of_a_reverted_thread_only_the_newest_rollout_counts(tmp_path: Path) -> None:
    old = write(tmp_path, meta() + user("old"))
    new = write(tmp_path, meta() + user("new"), name=NAME.replace(".jsonl", f"_{OTHER_ID}.jsonl"))
    os.utime(old, (1, 1))
    os.utime(new, (2, 2))
    assert look(tmp_path).thread.preview == "new"


def test_an_archived_thread_says_so(tmp_path: Path) -> None:
    write(tmp_path, meta() + user("hello"), folder="archived_sessions")
    assert look(tmp_path).thread.archived


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "holds no line"),
        (b"\n\n", "holds no line"),
        (b"\x7fELF\x00\x01\n\x00\xff\n", "it has no `session_meta` line"),
        (meta()[:50], "its first line is not complete"),
        (user("hello"), "it has no `session_meta` line"),
        (meta(id="../../etc/passwd"), "is no thread id"),
        (meta(id=7, session_id=None), "is no thread id"),
    ],
)
def test_a_broken_file_is_reported_and_stops_nothing(tmp_path: Path, data: bytes, reason: str) -> None:
    broken = write(tmp_path, data, name=NAME.replace(ID, OTHER_ID))
    os.utime(broken, (1, 1))
    write(tmp_path, meta() + user("hello"))
    first, second = discover(tmp_path, {})
    assert isinstance(first, Broken) and first.path == str(broken) and reason in first.reason
    assert isinstance(second, Found)


@pytest.mark.parametrize("data", [b"not zstd at all", zstd.compress(meta() + user("hello"))[:-20]])
def test_a_damaged_archive_is_reported_by_its_name(tmp_path: Path, data: bytes) -> None:
    write(tmp_path, data, name=NAME + ".zst")
    (broken,) = discover(tmp_path, {})
    assert isinstance(broken, Broken)
    assert f"{NAME}.zst` is damaged: " in broken.reason


def test_a_file_that_is_no_rollout_is_not_looked_at(tmp_path: Path) -> None:
    write(tmp_path, b"x", name="notes.jsonl")
    (tmp_path / "sessions/2026/11/29" / NAME).mkdir()
    os.mkfifo(tmp_path / "sessions/2026/11/29" / NAME.replace(ID, OTHER_ID))
    assert list(discover(tmp_path, {})) == []


@pytest.mark.parametrize("ending", ["", ".zst"])
def test_a_link_that_leads_to_itself_is_reported_and_stops_nothing(tmp_path: Path, ending: str) -> None:
    write(tmp_path, meta() + user("hello"))
    loop = tmp_path / "sessions/2026/11/29" / NAME.replace(ID, OTHER_ID)
    loop.with_name(loop.name + ending).symlink_to(loop.name + ending)
    (tmp_path / "sessions/2027").symlink_to("2027")
    broken, found = discover(tmp_path, {})
    assert isinstance(broken, Broken) and broken.path == str(loop) and "can't be looked at" in broken.reason
    assert isinstance(found, Found)


def test_a_link_to_a_rollout_is_followed(tmp_path: Path) -> None:
    write(tmp_path, meta() + user("hello"), folder="elsewhere")
    link = tmp_path / "sessions/2026/11/29" / NAME
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "elsewhere" / NAME)
    assert look(tmp_path).thread.rollout_path == str(link)


def test_a_rollout_that_becomes_a_named_pipe_during_the_scan_is_reported(tmp_path: Path) -> None:
    os.utime(write(tmp_path, meta() + user("hello")), (1, 1))
    other = write(tmp_path, meta(id=OTHER_ID) + user("hello"), name=NAME.replace(ID, OTHER_ID))
    scan = discover(tmp_path, {})
    assert isinstance(next(scan), Found)
    other.unlink()
    os.mkfifo(other)
    (broken,) = scan
    assert isinstance(broken, Broken) and broken.path == str(other) and "no ordinary file" in broken.reason


def test_a_state_database_that_is_a_named_pipe_is_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "state_9.sqlite")
    assert state_threads(tmp_path) == State(None, {})


def test_the_state_database_overrides_the_rollout(tmp_path: Path) -> None:
    write(tmp_path, meta() + user("hello"))
    state(
        tmp_path,
        source="exec",
        memory_mode="polluted",
        title="A title",
        preview="From the table",
        archived=1,
        git_branch="topic",
        updated_at=1_795_000_000,
        updated_at_ms=1_795_000_000_123,
    )
    thread = look(tmp_path).thread
    assert (thread.source, thread.memory_mode, thread.title) == ("exec", "polluted", "A title")
    assert (thread.preview, thread.archived, thread.git_branch) == ("From the table", True, "topic")
    assert thread.updated_at_ms == 1_795_000_000_123


def test_an_older_state_database_gives_what_it_has(tmp_path: Path) -> None:
    write(tmp_path, meta() + user("hello"))
    with closing(sqlite3.connect(tmp_path / "state_3.sqlite")) as db:
        db.execute("CREATE TABLE threads (id TEXT, updated_at INTEGER)")
        db.execute("INSERT INTO threads VALUES (?, 1795000000), (NULL, 1)", (ID,))
        db.commit()
    thread = look(tmp_path).thread
    assert (thread.updated_at_ms, thread.preview) == (1_795_000_000_000, "hello")


def test_the_highest_state_database_is_read(tmp_path: Path) -> None:
    state(tmp_path, title="five")
    (tmp_path / "state_5.sqlite").rename(tmp_path / "state_10.sqlite")
    state(tmp_path, title="other")
    assert state_threads(tmp_path).rows[ID]["title"] == "five"


def test_a_state_database_that_is_none_is_reported_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "state_5.sqlite").write_bytes(b"not a database, but long enough to be looked at" * 40)
    write(tmp_path, meta() + user("hello"))
    first, second = discover(tmp_path, {})
    assert isinstance(first, Broken) and first.path.endswith("state_5.sqlite")
    assert isinstance(second, Found)


def test_a_change_in_the_table_alone_is_seen(tmp_path: Path) -> None:
    write(tmp_path, meta() + user("hello"))
    thread = look(tmp_path).thread
    assert list(described_otherwise(state_threads(tmp_path), [thread])) == []
    state(tmp_path, memory_mode="polluted", updated_at=thread.updated_at, updated_at_ms=thread.updated_at_ms)
    assert list(described_otherwise(state_threads(tmp_path), [thread])) == [
        msgspec.structs.replace(thread, memory_mode="polluted")
    ]


def test_the_state_database_is_not_changed(tmp_path: Path) -> None:
    state(tmp_path)
    with closing(sqlite3.connect(tmp_path / "state_5.sqlite")) as db:
        db.execute("PRAGMA journal_mode=WAL")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert ID in state_threads(tmp_path).rows
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.suffix == ".sqlite"} == before


def test_a_mode_that_a_newer_codex_may_know_is_no_leave(tmp_path: Path) -> None:
    write(tmp_path, meta(memory_mode="only_here") + user("Hello"))
    assert look(tmp_path).thread.memory_mode == "disabled"
    write(tmp_path, meta() + user("Hello"))
    state(tmp_path, memory_mode="only_here")
    assert look(tmp_path).thread.memory_mode == "disabled"


def test_reading_the_state_database_leaves_nothing_beside_it(tmp_path: Path) -> None:
    write(tmp_path, meta() + user("Hello"))
    state(tmp_path, title="Theirs")
    with closing(sqlite3.connect(tmp_path / "state_5.sqlite")) as db:
        db.execute("PRAGMA journal_mode = WAL")
    before = sorted(entry.name for entry in tmp_path.iterdir())
    assert look(tmp_path).thread.title == "Theirs"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == before


def test_what_codex_has_not_yet_written_back_is_read(tmp_path: Path) -> None:
    write(tmp_path, meta() + user("Hello"))
    state(tmp_path, title="Old")
    with closing(sqlite3.connect(tmp_path / "state_5.sqlite", isolation_level=None)) as codex:
        codex.execute("PRAGMA journal_mode = WAL")
        codex.execute("UPDATE threads SET title = 'New'")
        assert look(tmp_path).thread.title == "New"
