"""The same counts from the sessions of agents whose stores are no files of lines, or whose tools have other names."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from usage_home import DAY, NOW, REMEMBERED, UsageHome, citing, stamp

from stillroom.config import Source

TEXT = citing(REMEMBERED)["content"][0]["text"]


def opencode(root: Path, memories: Path) -> None:
    root.mkdir()
    dump = Path(__file__).parents[1] / "data" / "opencode" / "1.18.33-sqlite" / "opencode.sql"
    at = (NOW - DAY) * 1000
    with closing(sqlite3.connect(root / "opencode.db")) as db, db:
        db.executescript(dump.read_text(encoding="utf-8") + "DELETE FROM session;")
        names = "id, project_id, slug, directory, title, version, time_created, time_updated"
        db.execute(f"INSERT INTO session ({names}) VALUES ('ses_1', 'p', 's', '/w', 't', '1', {at}, {at})")
        read = {"status": "completed", "input": {"filePath": f"{memories}/MEMORY.md"}, "output": "text"}
        parts: list[tuple[str, list[dict[str, object]]]] = [
            ("user", [{"type": "text", "text": "How do I run the tests?"}]),
            ("assistant", [{"type": "tool", "tool": "read", "callID": "c", "state": read}]),
            ("assistant", [{"type": "text", "text": "Run `make check`.\n" + TEXT}]),
        ]
        for number, (role, data) in enumerate(parts):
            message = json.dumps({"role": role, "time": {"created": at}})
            db.execute("INSERT INTO message VALUES (?, 'ses_1', ?, ?, ?)", (f"msg_{number}", at, at, message))
            for part in data:
                row = (f"prt_{number}", f"msg_{number}", at, at, json.dumps(part))
                db.execute("INSERT INTO part VALUES (?, ?, 'ses_1', ?, ?, ?)", row)


def gemini(root: Path, memories: Path) -> None:
    path = root / "tmp" / "w" / "chats" / "session-1.jsonl"
    path.parent.mkdir(parents=True)
    call = {"id": "c", "name": "read_file", "args": {"file_path": f"{memories}/MEMORY.md"}, "status": "success"}
    response = {"functionResponse": {"id": "c", "name": "read_file", "response": {"output": "text"}}}
    at = stamp(NOW - DAY)
    lines = [
        {"sessionId": "s-1", "startTime": at, "kind": "main"},
        {"id": "1", "timestamp": at, "type": "user", "content": [{"text": "How do I run the tests?"}]},
        {"id": "2", "timestamp": at, "type": "gemini", "content": "", "toolCalls": [{**call, "result": [response]}]},
        {"id": "3", "timestamp": at, "type": "gemini", "content": "Run `make check`.\n" + TEXT},
        {"id": "3", "timestamp": at, "type": "gemini", "content": "Run `make check`.\n" + TEXT, "toolCalls": []},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def copilot(root: Path, memories: Path) -> None:
    path = root / "session-state" / "s-1" / "events.jsonl"
    path.parent.mkdir(parents=True)
    request = {"toolCallId": "c", "name": "view", "arguments": {"path": f"{memories}/MEMORY.md"}}
    events: list[tuple[str, dict[str, object]]] = [
        ("session.start", {"sessionId": "s-1", "context": {"cwd": "/w"}}),
        ("user.message", {"content": "How do I run the tests?"}),
        ("assistant.message", {"content": "", "toolRequests": [request]}),
        ("tool.execution_complete", {"toolCallId": "c", "success": True, "result": {"content": "text"}}),
        ("assistant.message", {"content": "Run `make check`.\n" + TEXT}),
    ]
    lines = [
        {"type": kind, "data": data, "id": f"e-{number}", "timestamp": stamp(NOW - DAY)}
        for number, (kind, data) in enumerate(events)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def pi(root: Path, memories: Path) -> None:
    call = {"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": f"{memories}/MEMORY.md"}}
    answered = {"role": "toolResult", "toolCallId": "c", "toolName": "read", "content": "text", "isError": False}
    messages: list[dict[str, object]] = [
        {"role": "user", "content": "How do I run the tests?"},
        {"role": "assistant", "content": [call]},
        answered,
        {"role": "assistant", "content": [{"type": "text", "text": "Run `make check`.\n" + TEXT}]},
    ]
    at = {"timestamp": stamp(NOW - DAY)}
    entries = [{"type": "message", "id": f"{number}", **at, "message": each} for number, each in enumerate(messages)]
    path = root / "sessions" / "--w--" / "2026-11-29T12-00-00-000Z_s-1.jsonl"
    path.parent.mkdir(parents=True)
    lines = [{"type": "session", "id": "s-1", "cwd": "/w", **at}, *entries]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def kimi(root: Path, memories: Path) -> None:
    def event(**fields: object) -> dict[str, object]:
        return {"type": "context.append_loop_event", "event": fields}

    prompt = {"role": "user", "content": "How do I run the tests?", "origin": {"kind": "user"}}
    records = [
        {"type": "context.append_message", "message": prompt},
        event(type="tool.call", toolCallId="c", name="Read", args={"path": f"{memories}/MEMORY.md"}),
        event(type="tool.result", toolCallId="c", result={"output": "text"}),
        event(type="content.part", uuid="u", part={"type": "text", "text": "Run `make check`.\n" + TEXT}),
    ]
    path = root / "sessions" / "wd_w" / "session_1" / "agents" / "main" / "wire.jsonl"
    path.parent.mkdir(parents=True)
    lines = [json.dumps({**record, "time": (NOW - DAY) * 1000}) + "\n" for record in records]
    path.write_text("".join(lines), encoding="utf-8")


@pytest.mark.parametrize(
    ("agent", "write"),
    [("opencode", opencode), ("gemini-cli", gemini), ("copilot-cli", copilot), ("pi", pi), ("kimi-code", kimi)],
)
def test_citations_and_reads_of_other_agents_are_counted_once(tmp_path: Path, agent: str, write: object) -> None:
    home = UsageHome(tmp_path)
    home.remember()
    root = tmp_path / "agent"
    assert callable(write)
    write(root, Path(home.root))
    sources = (*home.settings.sources, Source(format=agent, root=str(root)))  # type: ignore[arg-type]
    home.settings = msgspec.structs.replace(home.settings, sources=sources)
    report = home.count()
    assert (report.citing, report.counted, report.reads) == (1, 1, {"memory_md": 1})
    assert home.usage() == (1, NOW - DAY)
    assert home.count().searched == 0
    home.store.close()
