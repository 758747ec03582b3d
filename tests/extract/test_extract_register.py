from __future__ import annotations

import sqlite3
from contextlib import closing

import msgspec
import pytest
from extract_home import Home, thread_id

from stillroom.recall.usage.counts import count_usage
from stillroom.store import Question


def test_new_sessions_are_found_and_unchanged_ones_are_not_read_again(home: Home):
    home.add(0)
    home.add(1)
    assert home.register().found == 2
    again = home.register()
    assert (again.found, again.unchanged) == (0, 2)


def test_a_session_that_went_on_is_found_again(home: Home):
    path = home.add(0)
    home.register()
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines(keepends=True)[-1])
    assert home.register().found == 1


def test_a_broken_file_is_reported_and_the_others_are_taken(home: Home):
    home.add(0)
    broken = home.add(1)
    broken.write_bytes(b"\x00\x01 no session\n")
    report = home.register()
    assert report.found == 1
    assert [file.path for file in report.broken] == [str(broken)]
    assert report.broken[0].reason


def test_a_session_that_vanished_is_counted(home: Home):
    home.add(0).unlink()
    path = home.add(1)
    home.register()
    path.unlink()
    assert home.register().missing == 1


def test_a_home_that_is_not_there_has_no_threads(home: Home):
    assert home.register().total == 0


def test_with_generation_off_new_sessions_stay_out_and_known_ones_go_on(home: Home):
    home.add(0)
    home.register()
    home.change(generate_memories=False)
    home.add(1)
    home.register()
    home.change(generate_memories=True)
    home.register()
    modes = {thread.thread_id: thread.memory_mode for thread in home.store.threads.newest()}
    assert modes == {thread_id(0): "enabled", thread_id(1): "disabled"}


def test_secrets_are_in_nothing_that_is_stored_of_a_thread(home: Home):
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    path = home.add(0, messages=(f"Push with {secret} please.",))
    text = path.read_text(encoding="utf-8")
    git = f'"git":{{"branch":"x-{secret}","repository_url":"https://me:{secret}@github.com/a/b.git"}},'
    path.write_text(text.replace('"cwd":', f'{git}"cwd":', 1), encoding="utf-8")
    home.register()
    (thread,) = home.store.threads.newest()
    assert thread.preview == "Push with [REDACTED_SECRET:github_token] please."
    assert thread.git_branch is not None
    assert thread.git_origin_url is not None
    assert thread.git_origin_url.endswith("github.com/a/b.git")
    home.store.close()
    assert secret.encode() not in home.settings.database.read_bytes()


def test_a_redacted_title_is_no_change_in_every_pass(home: Home):
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    home.add(0, messages=(f"Push with {secret} please.",))
    with closing(sqlite3.connect(home.codex / "state_5.sqlite")) as db:
        db.execute("CREATE TABLE threads (id TEXT PRIMARY KEY, title TEXT)")
        db.execute("INSERT INTO threads VALUES (?, ?)", (thread_id(0), f"Push {secret}"))
        db.commit()
    home.register()
    (stored,) = home.store.threads.newest()
    assert stored.title == "Push [REDACTED_SECRET:github_token]"
    assert home.register().unchanged == 1
    assert home.store.threads.newest() == [stored]


def test_a_change_in_the_table_of_a_thread_of_years_ago_is_seen(home: Home):
    home.settings = msgspec.structs.replace(
        home.settings, stage_one=msgspec.structs.replace(home.settings.stage_one, thread_scan_limit=1)
    )
    for number in range(3):
        home.add(number)
    home.register()
    with closing(sqlite3.connect(home.codex / "state_5.sqlite")) as db:
        db.execute("CREATE TABLE threads (id TEXT PRIMARY KEY, memory_mode TEXT)")
        db.execute("INSERT INTO threads VALUES (?, 'disabled')", (thread_id(2),))
        db.commit()
    home.register()
    assert [thread.memory_mode for thread in home.store.threads.newest()] == ["enabled", "enabled", "disabled"]


@pytest.mark.parametrize(
    ("cwd", "refused"),
    [
        ("{home}/memories", True),
        ("{home}/staging/1", True),
        ("{codex}/memories/skills", True),
        ("/home/dev/.claude-mem/observer-sessions", True),
        ("{home}/memories-of-mine", False),
        ("/home/dev/claude-mem", False),
    ],
)
def test_a_session_of_a_memory_is_never_learnt_from(home: Home, cwd: str, refused: bool):
    home.change(extract_model="offline")
    home.add(0, cwd=cwd.format(home=home.settings.home, codex=home.codex))
    for _ in range(2):  # it stays so when its agent's table is looked at again
        home.register()
    (standing,) = home.store.standings.of_all(
        Question(memories=home.settings.memories, stage=home.settings.stage_one, now_ms=home.clock.now_ms())
    )
    assert (standing.decided is not None and standing.decided.rule == "memory_worker") is refused
    assert count_usage(home.settings, home.store, home.clock).bytes == 0 or not refused
    assert (home.run().claimed == 0) is refused
