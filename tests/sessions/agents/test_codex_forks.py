from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from golden import LIMIT

from stillroom.sessions.agents import codex as reader
from stillroom.sessions.events import Said, read_events
from stillroom.testing import sample_rollout

STARTED_MS = 1_780_000_000_000


def said(path: Path) -> list[str]:
    with reader.open_items(path, max_line_bytes=LIMIT) as items:
        return [event.text for event in read_events(items) if isinstance(event, Said) and event.who == "user"]


def fork(origin: Path, *, number: int, lines: int | None = None, new: Iterable[str] = ("A new question.",)) -> Path:
    """A session that begins with lines of another one, written again at another time, as the client does."""
    path = sample_rollout(origin.parents[4], number=number, started_at_ms=STARTED_MS, messages=tuple(new), size_bytes=0)
    meta, *own = path.read_text(encoding="utf-8").splitlines()
    copied = origin.read_text(encoding="utf-8").splitlines()[:lines]
    first = json.loads(copied[0])["payload"]["id"]
    meta = meta.replace('"payload":{', f'"payload":{{"forked_from_id":"{first}",', 1)
    again = [json.dumps({**json.loads(line), "timestamp": "2026-06-02T00:00:00.000Z"}) for line in copied]
    path.write_text("\n".join([meta, *again, *own, ""]), encoding="utf-8")
    return path


def test_a_fork_is_read_from_where_it_left_its_origin(tmp_path: Path) -> None:
    origin = sample_rollout(tmp_path, number=1, started_at_ms=STARTED_MS, messages=("A.", "B."), size_bytes=9000)
    whole = fork(origin, number=2)
    early = fork(origin, number=3, lines=3, new=("A.",))
    deep = fork(whole, number=4, new=("And one more.",))
    assert [said(path) for path in (origin, whole, early, deep)] == [
        ["A.", "B."],
        ["A new question."],
        ["A."],
        ["And one more."],
    ]
    with reader.open_items(whole, max_line_bytes=LIMIT) as items:
        listed = [item.raw for item in items]
    assert items.stats.dropped == {"seen before": items.stats.dropped["seen before"]}
    with reader.open_items(whole, max_line_bytes=LIMIT) as joined:
        assert b",".join(joined.texts()) == b",".join(listed)
    assert (joined.stats.kept, joined.stats.messages) == (items.stats.kept, items.stats.messages) == (len(listed), 1)


def test_a_fork_whose_origin_is_gone_or_says_something_else_is_read_as_a_whole(tmp_path: Path) -> None:
    origin = sample_rollout(tmp_path, number=1, started_at_ms=STARTED_MS, messages=("A.", "B."), size_bytes=0)
    path = fork(origin, number=2)
    origin.write_text(origin.read_text(encoding="utf-8").replace("A.", "Z."), encoding="utf-8")
    assert said(path) == ["A.", "B.", "A new question."]
    origin.unlink()
    assert said(path) == ["A.", "B.", "A new question."]
    path.write_text(path.read_text(encoding="utf-8").replace('"forked_from_id":"', '"forked_from_id":"../*'), "utf-8")
    assert said(path) == ["A.", "B.", "A new question."]


def test_an_archived_origin_counts_and_a_fork_of_itself_does_not(tmp_path: Path) -> None:
    origin = sample_rollout(tmp_path, number=1, started_at_ms=STARTED_MS, messages=("A.",), size_bytes=0)
    path = fork(origin, number=2)
    (tmp_path / "archived_sessions").mkdir()
    origin.rename(tmp_path / "archived_sessions" / origin.name)
    assert said(path) == ["A new question."]
    text = path.read_text(encoding="utf-8")
    own = json.loads(text.splitlines()[0])["payload"]
    path.write_text(text.replace(own["forked_from_id"], own["id"], 1), encoding="utf-8")
    assert said(path) == ["A.", "A new question."]
