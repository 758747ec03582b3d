from __future__ import annotations

import os
import sys
from pathlib import Path
from types import FrameType

from claude_code_session import LIMIT, assistant, attached, line, read, says, talk, user

from stillroom.sessions.agents.claude_code.reader import open_items
from stillroom.sessions.events import read_events

FIRST, SECOND, THIRD = (f"{digit * 8}-2222-4333-8444-555555555555.jsonl" for digit in "123")


def words(path: Path) -> list[str]:
    with open_items(path, max_line_bytes=LIMIT) as items:
        return [text for _, text in talk(read_events(items))]


def test_what_the_user_went_back_behind_is_marked(tmp_path: Path):
    events, stats = read(
        tmp_path,
        user(1, "Start."),
        says(2, "Started."),
        user(3, "Use pytest."),
        says(4, "With pytest."),
        user(5, "And nose."),
        says(6, "With nose."),
        user(7, "Use unittest.", under=2),
        says(8, "With unittest."),
    )
    assert [who for who, _ in talk(events)][::2] == ["user", "harness", "harness", "user"]
    assert "<superseded_message" in talk(events)[2][1]
    assert "Use pytest." in talk(events)[2][1]
    assert stats.superseded == 2


def test_going_back_twice_leaves_only_the_last(tmp_path: Path):
    events, _ = read(
        tmp_path,
        says(1, "Hello."),
        user(2, "A."),
        user(3, "B.", under=1),
        user(4, "[Request interrupted by user]", under=1),
        user(5, "C.", under=1),
        user(6, "<command-name>/clear</command-name>", under=1),
    )
    assert [text for who, text in talk(events) if who == "user"] == ["C."]


def test_the_first_prompt_can_be_taken_back_too(tmp_path: Path):
    hook = attached(1, type="hook_success")
    for opening in ([user(2, "A.", under=0)], [hook, user(2, "A.")]):
        rest = [says(3, "a"), user(4, "B."), user(5, "C.", under=0), says(6, "c")]
        events, stats = read(tmp_path, *opening, *rest)
        assert [text for who, text in talk(events) if who == "user"] == ["C."]
        assert stats.superseded == 2


def test_what_was_said_before_a_compaction_is_not_taken_back(tmp_path: Path):
    boundary = line("system", 3, under=0, subtype="compact_boundary")
    # Written by other programs, whose records have no parents at all.
    orphans = [user(1, "A.", under=0), line("assistant", 2, under=0, message={"content": "a"}), user(3, "B.", under=0)]
    for lines in ([user(1, "A."), says(2, "a"), boundary, user(4, "B.", under=0)], orphans):
        events, stats = read(tmp_path, *lines)
        assert ([text for who, text in talk(events) if who == "user"], stats.superseded) == (["A.", "B."], 0)


def test_a_session_stored_twice_in_a_file_is_read_once(tmp_path: Path):
    once = says(1, "a") + user(2, "A.") + user(3, "B.", under=1) + says(4, "b")
    events, stats = read(tmp_path, once, once)
    assert [text for who, text in talk(events) if who != "harness"] == ["a", "B.", "b"]
    assert (stats.dropped, stats.superseded) == ({"seen before": 4}, 1)


def test_a_fork_is_read_from_where_it_left_its_origin(tmp_path: Path):
    origin = [user(1, "A."), says(2, "a")]
    copied = assistant(2, {"type": "text", "text": "a"}, requestSessionId=FIRST.removesuffix(".jsonl"))
    (tmp_path / FIRST).write_bytes(b"".join([*origin, user(3, "Go on."), says(4, "gone")]))
    (tmp_path / SECOND).write_bytes(b"".join([origin[0], copied, user(13, "B.", under=2), says(14, "b")]))
    assert words(tmp_path / FIRST) == ["A.", "a", "Go on.", "gone"]
    assert words(tmp_path / SECOND) == ["B.", "b"]
    (tmp_path / FIRST).unlink()
    assert words(tmp_path / SECOND) == ["A.", "a", "B.", "b"]


def test_resumed_copies_of_older_clients_hold_only_their_new_part(tmp_path: Path):
    lines = [user(1, "A."), says(2, "a"), user(3, "B."), says(4, "b"), user(5, "C."), says(6, "c")]
    for name, count in ((FIRST, 2), (SECOND, 4), (THIRD, 6)):
        (tmp_path / name).write_bytes(b"".join(lines[:count]))
    assert [words(tmp_path / name) for name in (FIRST, SECOND, THIRD)] == [["A.", "a"], ["B.", "b"], ["C.", "c"]]


def test_of_two_equal_files_one_is_read(tmp_path: Path):
    for name in (FIRST, SECOND):
        (tmp_path / name).write_bytes(user(1, "A."))
    assert [words(tmp_path / name) for name in (FIRST, SECOND)] == [["A."], []]


def test_sessions_that_left_each_other_lose_nothing(tmp_path: Path):
    """Which of the two came first can't be told: both are read whole."""
    common = [user(1, "A."), says(2, "a")]
    (tmp_path / FIRST).write_bytes(b"".join([*common, user(3, "B.")]))
    (tmp_path / SECOND).write_bytes(b"".join([*common, user(4, "C.", under=2)]))
    assert words(tmp_path / FIRST) == ["A.", "a", "B."]
    assert words(tmp_path / SECOND) == ["A.", "a", "C."]


def test_a_folder_of_many_sessions_is_looked_at_once(tmp_path: Path):
    """Every session asks for those that begin with the same prompt; nobody may look at all files for each."""
    paths = [tmp_path / f"{number:08x}-2222-4333-8444-555555555555.jsonl" for number in range(200)]
    for number, path in enumerate(paths):
        path.write_bytes(user(2 * number + 1, "A.") + says(2 * number + 2, "a"))
    asked = 0

    def count(frame: FrameType, event: str, called: object) -> None:
        nonlocal asked
        asked += event == "c_call" and called in (os.open, os.stat)

    sys.setprofile(count)
    try:
        assert all(words(path) == ["A.", "a"] for path in paths)
    finally:
        sys.setprofile(None)
    assert asked <= 12 * len(paths)


def test_of_many_copies_of_copies_each_holds_only_its_new_part(tmp_path: Path):
    lines = [record for number in range(1, 101, 2) for record in (user(number, "A."), says(number + 1, "a"))]
    paths = [tmp_path / f"{(7 * number) % 50:08x}-2222-4333-8444-555555555555.jsonl" for number in range(50)]
    for number, path in enumerate(paths):
        path.write_bytes(b"".join(lines[: 2 * number + 2]))
    assert [words(path) for path in paths] == [["A.", "a"]] * 50
