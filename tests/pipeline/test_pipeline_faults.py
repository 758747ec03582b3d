"""Bad sessions, folders, databases and clocks, in whole passes: told with a reason, and nothing else is harmed."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import subprocess
import threading
from pathlib import Path

import pytest
from faulty_house import (
    FIRST,
    HOUR,
    NOT_ALMIGHTY,
    NOW_MS,
    SECOND,
    YEAR,
    FaultyHouse,
    consolidated,
    failed,
    files,
    slow,
    told,
)

from stillroom.clock import FixedClock
from stillroom.config import DatabaseLimits, Memories
from stillroom.consolidate.outcome import NoChanges, Skipped
from stillroom.extract.outcome import Failed as ThreadFailed
from stillroom.progress import Progress
from stillroom.store import Store

needs_permissions = pytest.mark.skipif(
    os.geteuid() == 0 and shutil.which(NOT_ALMIGHTY[0]) is None, reason="permissions do not bind root without setpriv"
)


@pytest.fixture
def house(tmp_path: Path) -> FaultyHouse:
    return FaultyHouse(tmp_path)


# Sessions


def test_sessions_that_say_nothing_are_told_and_the_others_are_taken(house: FaultyHouse) -> None:
    whole = (house.sessions / FIRST).read_bytes()
    bad = {
        house.session(1, b""): "holds no line",
        house.session(2, whole[:200]): "its first line is not complete",
        house.session(3, b"\x00\xff\xfe\x80" * 500): "can't be used",
        house.session(4, b"\n\n \n"): "holds no line",
        house.session(5, b'{"type":"session_meta","payload":{"id":"../../x","timestamp":"x"}}\n'): "no thread id",
        house.session(6, b"[" * 100_000): "can't be used",
    }
    report = house.run()
    assert report.threads is not None
    assert {broken.path for broken in report.threads.broken} == {str(path) for path in bad}
    for broken in report.threads.broken:
        assert bad[Path(broken.path)] in broken.reason
    assert consolidated(report).inputs == 1
    assert not report.failed


def test_a_session_torn_at_its_end_gives_what_it_has(house: FaultyHouse) -> None:
    path = house.sessions / FIRST
    path.write_bytes(path.read_bytes() + b'{"timestamp":"2026-11-29T12:16:30.000Z","type":"response_item","pay')
    assert consolidated(house.run()).inputs == 1


def test_what_is_only_named_like_a_session_is_neither_opened_nor_waited_for(house: FaultyHouse) -> None:
    os.mkfifo(house.session(1))
    with socket.socket(socket.AF_UNIX) as server:
        folder = Path.cwd()
        os.chdir(house.sessions)  # a socket's path is short
        try:
            server.bind(house.session(2).name)
        finally:
            os.chdir(folder)
        house.session(3).symlink_to("/dev/zero")
        house.session(4).symlink_to("/nowhere")
        house.session(5).mkdir()
        if os.geteuid() == 0:
            os.mknod(house.session(7), 0o600 | 0o020000, os.makedev(1, 3))
        report = house.run()
    assert report.threads is not None
    assert (report.threads.found, report.threads.broken) == (1, ())
    assert consolidated(report).inputs == 1


@pytest.mark.parametrize("then", ["gone", slow("empty"), slow("torn")])
def test_a_session_that_changes_between_scan_and_reading_fails_alone(house: FaultyHouse, then: str) -> None:
    house.add_second()

    def break_it(progress: Progress) -> None:
        if progress.stage == "scan":
            path = house.sessions / SECOND
            path.unlink(missing_ok=True)
            if then != "gone":
                path.write_bytes(b"" if then == "empty" else b'{"timestamp":"20')

    report = house.run(on_progress=break_it)
    assert report.extract is not None
    failures = [outcome for outcome in report.extract.outcomes if isinstance(outcome, ThreadFailed)]
    assert consolidated(report).inputs == 1
    if then == "torn":  # a line that is not complete is no line yet
        assert failures == []
        return
    assert [SECOND in failure.reason for failure in failures] == [True]
    assert report.failed
    with Store.open(house.settings.database, clock=house.clock) as store:
        job = store.extraction.job(failures[0].thread_id)
    assert job is not None
    assert (job.status, job.last_error) == ("error", failures[0].reason)


@pytest.mark.slow
def test_lines_of_many_megabytes_are_cut_and_counted(house: FaultyHouse) -> None:
    path = house.sessions / FIRST
    *lines, last = path.read_bytes().splitlines(keepends=True)
    output = b'{"timestamp":"2026-11-29T12:16:22.000Z","type":"response_item","payload":{"type":"function_call_output",'
    huge = output + b'"call_id":"x","output":"' + b"word and more \\n" * 1_400_000 + b'"}}\n'
    torn = output + b'"call_id":"y","output":"' + b"\xff\x00" * 10_000_000 + b"\n"
    path.write_bytes(b"".join(lines) + huge + torn + huge + last)
    report = house.run()
    assert report.extract is not None
    with_output, read = report.extract.with_output, report.extract.read
    assert (with_output, read.long_lines) == (1, 3)
    assert read.cut_bytes > 30_000_000
    assert consolidated(report).inputs == 1


@pytest.mark.slow
@needs_permissions
def test_sessions_without_permission_are_told_by_the_command(house: FaultyHouse) -> None:
    house.add_second()
    (house.sessions / SECOND).chmod(0)
    done = house.command_without_powers()
    assert f"`{house.sessions / SECOND}`" in told(done)
    assert "Permission denied" in done.stderr
    assert "1 memory (offline)" in done.stderr
    assert done.returncode == 0


# Folders


@pytest.mark.parametrize(
    "kind", ["link", "repository", "home", *map(slow, ("file", "crowd", "own home", "below a file"))]
)
def test_a_folder_that_is_not_ours_is_refused_and_left_alone(
    house: FaultyHouse, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = house.base / "theirs"
    target.mkdir()
    (target / "a.txt").write_text("theirs", encoding="utf-8")
    root = target
    match kind:
        case "link":
            root = house.base / "link"
            root.symlink_to(target)
        case "file":
            root = target / "a.txt"
        case "below a file":
            root = target / "a.txt" / "memories"
        case "repository":
            subprocess.run(["git", "init", "-q", str(target)], check=True, timeout=20)
            (target / "link").symlink_to("a.txt")
        case "home":
            monkeypatch.setenv("HOME", str(target))
        case "crowd":
            for number in range(9):
                (target / f"{number}.txt").write_text("theirs", encoding="utf-8")
        case "own home":
            root = house.settings.home
    before = files(target)
    house.set(memories=Memories(root=str(root)))
    report = house.run()
    assert report.stopped is not None
    assert str(root) in report.stopped.reason
    assert report.failed
    assert (report.extract, report.consolidate) == (None, None)
    assert report.threads is not None
    assert files(target) == before
    with Store.open(house.settings.database, clock=house.clock) as store:
        assert b'"stopped"' in store.ledger.last_passes()[0].report_json


@pytest.mark.slow
def test_the_command_tells_why_a_pass_stopped_and_what_to_do(house: FaultyHouse) -> None:
    (house.base / "file").write_bytes(b"")
    done = house.command("--root", str(house.base / "file"))
    assert done.returncode == 1
    assert f"stopped       `{house.base / 'file'}` is not a folder" in told(done)
    assert "hint: move the file away" in done.stderr


@pytest.mark.slow
@needs_permissions
@pytest.mark.parametrize("what", ["home", "root", "MEMORY.md", "parent"])
def test_without_permission_the_reason_names_the_path(house: FaultyHouse, what: str) -> None:
    house.run()
    house.add_second()
    path = {
        "home": house.settings.home,
        "root": house.root,
        "MEMORY.md": house.handbook,
        "parent": house.settings.home,
    }[what]
    before = files(house.root)
    path.chmod(0 if what != "home" else 0o500)
    try:
        done = house.command_without_powers(now="2026-12-01T09:00:00Z")
    finally:
        path.chmod(0o700)
    assert done.returncode in (1, 2)
    assert str(path) in told(done) or path.name in done.stderr
    assert "ermission denied" in done.stderr or "can't be written" in done.stderr or "can't be used" in done.stderr
    assert files(house.root) == before


# The state database


@pytest.mark.slow
def test_a_newer_schema_stops_the_pass_and_stays(house: FaultyHouse) -> None:
    house.run()
    with sqlite3.connect(house.settings.database) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    before = files(house.root)
    done = house.command()
    assert (done.returncode, files(house.root)) == (1, before)
    assert "schema version 99" in told(done)
    assert "pip install --upgrade stillroom" in done.stderr


def test_damage_inside_the_database_is_told_and_the_folder_stays(house: FaultyHouse) -> None:
    house.run()
    house.add_second()
    before = files(house.root)
    with house.settings.database.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (house.settings.database.stat().st_size - 4096))
    report = house.later()
    reason = report.detail or (report.stopped and report.stopped.reason) or ""
    assert "is damaged" in reason
    assert report.failed
    assert files(house.root) == before


@pytest.mark.parametrize("mode", ["IMMEDIATE", slow("EXCLUSIVE")])
def test_a_database_that_another_process_holds_stops_the_pass_and_the_next_one_goes_on(
    house: FaultyHouse, mode: str
) -> None:
    house.run()
    house.add_second()
    house.set(database_limits=DatabaseLimits(busy_timeout_ms=20))
    other = sqlite3.connect(house.settings.database, isolation_level=None)
    if mode == "EXCLUSIVE":
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute(f"BEGIN {mode}")
    other.execute("UPDATE jobs SET worker_id = worker_id")
    report = house.later()
    other.execute("ROLLBACK")
    other.close()
    assert report.failed
    assert "stays locked" in report.detail + (report.stopped.reason if report.stopped else "")
    assert consolidated(house.run()).inputs == 2


@pytest.mark.slow
@needs_permissions
def test_a_read_only_database_stops_the_pass(house: FaultyHouse) -> None:
    house.run()
    house.add_second()
    house.settings.database.chmod(0o400)
    done = house.command_without_powers(now="2026-12-01T09:00:00Z")
    assert done.returncode == 1
    assert f"`{house.settings.database}` can't be used" in told(done)
    assert "must be yours to read and write" in done.stderr


# Clocks


class JumpingClock(FixedClock):
    """Jumps each time it is asked: years on, years back."""

    def __init__(self, now_ms: int, *, years: int) -> None:
        super().__init__(now_ms)
        self.asked, self.years = 0, years

    def now_ms(self) -> int:
        self.asked += 1
        return super().now_ms() + (self.asked % 2) * self.years * YEAR * 1000


@pytest.mark.parametrize("years", [-20, slow(300)])
def test_a_clock_that_jumps_between_passes_loses_nothing_and_blocks_nothing(house: FaultyHouse, years: int) -> None:
    house.run()
    mine = "- Mine: releases are cut on Tuesdays.\n"
    house.handbook.write_text(house.handbook.read_text(encoding="utf-8") + mine, encoding="utf-8")
    house.clock.advance(seconds=years * YEAR)
    house.run()
    house.clock.advance(seconds=-years * YEAR + 8 * HOUR)
    house.add_second()
    report = house.run()
    assert consolidated(report).inputs == 2
    assert mine in house.handbook.read_text(encoding="utf-8")
    assert isinstance(house.later().consolidate, NoChanges)


@pytest.mark.parametrize("years", [5, slow(-20)])
def test_a_clock_that_jumps_in_the_middle_ends_in_a_report(house: FaultyHouse, years: int) -> None:
    report = house.run(clock=JumpingClock(NOW_MS, years=years))
    assert report.stopped is None
    house.clock.advance(seconds=8 * HOUR)
    house.add_second()
    after = house.run()
    if isinstance(after.consolidate, Skipped):
        after = house.later()
    assert consolidated(after).inputs == 2


# Words of a person


@pytest.mark.parametrize(
    "words", [b"\r\n- Mine: from Windows\r\n", b"\n- Mine: \x00 a zero byte\n"], ids=["windows", "zero byte"]
)
def test_odd_bytes_of_a_person_stay(house: FaultyHouse, words: bytes) -> None:
    house.run()
    house.handbook.write_bytes(house.handbook.read_bytes() + words)
    house.add_second()
    house.later()
    assert words.strip() in house.handbook.read_bytes()


def test_a_byte_order_mark_and_windows_lines_are_survived(house: FaultyHouse) -> None:
    house.run()
    for name in ("MEMORY.md", "memory_summary.md"):
        path = house.root / name
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    house.add_second()
    assert consolidated(house.later()).inputs == 2
    assert (house.root / "memory_summary.md").read_bytes().startswith(b"v1\n")


@pytest.mark.slow
def test_a_handbook_that_grew_beyond_all_bounds_is_told_and_stays(house: FaultyHouse) -> None:
    house.run()
    mine = "".join(f"Paragraph {number} of a person, who writes a lot.\n\n" for number in range(200_000))
    house.handbook.write_text(house.handbook.read_text(encoding="utf-8") + "\n" + mine, encoding="utf-8")
    before = house.handbook.read_bytes()
    house.add_second()
    outcome = failed(house.later())
    assert outcome.status == "failed_invalid_artifacts"
    assert "at most 1048576 are allowed" in outcome.reason
    assert house.handbook.read_bytes() == before
    house.handbook.write_bytes(b"x" * 40 * 1024 * 1024)
    report = house.later()
    assert any("MEMORY.md" in warning and "too large" in warning for warning in consolidated(report).warnings)
    assert house.handbook.stat().st_size == 40 * 1024 * 1024
    house.handbook.write_bytes(before[:20_000])
    assert b"Paragraph 9 of" in house.handbook.read_bytes()
    report = house.later()
    assert not report.failed
    assert b"Paragraph 9 of" in house.handbook.read_bytes()


@pytest.mark.slow
def test_edits_made_all_the_time_are_never_lost(house: FaultyHouse) -> None:
    house.run()
    house.add_second()
    stop = threading.Event()
    written: list[str] = []

    def write() -> None:
        while not stop.is_set():
            line = f"- Mine: number {len(written)}"
            with house.handbook.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
            written.append(line)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            house.later()
    finally:
        stop.set()
        writer.join()
    house.later()
    lines = house.handbook.read_text(encoding="utf-8").splitlines()
    assert [line for line in written if line not in lines] == []


def test_odd_names_in_the_folder_stay_and_stop_nothing(house: FaultyHouse) -> None:
    house.run()
    odd = [b"a\nb.md", b"\xff\xfe.md", b"x" * 255, b"Notes.md", b"notes.md", b"-rf", b"con:.md", b"'\"`$(id)`.md"]
    for name in odd:
        Path(os.fsdecode(os.fsencode(house.root) + b"/" + name)).write_bytes(b"mine")
    deep = house.root / "/".join("d" * 30)
    deep.mkdir(parents=True)
    (deep / "deep.md").write_bytes(b"mine")
    for name in (b"\xff", b"new\nline", b"..."):
        notes = Path(os.fsdecode(os.fsencode(house.root) + b"/extensions/" + name))
        (notes / "resources").mkdir(parents=True)
        (notes / "instructions.md").write_bytes(b"mine")
        (notes / "resources" / "2020-01-01T00-00-00-old.md").write_bytes(b"stale")
    house.add_second()
    mine = {path: data for path, data in files(house.root).items() if data == b"mine"}
    report = house.later()
    assert consolidated(report).inputs == 2
    assert {path: files(house.root).get(path) for path in mine} == mine
    assert b"stale" not in files(house.root).values()
    assert isinstance(house.later().consolidate, NoChanges)


def test_a_home_whose_name_is_not_utf8_is_told_of_as_well_as_any(tmp_path: Path) -> None:
    house = FaultyHouse(Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\n")))
    house.session(1, b"")
    report = house.run()
    assert report.threads is not None
    assert len(report.threads.broken) == 1
    assert consolidated(report).inputs == 1
