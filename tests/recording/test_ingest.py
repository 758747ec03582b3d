"""A file that is taken in becomes one rollout a thread: redacted, under its own id, and only once."""

from __future__ import annotations

import json
import shutil
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from stillroom import Recorder, load_settings
from stillroom.clock import FixedClock
from stillroom.config import Settings
from stillroom.errors import RecordingError
from stillroom.homes import Format
from stillroom.recording.ingest import ingest_file
from stillroom.recording.ingested import IngestReport
from stillroom.sessions.discovery import Found
from stillroom.sessions.events import Ran, Said, read_events
from stillroom.sessions.readers import open_thread, reader_of
from stillroom.store import Store
from stillroom.thread import FileStamp, Thread

DATA = Path(__file__).parents[1] / "data"
EXAMPLE = Path(__file__).parents[2] / "examples" / "codex-home"
LIMIT = 8 * 1024 * 1024
CLOCK = FixedClock(2_000_000_000_000)
TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(home=tmp_path / "home")


def ingest(settings: Settings, path: Path, format: Format = "codex", *, cwd: str | None = None) -> IngestReport:
    return ingest_file(settings, path, format=format, clock=CLOCK, cwd=cwd)


def recorded(settings: Settings) -> list[Thread]:
    found = reader_of("stillroom").discover(settings.home, {}, max_line_bytes=LIMIT)
    return [each.thread for each in found if isinstance(each, Found)]


def events(thread: Thread) -> list[Said | Ran]:
    with open_thread(thread, max_line_bytes=LIMIT) as items:
        return read_events(items)


def samples() -> list[tuple[Format, Path]]:
    """One file of each format whose sessions are files."""
    first: dict[Format, Path] = {"codex": sorted(EXAMPLE.rglob("rollout-*.jsonl"))[0]}
    places: list[tuple[Format, str]] = [
        ("claude-code", "claude-code/2.1.150/projects/*/*.jsonl"),
        ("gemini-cli", "gemini-cli/*/tmp/*/chats/session-*.jsonl"),
        ("qwen-code", "qwen-code/*/projects/*/chats/*.jsonl"),
        ("kimi-code", "kimi-code/*/sessions/*/*/agents/main/wire.jsonl"),
        ("pi", "pi/*/sessions/*/*.jsonl"),
        ("copilot-cli", "copilot-cli/*/session-state/*/events.jsonl"),
    ]
    for format, pattern in places:
        first[format] = sorted(DATA.glob(pattern))[0]
    return list(first.items())


@pytest.mark.parametrize(("format", "sample"), samples(), ids=[format for format, _ in samples()])
def test_a_file_of_any_format_comes_in_with_all_that_was_said_and_once(
    format: Format, sample: Path, settings: Settings, tmp_path: Path
) -> None:
    moved = Path(shutil.copy(sample, tmp_path / sample.name))
    (found,) = reader_of(format).discover(moved, {}, max_line_bytes=LIMIT)
    assert isinstance(found, Found)
    report = ingest(settings, moved, format)
    (taken,) = report.threads
    assert (taken.outcome, taken.thread_id, report.refused) == ("new", found.thread.thread_id, ())
    (thread,) = recorded(settings)
    for name in ("thread_id", "source", "cwd", "created_at_ms", "updated_at_ms", "parent_thread_id"):
        assert getattr(thread, name) == getattr(found.thread, name), name
    meta = json.loads(Path(thread.rollout_path).read_bytes().splitlines()[0])["payload"]
    assert (meta["cli_version"] or None) == found.thread.cli_version
    assert thread.cli_version == " ".join(filter(None, (meta["originator"], found.thread.cli_version)))
    before, after = events(found.thread), events(thread)
    assert before and [_told(event) for event in after] == [_told(event) for event in before]
    written = Path(thread.rollout_path).read_bytes()
    (again,) = ingest(settings, moved, format).threads
    assert again.outcome == "unchanged" and Path(thread.rollout_path).read_bytes() == written
    assert json.loads(written.splitlines()[0])["payload"]["ingested_from"] == format


def _told(event: Said | Ran) -> object:
    if isinstance(event, Said):
        return event.who, event.text
    return event.tool, event.command, event.arguments, event.output, event.exit_code, event.ok


def lines(*texts: str, thread_id: str = "01a2273c-0036-7133-90f0-7698c74b216a", **meta: object) -> bytes:
    payload = {"id": thread_id, "timestamp": "2026-11-29T12:16:00.000Z", "cwd": "/w", "source": "cli", **meta}
    made = [{"timestamp": "2026-11-29T12:16:00.000Z", "type": "session_meta", "payload": payload}]
    for second, text in enumerate(texts):
        content = [{"type": "input_text", "text": text}]
        item = {"type": "message", "role": "user", "content": content}
        made.append({"timestamp": f"2026-11-29T12:16:{second % 60:02}.000Z", "type": "response_item", "payload": item})
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in made)


def test_a_grown_file_brings_what_is_new_and_an_older_copy_takes_nothing_away(
    settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "any name.jsonl"
    outcomes = []
    for texts in (("one", "two"), ("one", "two", "three"), ("one",), ("one", "other")):
        file.write_bytes(lines(*texts))
        (taken,) = ingest(settings, file).threads
        (thread,) = recorded(settings)
        outcomes.append((taken.outcome, [event.text for event in events(thread) if isinstance(event, Said)]))
    assert outcomes == [
        ("new", ["one", "two"]),
        ("updated", ["one", "two", "three"]),
        ("unchanged", ["one", "two", "three"]),
        ("updated", ["one", "other"]),
    ]


def test_secrets_blobs_and_damage_stay_out_and_are_told(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    image = "data:image/png;base64," + "QUJD" * 500
    file.write_bytes(lines(TOKEN, image, originator="my-ide") + b'garbage\n{"timestamp":"2026-11-29T12:16:00.000Z","ty')
    before = file.read_bytes()
    (taken,) = ingest(settings, file, cwd="/here").threads
    assert (taken.items, taken.cwd, taken.left_out.bad_lines, taken.left_out.images) == (2, "/here", 1, 1)
    assert taken.left_out.torn and TOKEN not in taken.preview
    rollout = Path(taken.path)
    text = rollout.read_text(encoding="utf-8")
    assert TOKEN not in text and image not in text
    assert json.loads(text.splitlines()[0])["payload"]["originator"] == "my-ide"
    assert rollout.stat().st_mode & 0o777 == 0o600 and rollout.parent.stat().st_mode & 0o777 == 0o700
    assert file.read_bytes() == before
    assert not list(settings.home.glob("sessions/.ingest-*"))


def test_ids_that_are_no_uuid_have_a_file_of_their_own(settings: Settings, tmp_path: Path) -> None:
    for name in ("ticket-1", "ticket-2", "ticket-1"):
        (tmp_path / "s.jsonl").write_bytes(lines("hello", thread_id=name))
        ingest(settings, tmp_path / "s.jsonl")
    assert {thread.thread_id for thread in recorded(settings)} == {"ticket-1", "ticket-2"}


def test_what_every_pass_reads_or_was_recorded_here_is_not_taken_in_twice(settings: Settings, tmp_path: Path) -> None:
    with Recorder("bot", thread_id="mine", home=settings.home) as recorder:
        recorder.user("hello")
    file = tmp_path / "s.jsonl"
    file.write_bytes(lines("other", thread_id="mine"))
    (refused,) = ingest(settings, file).refused
    assert "was recorded here as it happened" in refused.reason
    assert [thread.preview for thread in recorded(settings)] == ["hello"]

    file.write_bytes(lines("other", thread_id="known"))
    (found,) = reader_of("codex").discover(file, {}, max_line_bytes=LIMIT)
    assert isinstance(found, Found)
    with Store.open(settings.database, clock=CLOCK) as store:
        store.threads.save([(found.thread, FileStamp(size=1, mtime_ns=1))])
    (refused,) = ingest(settings, file).refused
    assert "is read by every pass already" in refused.reason and not ingest(settings, file).threads


def test_a_file_that_holds_nothing_of_the_format_is_refused_and_nothing_is_left(
    settings: Settings, tmp_path: Path
) -> None:
    with pytest.raises(RecordingError, match="is no file"):
        ingest(settings, tmp_path)
    (tmp_path / "x").write_bytes(b"\x00\x01 nothing\n")
    for format in ("codex", "claude-code", "gemini-cli", "opencode", "qwen-code", "copilot-cli"):
        report = ingest(settings, tmp_path / "x", format)  # type: ignore[arg-type]
        assert not report.threads and report.refused[0].reason, format
    assert not list(settings.home.glob("sessions/**/*.jsonl"))


def test_an_interruption_leaves_the_rollout_as_it_was(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_bytes(lines("one"))
    (taken,) = ingest(settings, file).threads
    before = Path(taken.path).read_bytes()
    file.write_bytes(lines("one", "two"))

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest_file(settings, file, format="codex", clock=CLOCK, on_progress=interrupt)
    assert Path(taken.path).read_bytes() == before
    assert not list(settings.home.glob("sessions/.ingest-*"))
    (settings.home / "sessions" / ".ingest-left").write_bytes(b"of a killed one")
    assert ingest(settings, file).threads[0].outcome == "updated"
    assert not list(settings.home.glob("sessions/.ingest-*"))


def test_two_that_take_in_the_same_file_at_once_make_one_rollout(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_bytes(lines(*map(str, range(200))))
    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(lambda _: ingest(settings, file), range(4)))
    assert sorted(report.threads[0].outcome for report in reports) == ["new", *["unchanged"] * 3]
    assert len(recorded(settings)) == 1


@pytest.mark.slow
def test_a_long_session_is_taken_in_at_constant_memory(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_bytes(lines(*["many words " * 9000] * 400))
    tracemalloc.start()
    (taken,) = ingest(settings, file).threads
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken.items == 400 and Path(taken.path).stat().st_size > 39_000_000 and peak < 12_000_000


def test_an_evaluation_is_about_its_task_although_no_person_says_it(settings: Settings) -> None:
    (log,) = DATA.glob("inspect-ai/*/*.eval")
    (taken,) = ingest(settings, log, "inspect-ai").threads
    (thread,) = recorded(settings)
    assert thread.source == "cli"
    assert thread.preview == taken.preview == "Check the history [[par]]"
    assert not any(event.who == "user" for event in events(thread) if isinstance(event, Said))
