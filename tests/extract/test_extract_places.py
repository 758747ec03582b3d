"""A thread that lies in several places is read from one of them, scan after scan."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
from extract_home import Home, thread_id

from stillroom.config import Source
from stillroom.extract.register import RegisterReport
from stillroom.recording.ingest import ingest_file
from stillroom.store.records import Place


def with_source(home: Home, root: Path, format: str = "codex") -> None:
    sources = (*home.settings.sources, Source(format=format, root=str(root)))  # type: ignore[arg-type]
    home.settings = msgspec.structs.replace(home.settings, sources=sources)


def place(home: Home) -> str:
    (thread,) = home.store.threads.newest()
    return thread.rollout_path


def counted(report: RegisterReport) -> tuple[int, int, int]:
    return report.found, report.unchanged, report.missing


def test_what_was_ingested_and_lies_under_a_source_later_is_read_there(home: Home, tmp_path: Path) -> None:
    with_source(home, home.settings.home, "stillroom")
    path = home.add(0)
    kept = shutil.move(path, tmp_path / path.name)
    report = ingest_file(home.settings, Path(kept), format="codex", clock=home.clock)
    assert counted(home.register()) == (1, 0, 0)
    assert place(home) == report.threads[0].path
    shutil.move(kept, path)
    assert counted(home.register()) == (1, 1, 0)
    assert place(home) == str(path)
    for _ in range(3):
        assert counted(home.register()) == (0, 2, 0)
        assert place(home) == str(path)


def test_a_backup_changes_nothing_until_it_is_all_that_is_left(home: Home, tmp_path: Path) -> None:
    path = home.add(0)
    backup = tmp_path / "backup"
    shutil.copytree(home.codex, backup)
    with_source(home, backup)
    assert counted(home.register()) == (2, 0, 0)
    first = place(home)
    for _ in range(2):
        assert counted(home.register()) == (0, 2, 0)
        assert place(home) == first == str(path)
    path.unlink()
    assert counted(home.register()) == (0, 1, 1)
    assert counted(home.register()) == (1, 0, 0)
    assert place(home).startswith(str(backup))
    assert counted(home.register()) == (0, 1, 0)


def test_the_place_where_a_session_went_on_takes_over(home: Home, tmp_path: Path) -> None:
    path = home.add(0)
    backup = tmp_path / "backup"
    shutil.copytree(home.codex, backup)
    with_source(home, backup)
    home.register()
    (copy,) = backup.rglob("rollout-*.jsonl")
    copy.write_bytes(copy.read_bytes() + b'{"timestamp":"2027-01-01T00:00:00.000Z","type":"event_msg","payload":{}}\n')
    assert counted(home.register()) == (1, 1, 0)
    assert place(home) == str(copy)
    assert counted(home.register()) == (0, 2, 0)
    path.unlink()
    assert counted(home.register()) == (0, 1, 0), "a copy that is gone is no missing session"


def test_a_session_that_was_moved_is_read_from_its_new_place_at_once(home: Home) -> None:
    path = home.add(0)
    home.register()
    archived = home.codex / "archived_sessions" / path.name
    archived.parent.mkdir()
    path.replace(archived)
    assert counted(home.register()) == (1, 0, 0)
    assert place(home) == str(archived)


def test_a_talk_that_moves_in_its_file_is_read_where_it_is_now(home: Home, tmp_path: Path) -> None:
    """A log of requests has the whole talk on each line: the last line is the thread, by the name of the first."""
    log = tmp_path / "log.jsonl"
    lines = [
        {"created_at": 1780000000, "messages": [{"role": "user", "content": f"{n}"} for n in range(last)]}
        for last in (1, 2)
    ]
    log.write_text(json.dumps(lines[0]) + "\n", encoding="utf-8")
    with_source(home, log, "chat-messages")
    home.register()
    first = place(home)
    log.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert home.register().found == 1
    assert place(home).startswith(f"{log}#") and place(home) != first


def test_places_of_threads_that_are_not_known_are_not_kept(home: Home) -> None:
    home.add(0)
    home.register()
    known = home.store.threads.places([thread_id(0), "nobody"])
    assert set(known) == {thread_id(0)}
    home.store.threads.save_copies([("nobody", Place("codex", "/elsewhere", 0, known[thread_id(0)].stamp))])
    assert set(home.store.threads.file_stamps("codex")) == {known[thread_id(0)].path}
