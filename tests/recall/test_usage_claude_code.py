"""The same counts from the sessions of Claude Code, which need no hook for it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from usage_home import DAY, NOW, REMEMBERED, UsageHome, citing, stamp

from stillroom.config import Source

SESSION = "4e281cd4-78bc-4864-8154-7cdeaa03fa57"
FORK = "5e281cd4-78bc-4864-8154-7cdeaa03fa57"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[UsageHome]:
    home = UsageHome(tmp_path)
    home.remember()
    sources = (*home.settings.sources, Source(format="claude-code", root=str(tmp_path / "claude")))
    home.settings = msgspec.structs.replace(home.settings, sources=sources)
    home.count()
    yield home
    home.store.close()


def line(number: int, kind: str, content: Any, *, session: str = SESSION, **more: Any) -> dict[str, Any]:
    return {
        "parentUuid": None if number == 1 else f"uuid-{number - 1}",
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/dev/app",
        "sessionId": session,
        "version": "2.1.332",
        "type": kind,
        "message": {"role": kind, "content": content},
        "uuid": f"uuid-{number}",
        "timestamp": stamp(NOW - DAY + number),
        **more,
    }


def said(number: int, text: str) -> dict[str, Any]:
    return line(number, "assistant", [{"type": "text", "text": text}])


def write(tmp_path: Path, name: str, lines: list[dict[str, Any]]) -> Path:
    path = tmp_path / "claude" / "projects" / "-home-dev-app" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one, separators=(",", ":")) + "\n" for one in lines), encoding="utf-8")
    os.utime(path, ns=((NOW - 3600) * 10**9, (NOW - 3600) * 10**9))
    return path


def test_citations_and_reads_of_claude_code_are_counted(home: UsageHome, tmp_path: Path) -> None:
    text = citing(REMEMBERED)["content"][0]["text"]
    bash = {
        "type": "tool_use",
        "id": "t1",
        "name": "Bash",
        "input": {"command": "rg -n x ~/.stillroom/memories/MEMORY.md"},
    }
    read = {"type": "tool_use", "id": "t2", "name": "Read", "input": {"file_path": f"{home.root}/skills/a/SKILL.md"}}
    lines = [
        line(1, "user", "How do I run the tests?"),
        line(2, "assistant", [bash]),
        line(3, "user", [{"type": "tool_result", "tool_use_id": "t1", "content": "text"}]),
        line(4, "assistant", [read]),
        said(5, "Run `make check`.\n" + text),
    ]
    write(tmp_path, f"{SESSION}.jsonl", lines)
    report = home.count()
    assert (report.citing, report.counted, report.reads) == (1, 1, {"memory_md": 1, "skills": 1})
    assert home.usage() == (1, NOW - DAY + 5)
    # A resumed session is one file; a fork is another that holds the same messages.
    write(tmp_path, f"{SESSION}.jsonl", [*lines, line(6, "user", "Thanks"), said(7, "And again.\n" + text)])
    fork = [{**one, "sessionId": FORK, "requestSessionId": SESSION} for one in lines]
    fork.append(line(106, "user", "Something else.", session=FORK, parentUuid="uuid-5"))
    write(tmp_path, f"{FORK}.jsonl", fork)
    report = home.count()
    assert (report.searched, report.citing, report.counted, report.reads) == (2, 1, 1, {})
    assert home.usage() == (2, NOW - DAY + 7)


def test_a_sub_agent_counts_too(home: UsageHome, tmp_path: Path) -> None:
    text = citing(REMEMBERED)["content"][0]["text"]
    write(tmp_path, f"{SESSION}.jsonl", [line(1, "user", "Look it up."), said(2, "Asked.")])
    agent = [line(1, "user", "Look.", isSidechain=True, agentId="ab12"), said(2, "Found.\n" + text)]
    agent[1] |= {"isSidechain": True, "agentId": "ab12"}
    write(tmp_path, f"{SESSION}/subagents/agent-ab12.jsonl", agent)
    report = home.count()
    assert (report.searched, report.citing, report.counted) == (2, 1, 1)
