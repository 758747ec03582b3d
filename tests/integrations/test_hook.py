"""`stillroom-hook`: what an agent is told, when a pass is started, and that nothing else ever reaches the session."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from stillroom.ending import ended_sessions
from stillroom.integrations.bounds import MAX_CONTEXT_CHARS, MAX_LOG_BYTES
from stillroom.integrations.journal import append_line
from stillroom.integrations.starting import _next_lock, is_due, is_offline
from stillroom.pass_lock import take_pass_lock

PROJECT = Path(__file__).parents[2]
THREAD = "01a2285c-c2fe-7802-9df0-19f39c39c2f8"
SUMMARY = """v1

## User Profile

A developer of services in Python.

## User preferences

- Run the checks with `make verify`.
"""
#: Runs the hook and then waits for everything that it left running: the detached pass.
AND_ITS_PASS = """
import ctypes, os, subprocess, sys
ctypes.CDLL(None).prctl(36, 1)  # orphans come to this process
done = subprocess.run([sys.executable, "-m", "stillroom.integrations.hook", *sys.argv[1:]])
try:
    while True:
        os.wait()
except ChildProcessError:
    sys.exit(done.returncode)
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a memory, and no pass due."""
    home = tmp_path / ".stillroom"
    (home / "memories").mkdir(parents=True)
    (home / "memories" / "memory_summary.md").write_text(SUMMARY, encoding="utf-8")
    (home / "pass.stamp").touch()
    return home


def hook(
    home: Path,
    *words: str,
    event: Mapping[str, object] | bytes | None = None,
    environ: Mapping[str, str] | None = None,
    script: str | None = None,
) -> subprocess.CompletedProcess[bytes]:
    program = ["-c", script] if script else ["-m", "stillroom.integrations.hook"]
    environment = {
        "HOME": str(home.parent),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(PROJECT / "src"),
        **(environ or {}),
    }
    if event is None:
        event = {"session_id": THREAD, "cwd": str(home.parent), "source": "startup", "transcript_path": __file__}
    said = event if isinstance(event, bytes) else json.dumps(event).encode()
    command = [sys.executable, *program, *words]
    done = subprocess.run(command, input=said, capture_output=True, env=environment, timeout=60, cwd=home.parent)
    assert done.returncode == 0, done.stderr
    return done


def told(done: subprocess.CompletedProcess[bytes]) -> str | None:
    """What the session is given; None when nothing was printed at all."""
    if not done.stdout:
        return None
    answer = json.loads(done.stdout)["hookSpecificOutput"]
    assert answer.keys() == {"hookEventName", "additionalContext"} and answer["hookEventName"] == "SessionStart"
    context: str = answer["additionalContext"]
    return context


def sessions(home: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (home / "sessions.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_a_new_session_is_told_the_memory_and_the_log_says_which(home: Path, agent: str) -> None:
    done = hook(home, agent, "session-start")
    text = told(done)
    assert text and text.startswith("<stillroom-memory>") and "make verify" in text
    assert done.stderr == b""
    (entry,) = sessions(home)
    assert entry["agent"] == agent and entry["thread_id"] == THREAD and entry["cwd"] == str(home.parent)
    assert entry["tokens"] == -(-len(text.encode()) // 4)
    assert not (home / "hook.log").exists()


@pytest.mark.slow
def test_a_session_is_told_again_after_compaction_and_not_when_it_still_has_it(home: Path) -> None:
    def start(source: str) -> str | None:
        return told(hook(home, "claude-code", "session-start", event={"session_id": THREAD, "source": source}))

    assert start("resume"), "a session from before the installation has nothing yet"
    assert start("resume") is None
    assert start("fork") is None
    assert start("compact")
    assert start("clear")
    assert len(sessions(home)) == 3


def test_a_summary_of_any_size_fits_into_what_the_agent_takes(home: Path) -> None:
    lines = "".join(f"- Rule {number}: never do the thing with the number {number}.\n" for number in range(1000))
    (home / "memories" / "memory_summary.md").write_text(SUMMARY + lines)
    sizes = {agent: len(told(hook(home, agent, "session-start")) or "") for agent in MAX_CONTEXT_CHARS}
    assert 9_000 < sizes["claude-code"] <= 10_000 < sizes["codex"] < 15_000


def test_after_an_edit_or_a_note_a_session_is_given_what_stands_there_now(home: Path) -> None:
    summary = home / "memories" / "memory_summary.md"
    summary.write_text(SUMMARY + "- Never push.\n- Write tests first.\n")
    assert "Never push" in (told(hook(home, "claude-code", "session-start")) or "")
    summary.write_text(SUMMARY + "- Always push.\n- Write tests first.\n")
    text = told(hook(home, "claude-code", "session-start")) or ""
    assert "Always push" in text and "Never push" not in text and "Nothing was left out" in text
    notes = home / "memories" / "extensions" / "ad_hoc" / "notes"
    notes.mkdir(parents=True)
    (notes / "2026-11-02T10-00-00-tuesdays.md").write_text("Deploys on Tuesdays.\n")
    assert "Deploys on Tuesdays." in (told(hook(home, "claude-code", "session-start")) or "")
    script = (
        "import sys\nfrom stillroom.integrations.hook import main\nmain(sys.argv[1:])\n"
        "assert not sys.modules.keys() & {'msgspec', 're2', 'pathlib'}"
    )
    assert "Deploys on Tuesdays." in (told(hook(home, "claude-code", "session-start", script=script)) or "")
    assert not (home / "hook.log").exists()


def test_nothing_is_said_where_there_is_nothing(home: Path) -> None:
    (home / "memories" / "memory_summary.md").unlink()
    assert told(hook(home, "codex", "session-start")) is None
    assert told(hook(home, "codex", "session-end")) is None
    assert not (home / "sessions.jsonl").exists() and not (home / "hook.log").exists()


def test_a_memory_that_can_not_be_used_is_a_line_in_the_log(home: Path) -> None:
    summary = home / "memories" / "memory_summary.md"
    (home / "memories").rename(home / "elsewhere")
    for content, reason in ((b"v1\n\xff", "is not UTF-8"), (b"v1\n" + b"- a\n" * 100_000, "or larger than")):
        (home / "memories").mkdir(exist_ok=True)
        summary.write_bytes(content)
        for _ in range(2):  # by the slow way, then from the prepared copy
            assert told(hook(home, "codex", "session-start")) is None
        first, second = (home / "hook.log").read_text().splitlines()
        assert (
            first.endswith(second[20:]) and "codex session-start: no memory is given: " in second and reason in second
        )
        (home / "hook.log").unlink()
    summary.unlink()
    (home / "memories").rmdir()
    (home / "memories").symlink_to(home / "elsewhere")
    assert told(hook(home, "codex", "session-start")) is None
    assert (home / "hook.log").read_text().endswith("no memory is given: the memory folder is a link\n")


@pytest.mark.parametrize(
    "event", [b"\xff\x00 not json", b"[]", b'{"session_id":', b'{"cwd": 3, "source": []' + b" " * 9]
)
def test_a_garbled_event_is_a_line_in_the_log(home: Path, event: bytes) -> None:
    done = hook(home, "claude-code", "session-start", event=event)
    assert done.stdout == done.stderr == b""
    (line,) = (home / "hook.log").read_text().splitlines()
    assert "claude-code session-start" in line and "Error" in line


def test_an_event_with_fields_of_other_kinds_is_served(home: Path) -> None:
    event = {"session_id": {"a": 1}, "cwd": 7, "source": None, "transcript_path": ["x"], "more": "x" * 100_000}
    assert told(hook(home, "claude-code", "session-start", event=event))
    assert sessions(home)[0]["thread_id"] == ""
    assert told(hook(home, "claude-code", "session-start", event=b""))


def test_without_a_home_nothing_is_done_or_made(tmp_path: Path) -> None:
    assert told(hook(tmp_path / "gone", "codex", "session-start")) is None
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    assert told(hook(tmp_path / "x", "--home", str(tmp_path / "file"), "codex", "session-start")) is None


def test_a_home_that_can_not_be_written_costs_only_the_log(home: Path) -> None:
    (home / "sessions.jsonl").mkdir()
    (home / "hook.log").mkdir()
    (home / "recall.json").mkdir()
    done = hook(home, "claude-code", "session-start")
    assert told(done) and done.stderr == b""


def test_sessions_that_are_not_for_memory_get_none_and_start_nothing(home: Path) -> None:
    (home / "pass.stamp").unlink()
    events: list[tuple[dict[str, object], dict[str, str]]] = [
        ({"session_id": THREAD, "agent_id": "a1"}, {}),  # a sub-agent
        ({"session_id": THREAD, "cwd": str(home / "memories")}, {}),  # a memory worker
        ({"session_id": THREAD, "cwd": str(home.parent / "c" / "memories")}, {"CODEX_HOME": str(home.parent / "c")}),
        ({"session_id": THREAD}, {"STILLROOM_HOOK": "off"}),  # below a pass
    ]
    for event, environ in events:
        done = hook(home, "codex", "session-start", event=event, environ=environ, script=AND_ITS_PASS)
        assert done.stdout == b"" and not (home / "pass.stamp").exists(), event


@pytest.mark.slow
def test_an_ephemeral_session_is_told_and_starts_nothing(home: Path) -> None:
    (home / "pass.stamp").unlink()
    never_stored = {"session_id": THREAD, "transcript_path": None}
    assert told(hook(home, "codex", "session-start", event=never_stored, script=AND_ITS_PASS))
    sdk = {"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}
    assert told(hook(home, "claude-code", "session-start", environ=sdk, script=AND_ITS_PASS))
    gone = {"session_id": THREAD, "transcript_path": str(home / "no such file")}
    hook(home, "claude-code", "session-end", event=gone, environ=sdk, script=AND_ITS_PASS)
    assert not (home / "pass.stamp").exists() and not (home / "state.sqlite3").exists()


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="waiting for a detached process needs a subreaper")
def test_a_pass_is_started_beside_the_session_once_at_a_time(home: Path) -> None:
    (home / "pass.stamp").unlink()
    lock = take_pass_lock(str(home))  # another one runs
    assert lock is not None and take_pass_lock(str(home)) is None
    hook(home, "claude-code", "session-start", script=AND_ITS_PASS)
    os.close(lock)
    assert not (home / "state.sqlite3").exists()
    (home / "pass.log").write_bytes(b"x" * (MAX_LOG_BYTES + 1))
    hook(home, "claude-code", "session-end", script=AND_ITS_PASS)
    assert (home / "pass.log.1").stat().st_size == MAX_LOG_BYTES + 1
    with sqlite3.connect(home / "state.sqlite3") as db:
        ((report,),) = db.execute("SELECT report_json FROM passes").fetchall()
    assert json.loads(report)["skipped"] is None
    assert f"started by the end of session {THREAD}" in (home / "pass.log").read_text()
    assert list(ended_sessions(str(home))) == [THREAD]
    # By rules the end of a session is no reason to wait for; with a model the interval holds.
    hook(home, "claude-code", "session-end", script=AND_ITS_PASS)
    (home / "config.toml").write_text('[memories]\nextract_model = "provider:model"\n')
    hook(home, "claude-code", "session-end", script=AND_ITS_PASS)
    with sqlite3.connect(home / "state.sqlite3") as db:
        assert db.execute("SELECT count(*) FROM passes").fetchone() == (2,)


def test_many_sessions_that_end_at_once_share_the_next_pass(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("time.time", lambda: now)
    monkeypatch.setattr("time.sleep", lambda seconds: begin_other())

    def begin_other() -> None:
        nonlocal now
        now += 1
        if lock:  # the pass that ran ends, and the next one begins
            os.close(lock.pop())
            os.utime(home / "pass.stamp", (now, now))
        now += 6

    os.utime(home / "pass.stamp", (900, 900))
    held = take_pass_lock(str(home))
    assert held is not None
    lock = [held]
    assert _next_lock(str(home)) is None
    alone = _next_lock(str(home))
    assert alone is not None
    os.close(alone)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="waiting for a detached process needs a subreaper")
def test_an_agent_that_does_not_listen_gets_its_pass_all_the_same(home: Path) -> None:
    (home / "pass.stamp").unlink()
    listens, nobody = os.pipe()
    os.close(listens)
    command = [sys.executable, "-c", AND_ITS_PASS, "codex", "session-start"]
    environ = {"HOME": str(home.parent), "PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT / "src")}
    event = json.dumps({"session_id": THREAD, "transcript_path": __file__}).encode()
    done = subprocess.run(command, env=environ, input=event, stdout=nobody, stderr=subprocess.PIPE, timeout=60)
    os.close(nobody)
    assert done.returncode == 0 and done.stderr == b""
    assert "BrokenPipeError" in (home / "hook.log").read_text()
    assert (home / "pass.stamp").exists() and not (home / "sessions.jsonl").exists()


@pytest.mark.slow
def test_a_damaged_database_is_the_passes_affair(home: Path) -> None:
    (home / "pass.stamp").unlink()
    (home / "state.sqlite3").write_bytes(b"not a database" * 1000)
    assert told(hook(home, "codex", "session-start", script=AND_ITS_PASS))
    assert not (home / "hook.log").exists()


def test_a_pass_is_due_when_neither_the_stamp_nor_the_store_knows_a_recent_one(home: Path) -> None:
    now = time.time()
    stamp = home / "pass.stamp"

    def last_start(minutes_ago: float) -> None:
        os.utime(stamp, (now - 60 * minutes_ago,) * 2)

    last_start(16)
    assert is_due(str(home), now)
    last_start(14)
    assert not is_due(str(home), now)
    (home / "config.toml").write_text("[memories]\npass_interval_minutes = 10\n")
    assert is_due(str(home), now)
    with sqlite3.connect(home / "state.sqlite3") as db:
        db.execute("CREATE TABLE passes (at INTEGER)")
        db.execute("INSERT INTO passes VALUES (?)", (now - 60 * 9,))
    assert not is_due(str(home), now)
    with sqlite3.connect(home / "state.sqlite3") as db:
        db.execute("UPDATE passes SET at = ?", (now + 86_400,))  # the clock was wrong then
    assert is_due(str(home), now)
    for damaged in ("[memories", "memories = 3", "[memories]\npass_interval_minutes = 'x'"):
        (home / "config.toml").write_text(damaged)
        assert not is_due(str(home), now)
        assert is_offline(str(home)) is ("'x'" in damaged)
    (home / "config.toml").write_text('[memories]\nconsolidation_model = "provider:model"')
    assert not is_offline(str(home))


@pytest.mark.slow  # two seconds of waiting are what it shows
def test_an_agent_that_never_closes_its_pipe_is_given_up(home: Path) -> None:
    command = [sys.executable, "-m", "stillroom.integrations.hook", "claude-code", "session-start"]
    environ = {"HOME": str(home.parent), "PYTHONPATH": str(PROJECT / "src")}
    began = time.monotonic()
    with subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read() == b""
        assert process.wait(timeout=60) == 0
    assert time.monotonic() - began < 10
    assert "gave up after 2 s" in (home / "hook.log").read_text()


def test_a_log_that_never_answers_holds_up_no_session(home: Path) -> None:
    os.mkfifo(home / "hook.log")
    done = hook(home, "codex", "session-start", event=b"no event")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_wrong_call_says_so_to_a_person_and_lets_the_session_go_on(home: Path) -> None:
    done = hook(home, "claude-code", "session-strat")
    assert done.stdout == b"" and b"invalid choice" in done.stderr
    done = hook(home, "--help")
    assert b"usage: stillroom-hook" in done.stdout
    assert told(hook(home, "codex", "session-start", "--home", str(home)))


def test_the_hook_imports_nothing_heavy(home: Path) -> None:
    hook(home, "claude-code", "session-start")  # makes the prepared copy
    script = (
        "import sys\nfrom stillroom.integrations.hook import main\nmain(sys.argv[1:])\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = hook(home, "claude-code", "session-start", script=script)
    assert told(done)
    loaded = set(done.stderr.decode().split())
    heavy = {"typing", "pathlib", "dataclasses", "inspect", "argparse", "subprocess", "sqlite3", "tomllib", "logging"}
    assert not loaded & (heavy | {"msgspec", "re2", "rich", "asyncio", "hashlib", "tempfile", "shutil"})


def test_a_log_is_rotated_before_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for number in range(100):
        append_line(str(path), f"line {number}", 100)
    assert path.stat().st_size < 120 and (tmp_path / "log.1").stat().st_size < 120
    assert path.read_text().splitlines()[-1] == "line 99"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["log", "log.1"]
