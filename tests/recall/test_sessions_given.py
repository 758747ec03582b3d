from __future__ import annotations

from pathlib import Path

from stillroom.recall.usage.sessions import told_sessions


def test_the_newest_sessions_come_first_and_a_line_that_is_none_is_passed_over(tmp_path: Path) -> None:
    lines = [
        b'{"at":1,"thread_id":"one"}',
        b'{"at":2',
        b'{"at":3,"thread_id":"\xff"}',
        b"[]",
        b'{"at":4,"thread_id":"four"}',
    ]
    (tmp_path / "sessions.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    assert [told.thread_id for told in told_sessions(tmp_path, limit=9)] == ["four", "one"]
    assert [told.thread_id for told in told_sessions(tmp_path, limit=1)] == ["four"]
    assert told_sessions(tmp_path / "nowhere", limit=9) == ()
