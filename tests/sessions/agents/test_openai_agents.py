from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from golden import DATA, LIMIT, describe, placeless, read, seen_again
from hypothesis import given
from hypothesis import strategies as st

from stillroom.errors import RolloutError
from stillroom.sessions.agents import openai_agents as reader
from stillroom.sessions.discovery import Broken, Found, Unchanged

SAMPLE = DATA / "openai-agents" / "0.24.0"
_STRUCTURE = """
    CREATE TABLE message_structure (
        id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, message_id INTEGER NOT NULL,
        branch_id TEXT NOT NULL DEFAULT 'main'
    )
"""


def database(folder: Path, *items: object, session: str = "s") -> Path:
    """The sample, or its tables with other items."""
    path = folder / "app.db"
    if not path.exists():
        with closing(sqlite3.connect(path)) as db:
            db.executescript((SAMPLE / "sessions.sql").read_text(encoding="utf-8"))
            if items:
                db.execute("DELETE FROM agent_messages")
                db.commit()
    with closing(sqlite3.connect(path)) as db, db:
        for item in items:
            data = item if isinstance(item, str | bytes) else json.dumps(item)
            db.execute("INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)", (session, data))
    return path


def user(text: object) -> dict[str, object]:
    return {"role": "user", "content": text}


def call(name: str, arguments: object, number: int = 1) -> dict[str, object]:
    given = json.dumps(arguments)
    return {"type": "function_call", "name": name, "arguments": given, "call_id": f"call_{number}", "id": "__fake_id__"}


def result(output: object, number: int = 1, **fields: object) -> dict[str, object]:
    return {"type": "function_call_output", "call_id": f"call_{number}", "output": output, **fields}


def session(path: Path, name: str = "s") -> Path:
    return path.with_name(f"{path.name}#{name}")


def look(root: Path) -> list[Found]:
    return [each for each in reader.discover(root, {}, max_line_bytes=LIMIT) if isinstance(each, Found)]


def test_sessions_are_read_as_expected_and_are_not_new_the_second_time(tmp_path: Path):
    """Real rows of the SDK; after a change on purpose write `describe` anew and read the difference."""
    path = database(tmp_path)
    before = path.read_bytes(), path.stat().st_mtime_ns
    assert placeless(describe(reader, tmp_path)) == (SAMPLE / "expected.txt").read_text(encoding="utf-8")
    assert seen_again(reader, tmp_path) == {Unchanged}
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert [file.name for file in tmp_path.iterdir()] == ["app.db"]


def test_only_the_session_that_was_talked_in_is_new_again(tmp_path: Path):
    path = database(tmp_path)
    known = {each.thread.rollout_path: each.stamp for each in look(tmp_path)}
    database(tmp_path, user("And now?"), session="demo-session-chat")
    again = list(reader.discover(tmp_path, known, max_line_bytes=LIMIT))
    (found,) = [each for each in again if isinstance(each, Found)]
    assert (found.thread.title, len(again)) == ("demo-session-chat", 2)
    # The last item is taken away and another put in its place, within the same second.
    known[found.thread.rollout_path] = found.stamp
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM agent_messages WHERE id = (SELECT max(id) FROM agent_messages)")
    database(tmp_path, user("Or now?"), session="demo-session-chat")
    again = list(reader.discover(tmp_path, known, max_line_bytes=LIMIT))
    assert sorted(type(each).__name__ for each in again) == ["Found", "Unchanged"]


def test_a_long_session_is_left_where_its_first_words_are_found(tmp_path: Path):
    """Whatever is open is closed in its order: anything else would be a warning, and so an error here."""
    path = database(tmp_path, user("First. " + "x" * 20_000), *[user("y" * 20_000)] * 20)
    (found,) = look(path)
    assert found.thread.preview.startswith("First.")
    with reader.open_items(session(path), max_line_bytes=LIMIT) as items:
        assert next(iter(items)).line_no == 1


def test_tables_are_found_by_their_shape_and_sessions_by_any_name(tmp_path: Path):
    name = "a/b//c#d é\n%"
    path = database(tmp_path, user("Hi."), session=name)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("""ALTER TABLE agent_messages RENAME TO "my ""own"" talks" """)
        db.execute("DROP TABLE agent_sessions")
    found = {each.thread.title: each.thread for each in look(path)}
    assert found.keys() == {name}
    assert found[name].thread_id.startswith("a-b-c-d-.")
    assert read(reader, Path(found[name].rollout_path))[0] == [("user", "Hi.")]


def test_a_session_of_the_same_name_in_another_database_is_another_thread(tmp_path: Path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        database(tmp_path / name, user("Hi."))
    (tmp_path / "other.db").write_bytes(b"no database")
    with closing(sqlite3.connect(tmp_path / "tables.sqlite")) as db, db:
        db.execute("CREATE TABLE agent_messages (id INTEGER, session_id TEXT)")
    found = list(reader.discover(tmp_path, {}, max_line_bytes=LIMIT))
    assert len({each.thread.thread_id for each in found if isinstance(each, Found)}) == len(found) == 2


def test_a_branch_that_the_program_left_is_taken_back(tmp_path: Path):
    answer = {"role": "assistant", "type": "message", "content": [{"type": "output_text", "text": "Done."}]}
    path = database(tmp_path, user("Start."), user("Use nose."), answer, user("Use pytest."))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(_STRUCTURE)
        ids = [row for (row,) in db.execute("SELECT id FROM agent_messages ORDER BY id")]
        rows = [(ids[0], "main"), (ids[1], "main"), (ids[2], "main"), (ids[0], "b"), (ids[3], "b")]
        db.executemany("INSERT INTO message_structure (session_id, message_id, branch_id) VALUES ('s', ?, ?)", rows)
    said, _, stats = read(reader, session(path))
    assert [who for who, _ in said] == ["user", "harness", "assistant", "user"]
    assert ("Use nose." in said[1][1], stats.superseded) == (True, 1)


def test_what_no_person_said_is_no_users_word(tmp_path: Path):
    packed = "Before:\n<CONVERSATION HISTORY>\n1. user: hi\n</CONVERSATION HISTORY>"
    items = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]},
        user("<system-reminder>\nuse tabs\n</system-reminder>"),
        user([{"type": "input_image", "image_url": "data:x"}, {"type": "input_text", "text": "What is it?"}]),
        {"role": "assistant", "content": packed},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "brand_new", "x": 1},
        {"role": "narrator", "content": "Once."},
        {"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
    ]
    said, _, stats = read(reader, session(database(tmp_path, *items)))
    assert said == [("user", "What is it?"), ("assistant", "No.")]
    assert stats.unknown == {"brand_new": 1, "message/narrator": 1}
    assert stats.dropped == {"instructions": 2, "nothing said": 1, "compaction summary": 1, "seen before": 1}
    assert stats.images == 1


@pytest.mark.parametrize(
    ("asked", "answered", "outcome"),
    [
        (call("bash", {"command": "x"}), result("oh\n"), (None, None, "oh\n")),
        (call("bash", {"command": "x"}), result("oh\nExit code: 2"), (2, False, "oh\nExit code: 2")),
        (call("bash", {"command": "x"}), result('{"exit_code": 1, "stdout": ""}'), (1, False, None)),
        (call("ask", {"q": "x"}), result("Exit code: 2"), (None, None, None)),
        (call("ask", {}), result([{"type": "input_text", "text": "fine"}]), (None, None, "fine")),
        (
            call("ask", {}),
            result("An error occurred while running the tool. Please try again. Error: no"),
            (None, False, None),
        ),
        (
            {"type": "shell_call", "call_id": "call_1", "action": {"commands": ["a", "b"]}},
            result(
                [
                    {"stdout": "1", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
                    {"stdout": "", "stderr": "2", "outcome": {"type": "exit", "exit_code": 7}},
                ],
                type="shell_call_output",
            ),
            (7, False, "1\n2"),
        ),
        (
            {"type": "local_shell_call", "call_id": "call_1", "action": {"command": ["ls", "-a"]}},
            result("Exit code: 0\n.", type="local_shell_call_output"),
            (0, True, None),
        ),
        (
            {"type": "mcp_call", "id": "call_1", "server_label": "s", "name": "n", "arguments": "{}", "error": "down"},
            {"type": "reasoning"},
            (None, False, "down"),
        ),
        (
            {"type": "code_interpreter_call", "id": "c", "code": "1", "outputs": [{"type": "logs", "logs": "one"}]},
            {"type": "reasoning"},
            (None, None, "one"),
        ),
        ({"type": "web_search_call", "id": "c", "action": {"query": "q"}}, {"type": "reasoning"}, (None, None, "")),
        ({"type": "custom_tool_call", "name": "n", "input": "q", "call_id": "call_1"}, result("x"), (None, None, "x")),
    ],
)
def test_an_outcome_is_what_the_result_tells(
    tmp_path: Path, asked: object, answered: object, outcome: tuple[int | None, bool | None, str | None]
):
    _, ran, stats = read(reader, session(database(tmp_path, asked, answered)))
    (run,) = ran
    assert (run.exit_code, run.ok) == outcome[:2]
    assert outcome[2] is None or run.output == outcome[2]
    assert stats.unknown == {}


def test_a_patch_is_an_edit(tmp_path: Path):
    operation = {"type": "update_file", "path": "a.py", "diff": "@@\n-1\n+2"}
    path = database(
        tmp_path,
        {"type": "apply_patch_call", "call_id": "call_1", "operation": operation},
        result("Updated a.py", type="apply_patch_call_output", status="completed"),
    )
    (run,) = read(reader, session(path))[1]
    assert [(edit.action, edit.path, edit.diff, run.ok) for edit in run.edits] == [
        ("update", "a.py", "@@\n-1\n+2", True)
    ]


def test_a_locked_or_damaged_database_is_told_and_its_sessions_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("stillroom.sessions.sqlite_source._TIMEOUT_SECONDS", 0.01)
    path = database(tmp_path)
    known = {each.thread.rollout_path: each.stamp for each in look(tmp_path)}
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        (tmp_path / "app.db-wal").write_bytes(b"")
        db.execute("BEGIN EXCLUSIVE")
        locked = list(reader.discover(tmp_path, known, max_line_bytes=LIMIT))
    assert [type(each) for each in locked] == [Broken, Unchanged, Unchanged]
    path.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    damaged = list(reader.discover(tmp_path, known, max_line_bytes=LIMIT))
    assert [type(each) for each in damaged] == [Broken, Unchanged, Unchanged]
    with pytest.raises(RolloutError):
        read(reader, session(path))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 300) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "text", "id"]), inner),
    max_leaves=8,
)
_ITEMS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["message", "function_call", "shell_call", "apply_patch_call", "mcp_call", "x_output"])
        | _JSON,
        "role": st.sampled_from(["user", "assistant"]) | _JSON,
        **dict.fromkeys(("content", "output", "action", "operation", "arguments", "call_id", "id", "name"), _JSON),
    },
)


@pytest.mark.slow
@given(items=st.lists(_ITEMS | _JSON | st.binary(max_size=40), min_size=1, max_size=6))
def test_nothing_in_a_row_raises_or_costs_another(tmp_path_factory, items: list[object]):
    path = database(tmp_path_factory.mktemp("any"), *items, b'{"a":"', "[" * 5000, user("Still here."))
    said, _, stats = read(reader, session(path))
    assert said[-1] == ("user", "Still here.")
    assert stats.bad_lines >= 2


def test_a_huge_output_is_squeezed_as_it_is_read(tmp_path: Path):
    path = database(tmp_path, call("x", {}), result("QUJD" * 100_000), user("Seen."))
    with reader.open_items(session(path), max_line_bytes=64 * 1024) as items:
        assert [item.type for item in items] == ["function_call", "function_call_output", "message"]
        assert (items.stats.long_lines, items.stats.cut_bytes > 300_000) == (1, True)
