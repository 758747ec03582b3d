from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from golden import DATA, LIMIT, describe, placeless, read, seen_again
from hypothesis import given
from hypothesis import strategies as st

from stillroom.errors import RolloutError
from stillroom.sessions.agents import langchain as reader
from stillroom.sessions.discovery import Broken, Found, Unchanged
from stillroom.sessions.events import Ran

SAMPLES = DATA / "langchain"
DUMP = SAMPLES / "checkpoint-sqlite-3.1.2" / "checkpoints.sql"
FILES = SAMPLES / "messages_to_dict"
pack = msgspec.msgpack.encode


def database(folder: Path, *, empty: bool = False) -> Path:
    path = folder / "checkpoints.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(DUMP.read_text(encoding="utf-8"))
        if empty:
            db.execute("DELETE FROM checkpoints")
            db.commit()
    return path


def message(kind: str, text: object, key: str, **fields: object) -> msgspec.msgpack.Ext:
    """As LangGraph stores an object of LangChain's."""
    kinds = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage", "system": "SystemMessage"}
    told = {"type": kind, "content": text, "id": key, **fields}
    return msgspec.msgpack.Ext(5, pack([f"langchain_core.messages.{kind}", kinds[kind], told, "model_validate_json"]))


def checkpoint(
    path: Path,
    number: int,
    messages: object,
    *,
    after: int | None = None,
    thread: str = "t",
    inside: str = "",
    **channels: object,
) -> None:
    """A checkpoint whose id, as the real ones, is ordered by time."""
    blob = (
        messages
        if isinstance(messages, bytes)
        else pack({"v": 4, "channel_values": {**channels, "messages": messages}})
    )
    row = (thread, inside, _id(number), _id(after) if after else None, "msgpack", blob, b"{}")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def _id(number: int) -> str:
    return f"1f1ebefa-b197-6{number:03d}-8000-64d206578fa0"


def thread(path: Path, name: str = "t") -> Path:
    return path.with_name(f"{path.name}#{name}")


def look(root: Path) -> dict[str, Found]:
    found = [each for each in reader.discover(root, {}, max_line_bytes=LIMIT) if isinstance(each, Found)]
    return {each.thread.title: each for each in found}


def test_threads_are_read_as_expected_and_are_not_new_the_second_time(tmp_path: Path):
    """Real files; after a change on purpose write `describe` anew and read the difference."""
    path = database(tmp_path)
    before = path.read_bytes()
    assert placeless(describe(reader, tmp_path)) == (DUMP.parent / "expected.txt").read_text(encoding="utf-8")
    assert placeless(describe(reader, FILES)) == (FILES / "expected.txt").read_text(encoding="utf-8")
    assert seen_again(reader, tmp_path) == seen_again(reader, FILES) == {Unchanged}
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoints.sqlite"]


def test_a_thread_is_new_again_when_it_has_another_checkpoint(tmp_path: Path):
    path = database(tmp_path)
    known = {each.thread.rollout_path: each.stamp for each in look(path).values()}
    checkpoint(path, 1, [message("human", "Hi.", "m1")])
    (again,) = [each for each in reader.discover(path, known, max_line_bytes=LIMIT) if isinstance(each, Found)]
    assert (again.thread.title, again.thread.preview) == ("t", "Hi.")
    # The time is that of the checkpoint's id.
    assert again.thread.updated_at_ms == 1795955002547


def test_a_graph_inside_of_a_graph_is_a_sub_agent(tmp_path: Path):
    path = database(tmp_path, empty=True)
    checkpoint(path, 1, [message("human", "Fix it.", "m1")])
    checkpoint(path, 2, [message("human", "Look for it.", "m2")], inside="finder:1f1e")
    found = look(tmp_path)
    inner, outer = found["finder:1f1e"].thread, found["t"].thread
    assert (inner.parent_thread_id, inner.source, inner.preview) == (outer.thread_id, '{"subagent":"finder"}', "")
    assert read(reader, Path(inner.rollout_path))[0] == [("agent", "Look for it.")]
    assert read(reader, Path(outer.rollout_path))[0] == [("user", "Fix it.")]


def test_what_the_program_went_back_from_is_taken_back_and_what_a_summary_replaced_is_read(tmp_path: Path):
    path = database(tmp_path, empty=True)
    start, started = message("human", "Start.", "m1"), message("ai", "Started.", "m2")
    checkpoint(path, 1, [start])
    checkpoint(path, 2, [start, started], after=1)
    checkpoint(path, 3, [start, started, message("human", "Use nose.", "m3"), message("ai", "Nose.", "m4")], after=2)
    checkpoint(path, 4, [start, started, message("human", "Use pytest.", "m5")], after=2)
    summary = message("human", "Here is …", "m6", additional_kwargs={"lc_source": "summarization"})
    older = message("human", "Here is a summary of the conversation to date:\n\nThey want nose.", "m7")
    checkpoint(path, 5, [summary, older, message("ai", "Done.", "m8")], after=4)
    checkpoint(path, 6, [summary, older, message("ai", "Done.", "m8"), message("human", "Thanks.", "m9")], after=5)
    said, _, stats = read(reader, thread(path))
    assert [who for who, _ in said] == ["user", "assistant", "harness", "assistant", "user", "assistant", "user"]
    assert "Use nose." in said[2][1]
    assert [text for who, text in said if who == "user"] == ["Start.", "Use pytest.", "Thanks."]
    assert (stats.superseded, stats.dropped["compaction summary"]) == (1, 2)


def test_only_messages_are_made_of_objects(tmp_path: Path):
    path = database(tmp_path, empty=True)
    other = msgspec.msgpack.Ext(5, pack(["os", "system", {"type": "human", "content": "rm -rf /"}, "model_validate"]))
    short = msgspec.msgpack.Ext(
        4, pack(["langchain.schema.messages", "HumanMessage", {"type": "human", "content": "Old."}])
    )
    number = msgspec.msgpack.Ext(0, pack(["uuid", "UUID", "12"]))
    named = message("human", "Found two.", "m3", name="researcher")
    mine = message("human", [{"type": "text", "text": "Hi."}, {"type": "image_url"}], "m2", odd=number)
    checkpoint(
        path,
        1,
        [message("system", "Be brief.", "m1"), mine, other, named, short, {"role": "user", "content": "Plain."}, 7],
    )
    said, _, stats = read(reader, thread(path))
    assert said == [("user", "Hi."), ("agent", "Found two."), ("user", "Old."), ("user", "Plain.")]
    assert stats.unknown == {"message/os.system": 1}
    assert (stats.images, stats.dropped, stats.bad_lines) == (1, {"instructions": 1}, 1)


def test_pickles_are_not_read_and_other_channels_only_without_the_usual_one(tmp_path: Path):
    path = database(tmp_path, empty=True)
    checkpoint(path, 1, [message("human", "Hi.", "m1")], scratch=[message("human", "Think.", "m2")])
    checkpoint(path, 1, None, thread="u", history=[message("human", "Ho.", "m1")], numbers=[1, 2])
    checkpoint(path, 1, b"cos\nsystem\n(S'true'\ntR.", thread="p")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE checkpoints SET type = 'pickle' WHERE thread_id = 'p'")
    assert [read(reader, thread(path, name))[0] for name in "tu"] == [[("user", "Hi.")], [("user", "Ho.")]]
    assert look(path)["p"].thread.preview == ""
    assert read(reader, thread(path, "p"))[2].unknown == {"message/checkpoint/pickle": 1}


@pytest.mark.parametrize(
    ("content", "status", "outcome"),
    [
        ("fine", "success", (None, None)),
        ("no such table", "error", (None, False)),
        ('{"returncode": 3, "output": "x"}', "success", (3, False)),
        ("x\nExit code: 4\n", "success", (4, False)),
        ([{"type": "text", "text": "fine"}], None, (None, None)),
    ],
)
def test_an_outcome_is_what_the_result_tells(tmp_path: Path, content: object, status: str | None, outcome: object):
    call = {"name": "bash", "args": {"command": "x"}, "id": "c1", "type": "tool_call"}
    path = database(tmp_path, empty=True)
    answer = message("tool", content, "m2", tool_call_id="c1", status=status)
    checkpoint(path, 1, [message("ai", "", "m1", tool_calls=[call, 7]), answer])
    (run,) = read(reader, thread(path))[1]
    assert isinstance(run, Ran)
    assert (run.command, run.exit_code, run.ok) == ("x", *outcome)


def test_every_form_of_a_message_in_a_file_is_read(tmp_path: Path):
    told = {"content": "One.", "type": "human"}
    lines = [
        {"type": "human", "data": told},
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "messages", "HumanMessage"],
            "kwargs": {"content": "Two."},
        },
        {"role": "user", "content": "Three."},
        {"type": "chat", "data": {"role": "user", "content": "Four."}},
        {
            "type": "ai",
            "data": {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Five."}]},
        },
        {"type": "what", "data": {}},
    ]
    path = tmp_path / "talk.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"type":', encoding="utf-8")
    said, _, stats = read(reader, path)
    assert [text for _, text in said] == ["One.", "Two.", "Three.", "Four.", "Five."]
    assert stats.unknown == {"message/what": 1}
    (tmp_path / "package.json").write_text('{"name": "x"}', encoding="utf-8")
    (tmp_path / "other.json").write_text("[1, 2]", encoding="utf-8")
    (tmp_path / "none.json").write_text("none", encoding="utf-8")
    found = list(reader.discover(tmp_path, {}, max_line_bytes=LIMIT))
    assert sorted(type(each).__name__ for each in found) == ["Broken", "Found"]


def test_a_message_that_is_too_long_is_left_out_and_told(tmp_path: Path):
    path = database(tmp_path, empty=True)
    checkpoint(path, 1, [message("human", "A" * 100_000, "m1"), message("human", "B", "m2")])
    with reader.open_items(thread(path), max_line_bytes=64 * 1024) as items:
        assert len(list(items)) == 1
        assert (items.stats.long_lines, items.stats.cut_bytes > 100_000) == (1, True)


def test_a_locked_or_damaged_database_is_told_and_its_threads_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("stillroom.sessions.sqlite_source._TIMEOUT_SECONDS", 0.01)
    path = database(tmp_path)
    known = {each.thread.rollout_path: each.stamp for each in look(path).values()}
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        (tmp_path / f"{path.name}-wal").write_bytes(b"")
        db.execute("BEGIN EXCLUSIVE")
        locked = list(reader.discover(path, known, max_line_bytes=LIMIT))
    assert [type(each) for each in locked] == [Broken, Unchanged]
    path.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    with pytest.raises(RolloutError):
        read(reader, thread(path))


_NUMBERS = st.integers(-(2**40), 2**40)
_VALUES = st.recursive(
    st.none() | st.booleans() | _NUMBERS | st.floats() | st.text(max_size=3) | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=20)
        | st.dictionaries(st.sampled_from(["messages", "channel_values", "type", "content", "id"]) | _NUMBERS, inner)
        | st.builds(lambda code, value: msgspec.msgpack.Ext(code, pack(value)), st.integers(0, 7), inner)
    ),
    max_leaves=20,
)


@pytest.mark.slow
@given(value=_VALUES)
def test_any_state_is_walked_as_far_as_it_is_one(tmp_path_factory, value: object):
    path = database(tmp_path_factory.mktemp("any"), empty=True)
    checkpoint(path, 1, [message("human", "Hi.", "m1"), value, message("human", "Ho.", "m2")], odd=value)
    said, _, _ = read(reader, thread(path))
    assert (said[0], said[-1]) == (("user", "Hi."), ("user", "Ho."))


@pytest.mark.slow
@given(cut=st.floats(0, 1), byte=st.integers(0, 255), broken=st.booleans())
def test_a_damaged_checkpoint_raises_nothing(tmp_path_factory, cut: float, byte: int, broken: bool):
    path = database(tmp_path_factory.mktemp("damaged"))
    with closing(sqlite3.connect(path)) as db, db:
        rowid, blob = db.execute("SELECT max(rowid), checkpoint FROM checkpoints").fetchone()
        at = int(cut * (len(blob) - 1))
        damaged = blob[:at] + (b"" if broken else bytes([byte]) + blob[at + 1 :])
        db.execute("UPDATE checkpoints SET checkpoint = ? WHERE rowid = ?", (damaged, rowid))
    said, _, _ = read(reader, thread(path, "demo-thread-1"))
    assert len(said) >= 3  # the checkpoints before have the most


def test_a_name_that_is_like_a_fragment_is_a_files(tmp_path: Path):
    for name in (".#talk.json", "a#b.json", "#.json"):
        (tmp_path / name).write_text('[{"role": "user", "content": "Hi."}]', encoding="utf-8")
    assert {each.thread.preview for each in look(tmp_path).values()} == {"Hi."}
    assert len(look(tmp_path)) == 3
