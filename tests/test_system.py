"""Windows lacks names that Linux has: Stillroom asks for none of them there. Windows itself was never tried."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.without_posix import FLAGS, OF_OS, OF_SIGNAL

from stillroom.system import APPEND, Room, is_anothers, lock, open_to_others, read_at

PROJECT = Path(__file__).parents[1]
SOURCE = PROJECT / "src" / "stillroom"
CODEX = PROJECT / "examples" / "codex-home"
_WANTS = re.compile(
    rf"\bos\.(?:{'|'.join(OF_OS)}|O_(?:{'|'.join(FLAGS)}))\b|\bsignal\.(?:{'|'.join(OF_SIGNAL)})\b|dir_fd="
)
#: They look first whether it is there.
LOOK_FIRST = {
    "folders.py": {"dir_fd="},
    "insight/doctor/places.py": {"os.fchmod"},
    "integrations/files.py": {"os.fchown", "os.fchmod"},
    "integrations/hook.py": {"signal.SIGALRM", "signal.ITIMER_REAL", "signal.setitimer"},
    "integrations/starting.py": {"os.fork", "os.setsid"},
    "store/database.py": {"os.register_at_fork"},
    "system.py": {"os.pread", "os.geteuid", "os.statvfs"},
    "workspace/publish.py": {"os.sync"},
}


def test_only_the_sandbox_and_who_looks_first_asks_for_what_windows_lacks() -> None:
    files = [path for path in SOURCE.rglob("*.py") if not path.is_relative_to(SOURCE / "sandbox")]
    found = {path.relative_to(SOURCE).as_posix(): set(_WANTS.findall(path.read_text("utf-8"))) for path in files}
    assert {path: names for path, names in found.items() if names} == LOOK_FIRST


def test_a_lock_is_one_process_s_at_a_time_and_a_shared_one_everybody_s(tmp_path: Path) -> None:
    one, other = (os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2))
    try:
        assert lock(one)
        assert not lock(other)
        assert not lock(other, shared=True)
        assert lock(one, shared=True)
        assert lock(other, shared=True)
        assert not lock(one)
    finally:
        os.close(one)
        os.close(other)


def test_a_place_in_a_file_is_read_whatever_was_read_before(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    file = os.open(tmp_path / "file", os.O_RDONLY)
    try:
        assert (read_at(file, 3, 6), read_at(file, 9, 8)) == (b"678", b"89")
    finally:
        os.close(file)


def test_lines_are_added_to_a_file_but_to_no_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="link"):
        os.open(tmp_path / "link", APPEND, 0o600)
    for line in (b"one\n", b"two\n"):
        file = os.open(tmp_path / "file", APPEND, 0o600)
        os.write(file, line)
        os.close(file)
    assert (tmp_path / "file").read_bytes() == b"one\ntwo\n"
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root can give a file away")
def test_to_root_no_file_is_anothers(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.chown(tmp_path / "file", 12345, 12345)
    assert not is_anothers((tmp_path / "file").stat())


def test_what_a_mode_lets_others_do_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for mode, told in ((0o600, False), (0o700, False), (0o640, True), (0o604, True), (0o602, True)):
        (tmp_path / "file").chmod(mode)
        assert open_to_others((tmp_path / "file").stat()) is told


def test_a_disk_has_room(tmp_path: Path) -> None:
    room = Room(tmp_path)
    assert (room.free_bytes > 0, room.is_read_only) == (True, False)
    assert room.free_bytes == pytest.approx(shutil.disk_usage(tmp_path).free, rel=0.2)


@pytest.mark.slow
def test_the_common_commands_work_without_what_windows_lacks(tmp_path: Path) -> None:
    memory = tmp_path / "home" / "memories"

    def ran(module: str, *words: str, stdin: str = "", code: int = 0) -> str:
        environment = {
            "HOME": str(tmp_path),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{PROJECT / 'src'}{os.pathsep}{PROJECT}",
            "CODEX_HOME": str(CODEX),
            "STILLROOM_HOME": str(tmp_path / "home"),
        }
        command = [sys.executable, "-m", "tests.without_posix", module, *words]
        done = subprocess.run(
            command, env=environment, input=stdin, capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
        return done.stdout

    ran("stillroom", "run", "--backfill", "--now", "2026-12-24T12:00:00Z")
    assert (memory / "MEMORY.md").is_file()
    assert (memory / "memory_summary.md").read_text("utf-8").startswith("v1\n")
    assert "3 extracted" in ran("stillroom", "status")
    assert "MEMORY.md" in ran("stillroom", "list")
    assert "split_evenly" in ran("stillroom", "search", "split_evenly")
    cwd = "/home/dev/work/ledgerkit"
    assert "ledgerkit" in ran("stillroom", "recall", "--cwd", cwd)
    event = f'{{"session_id": "one", "cwd": "{cwd}", "source": "startup"}}'
    assert "ledgerkit" in ran("stillroom.integrations.hook", "codex", "session-start", stdin=event)
    assert not (tmp_path / "home" / "hook.log").exists()
    assert "Consolidate" in ran("stillroom", "log")
    assert "none works on this machine" in ran("stillroom", "doctor", code=1)  # no agent calls us yet
    ran("stillroom", "undo", "--yes")
    assert not (memory / "MEMORY.md").exists()
