from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from stillroom.sessions.events import Edit, Ran, Said, read_events
from stillroom.sessions.item import Item
from stillroom.sessions.stream import open_items

SESSIONS = Path(__file__).parents[2] / "examples/codex-home/sessions/2026/11/29"


def items(*payloads: dict[str, object]) -> list[Item]:
    return [
        Item(str(payload["type"]), None, json.dumps(payload).encode(), 1000 + number, number)
        for number, payload in enumerate(payloads, start=1)
    ]


def call(arguments: object, *, name: str = "exec_command", call_id: str = "c1") -> dict[str, object]:
    return {"type": "function_call", "name": name, "arguments": json.dumps(arguments), "call_id": call_id}


def output(text: object, *, call_id: str = "c1") -> dict[str, object]:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def said(role: str, text: str, **more: object) -> dict[str, object]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}], **more}


def session(prefix: str) -> list[Said | Ran]:
    path = next(SESSIONS.glob(f"*T{prefix}-*.jsonl"))
    with open_items(path, max_line_bytes=8 * 1024 * 1024) as stream:
        return read_events(stream)


def outline(events: Iterable[Said | Ran]) -> list[tuple[object, ...]]:
    return [
        (event.who, event.final) if isinstance(event, Said) else (event.tool, event.command, event.exit_code, event.ok)
        for event in events
    ]


def test_a_session_with_a_patch_that_failed_and_one_that_worked() -> None:
    events = session("12-16-13")
    assert outline(events) == [
        ("harness", False),
        ("user", False),
        ("assistant", False),
        ("exec_command", "make test 2>&1 | tail -30", 0, True),
        ("exec_command", "cat ledgerkit/money.py tests/test_money.py", 0, True),
        ("apply_patch", None, None, False),
        ("apply_patch", None, 0, True),
        ("exec_command", "python3 -m unittest -q", 0, True),
        ("assistant", True),
        ("user", False),
        ("assistant", True),
    ]
    patch = events[6]
    assert isinstance(patch, Ran)
    assert [(edit.path, edit.action) for edit in patch.edits] == [("ledgerkit/money.py", "update")]
    assert '+    cent = Decimal("0.01")' in patch.edits[0].diff
    assert patch.output == "Success. Updated the following files:\nM ledgerkit/money.py\n"


def test_a_session_with_failing_commands() -> None:
    codes = [(event.command, event.exit_code) for event in session("12-16-15") if isinstance(event, Ran)]
    assert codes == [
        ("node test.js", 1),
        ("cat src/cart.js", 0),
        (None, 0),
        ("node test.js", 0),
        ("ls -a; npx --no-install eslint --version", 1),
    ]


@pytest.mark.parametrize(
    ("prefix", "users", "tools"),
    [
        ("12-16-20", 2, ["exec_command", "exec_command", "exec_command"]),
        ("12-16-21", 2, ["exec_command", "apply_patch", "exec_command", "apply_patch", "exec_command"]),
        ("12-16-24", 1, ["exec_command"]),
        ("12-16-25", 1, ["web_search"]),
    ],
)
def test_the_other_sessions(prefix: str, users: int, tools: list[str]) -> None:
    events = session(prefix)
    assert sum(isinstance(event, Said) and event.who == "user" for event in events) == users
    assert [event.tool for event in events if isinstance(event, Ran)] == tools


@pytest.mark.parametrize(
    ("text", "code", "ok", "body"),
    [
        ("Chunk ID: a\nProcess exited with code 2\nOutput:\nno\n", 2, False, "no\n"),
        ("Exit code: 0\nWall time: 0 seconds\nOutput:\nyes", 0, True, "yes"),
        ('{"output":"boom","metadata":{"exit_code":127,"duration_seconds":0.1}}', 127, False, "boom"),
        ([{"type": "input_text", "text": "Exit code: 1\nOutput:\nbad"}], 1, False, "bad"),
        ({"content": "done", "success": True}, None, True, "done"),
        ("apply_patch verification failed: no such line", None, False, "apply_patch verification failed: no such line"),
        ("plain words\nOutput:\nExit code: 9", None, None, "plain words\nOutput:\nExit code: 9"),
        (None, None, None, ""),
        ("Process running with session ID 7\nOutput:\n...", None, None, "..."),
    ],
)
def test_forms_of_output(text: object, code: int | None, ok: bool | None, body: str) -> None:
    (ran,) = read_events(items(call({"cmd": "x"}), output(text)))
    assert isinstance(ran, Ran)
    assert (ran.exit_code, ran.ok, ran.output) == (code, ok, body)


@pytest.mark.parametrize(
    ("payload", "tool", "command", "workdir"),
    [
        (call({"cmd": "ls", "workdir": "/w"}), "exec_command", "ls", "/w"),
        (call({"command": ["bash", "-lc", "ls -l"]}, name="shell"), "shell", "ls -l", None),
        (call({"command": ["ls", "a b"]}, name="shell"), "shell", "ls 'a b'", None),
        (
            {"type": "local_shell_call", "call_id": "c", "action": {"command": ["ls"], "working_directory": "/w"}},
            "local_shell",
            "ls",
            "/w",
        ),
        (
            {"type": "custom_tool_call", "call_id": "c", "name": "exec", "input": "await t({ cmd: \"make 'x'\" })"},
            "exec",
            "make 'x'",
            None,
        ),
        ({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{torn"}, "f", None, None),
        ({"type": "function_call", "namespace": "mcp", "name": "f", "arguments": "{}"}, "mcp.f", None, None),
    ],
)
def test_forms_of_calls(payload: dict[str, object], tool: str, command: str | None, workdir: str | None) -> None:
    (ran,) = read_events(items(payload))
    assert isinstance(ran, Ran)
    assert (ran.tool, ran.command, ran.workdir) == (tool, command, workdir)


def test_a_later_write_carries_the_command_it_belongs_to() -> None:
    first, second = read_events(
        items(
            call({"cmd": "make serve"}),
            output("Process running with session ID 7\nOutput:\n"),
            call({"session_id": 7, "chars": ""}, name="write_stdin", call_id="c2"),
            output("Process exited with code 1\nOutput:\nbye", call_id="c2"),
        )
    )
    assert isinstance(first, Ran) and isinstance(second, Ran)
    assert (first.exit_code, second.command, second.exit_code) == (None, "make serve", 1)


def test_a_patch_through_the_shell_is_seen() -> None:
    patch = "*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: b\n*** Update File: c\n*** Move to: d\n@@\n-1\n+2\n"
    (ran,) = read_events(items(call({"cmd": f"apply_patch <<'EOF'\n{patch}*** End Patch\nEOF"})))
    assert isinstance(ran, Ran)
    assert ran.edits == (Edit("a", "add", "+x"), Edit("b", "delete", ""), Edit("d", "update", "@@\n-1\n+2"))


@pytest.mark.parametrize(
    ("text", "kinds", "who"),
    [
        ("fix it", None, "user"),
        ("fix it", ["user.text"], "user"),
        ("<environment_context>x</environment_context>", None, "harness"),
        ("anything", ["environments.environment_context"], "harness"),
        ("<environment_context> is what I ask about", ["user.text"], "user"),
        ("<subagent_notification>x</subagent_notification>", None, "agent"),
        ("Message Type: NEW_TASK\nTask name: t\nSender: s\nPayload:\nx", None, "agent"),
    ],
)
def test_who_speaks_in_a_user_message(text: str, kinds: list[str] | None, who: str) -> None:
    metadata = {"internal_chat_message_metadata_passthrough": {"content_item_kinds": kinds}}
    (event,) = read_events(items(said("user", text, **metadata)))
    assert isinstance(event, Said)
    assert event.who == who


def test_without_a_mark_the_last_word_of_a_turn_is_final() -> None:
    events = read_events(
        items(
            said("user", "a"), said("assistant", "b"), said("assistant", "c"), said("user", "d"), said("assistant", "e")
        )
    )
    assert [event.final for event in events if isinstance(event, Said)] == [False, False, True, False, True]


def test_items_that_can_not_be_understood_are_passed_over() -> None:
    broken = [Item("message", "user", b'{"type":"message","content":{"a":1}}', None, 1), Item("x", None, b"[", None, 2)]
    assert outline(read_events([*broken, *items(said("user", "a"))])) == [("user", False)]


def test_an_output_without_a_call_stands_alone() -> None:
    (ran,) = read_events(items({**output("Exit code: 3\nOutput:\n"), "name": "f"}))
    assert isinstance(ran, Ran)
    assert (ran.tool, ran.exit_code) == ("f", 3)


def test_long_texts_lose_their_middle_and_long_sessions_too() -> None:
    many = [payload for n in range(400) for payload in (call({"cmd": f"c{n}"}), output("x" * 5000))]
    events = read_events(items(*many), max_output_chars=1000, max_total_bytes=100_000)
    commands = [event.command for event in events if isinstance(event, Ran)]
    assert commands[0] == "c0" and commands[-1] == "c399"
    assert 40 < len(commands) < 80
    assert all(len(event.output) < 1100 for event in events if isinstance(event, Ran))
