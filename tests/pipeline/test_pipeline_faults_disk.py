"""Whole passes on a disk that is full at any point, and under a limit on the size of files."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from faulty_house import FaultyHouse, consolidated, files, told

from stillroom.consolidate.outcome import Consolidated, Failed, NoChanges
from stillroom.pipeline import PipelineReport

MINE = "Releases are cut on Tuesdays, by hand.\n"


class SmallDisk:
    """A file system of a few megabytes, with as much room as it is told to have."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def leave(self, free_bytes: int) -> None:
        """Fill it up but for so many bytes."""
        self.free()
        room = os.statvfs(self.path)
        filling = room.f_bavail * room.f_frsize - free_bytes
        (self.path / "filling").write_bytes(b"\0" * max(filling, 0))

    def free(self) -> None:
        (self.path / "filling").unlink(missing_ok=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    if os.geteuid() != 0:
        pytest.skip("only root mounts a small file system")
    path = tmp_path / "disk"
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(path)], capture_output=True, text=True, timeout=20
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted: {mounted.stderr.strip()}")
    yield SmallDisk(path)
    subprocess.run(["umount", "-l", str(path)], check=True, timeout=20)


def where_it_stopped(report: PipelineReport) -> str:
    if report.skipped:
        return report.skipped
    if report.stopped and report.consolidate is None:
        return "stopped"
    if isinstance(report.consolidate, Failed):
        return report.consolidate.status
    if isinstance(report.consolidate, Consolidated) and report.consolidate.warnings:
        return "not recorded"
    if report.extract and report.extract.failed:
        return "extract"
    if report.stopped:
        return "pass not recorded"
    return "done" if isinstance(report.consolidate, Consolidated) else repr(report.consolidate)


def reasons(report: PipelineReport) -> str:
    said = [report.detail]
    said += [report.stopped.reason, report.stopped.hint or ""] if report.stopped else []
    said += [report.consolidate.reason] if isinstance(report.consolidate, Failed) else []
    said += report.consolidate.warnings if isinstance(report.consolidate, Consolidated) else []
    said += [str(outcome) for outcome in report.extract.outcomes] if report.extract else []
    return "\n".join(said)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", [True, False], ids=["first pass", "later pass"])
def test_a_disk_that_is_full_at_any_point_loses_nothing(tmp_path: Path, disk: SmallDisk, first: bool) -> None:
    """A little more room each time: the pass comes a little further each time, and the next one ends it."""
    base, prepared = disk.path / "house", tmp_path / "prepared"
    house = FaultyHouse(base)
    if not first:
        house.run()
        house.handbook.write_text(house.handbook.read_text(encoding="utf-8") + "\n" + MINE, encoding="utf-8")
    house.add_second()
    shutil.copytree(base, prepared)
    before = files(house.root) if not first else {}
    consolidated(house.later())
    expected = files(house.root)
    stops: Counter[str] = Counter()
    for free_bytes in range(0, 4 * 1024 * 1024, 4 * 1024):
        shutil.rmtree(base)
        shutil.copytree(prepared, base)
        house = FaultyHouse(base, prepared=True)
        disk.leave(free_bytes)
        report = house.later()
        where = where_it_stopped(report)
        stops[where] += 1
        if where != "done":
            assert report.failed, (free_bytes, where)
            assert "o space left" in reasons(report), (free_bytes, where, reasons(report))
        for path, content in files(house.root).items() if house.root.exists() else ():
            if not Path(path).name.startswith("."):
                assert content in (before.get(path), expected.get(path)), f"{path} is torn at {free_bytes} ({where})"
        disk.free()
        after = house.later()
        assert not after.failed, (free_bytes, where, reasons(after))
        assert isinstance(after.consolidate, Consolidated | NoChanges), (free_bytes, where, after.consolidate)
        assert files(house.root) == expected, (free_bytes, where)
        if stops["done"] == 2:
            break
    assert {"no_state_db", "stopped", "failed_claim", "failed_sync_workspace_inputs", "failed_workspace_commit"} <= (
        stops.keys()
    )
    assert stops["done"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, 40_000, 80_000, 100_000, 110_000])
def test_under_a_limit_on_the_size_of_files_the_command_ends_with_a_reason(tmp_path: Path, limit: int) -> None:
    prlimit = shutil.which("prlimit")
    if prlimit is None:
        pytest.skip("needs prlimit")
    house = FaultyHouse(tmp_path)
    done = house.command(prefix=(prlimit, f"--fsize={limit}"))
    if done.returncode == 0:
        return
    assert "failed" in told(done) or "stopped" in done.stderr or "can't" in done.stderr
    after = house.command(now="2026-12-01T09:00:00Z")
    assert after.returncode == 0, after.stderr
    assert house.handbook.exists()


@pytest.mark.slow
def test_without_a_place_for_temporary_files_the_reason_says_so(tmp_path: Path) -> None:
    house = FaultyHouse(tmp_path)
    house.run()
    house.handbook.write_text(house.handbook.read_text(encoding="utf-8") + "\n" + MINE, encoding="utf-8")
    house.add_second()
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        pytest.skip("needs bubblewrap")
    confined = (bwrap, "--ro-bind", "/", "/", "--dev", "/dev", "--bind", str(tmp_path), str(tmp_path))
    done = house.command(now="2026-12-01T09:00:00Z", prefix=confined, TMPDIR="/nowhere")
    if "bwrap:" in done.stderr:
        pytest.skip(done.stderr)
    assert "failed (failed_workspace_diff_file)" in told(done)
    assert "No usable temporary directory" in done.stderr
    assert MINE in house.handbook.read_text(encoding="utf-8")
    after = house.command(now="2026-12-02T09:00:00Z")
    assert after.returncode == 0, after.stderr
    assert MINE in house.handbook.read_text(encoding="utf-8")
