"""Which levels there are, how one is chosen, and what the ones that this machine lacks would say."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import pytest

from stillroom.config import StageTwo
from stillroom.errors import JailUnavailable
from stillroom.sandbox import JailLimits, LevelReport, choose, probe
from stillroom.sandbox.bwrap import bwrap_jail
from stillroom.sandbox.jail import Interpreter, find_interpreter
from stillroom.sandbox.seatbelt import SeatbeltJail, profile
from stillroom.sandbox.seccomp import jail_filter, shell_filter


def test_every_level_is_reported_with_a_reason_where_it_is_missing(reports: dict[str, LevelReport]) -> None:
    assert list(reports) == ["bwrap", "landlock", "seatbelt", "files"]
    assert all(report.available or report.reason for report in reports.values())


def test_auto_is_the_strongest_that_works(reports: dict[str, LevelReport]) -> None:
    assert choose("auto").level == next(report.level for report in reports.values() if report.available)


def test_a_level_that_is_missing_is_refused_not_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(JailUnavailable, match="not installed") as caught:
        choose("bwrap")
    assert caught.value.hint == "install the package `bubblewrap`"
    if sys.platform != "darwin":
        with pytest.raises(JailUnavailable, match=r"the jail `seatbelt` can't be had: .*macOS") as caught:
            choose("seatbelt")
        assert caught.value.hint is not None
        assert "memories.jail" in caught.value.hint


def test_a_bwrap_that_is_not_allowed_to_work_is_reported_with_its_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2; exit 1\n", encoding="utf-8")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    [report] = [report for report in probe() if report.level == "bwrap"]
    assert report.reason == "the `bwrap` jail doesn't start: bwrap: setting up uid map: Permission denied"


def test_a_python_that_shares_its_directory_with_the_home_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "base_prefix", "/home")
    with pytest.raises(JailUnavailable, match="holds the home directory"):
        find_interpreter(home=Path("/home/someone"))


def test_paths_are_parameters_of_the_macos_profile_never_its_text(tmp_path: Path) -> None:
    folder = tmp_path / 'a") (allow default'
    folder.mkdir()
    jail = SeatbeltJail(Interpreter(Path("/opt/python/bin/python3"), (Path("/opt/python"),)))
    launch = jail.launch(folder, limits=JailLimits.of(StageTwo()))
    assert launch.scratch is not None
    launch.scratch.rmdir()
    assert launch.argv[:3] == ("/usr/bin/sandbox-exec", "-D", f"FOLDER={folder.resolve()}")
    text = launch.argv[launch.argv.index("-p") + 1]
    assert text == profile(readable=2)
    assert "allow default" not in text and str(tmp_path) not in text
    for line in ("(deny default)", "(deny network*)", '(subpath (param "FOLDER"))', '(subpath (param "READ1"))'):
        assert line in text
    assert text.count("(") == text.count(")")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_filters_are_whole_programs_with_jumps_that_stay_inside(machine: str) -> None:
    for program in (
        jail_filter(machine, metadata=True),  # type: ignore[arg-type]  # the parameters are architectures
        jail_filter(machine, metadata=False),  # type: ignore[arg-type]
        shell_filter(machine, signals=True),  # type: ignore[arg-type]
    ):
        lines = memoryview(program)
        assert len(lines) % 8 == 0 and len(lines) // 8 < 4096
        for at in range(0, len(lines), 8):
            if lines[at] in (0x15, 0x35, 0x45):
                assert at // 8 + 1 + max(lines[at + 2], lines[at + 3]) < len(lines) // 8


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root can become someone else")
def test_bwrap_works_for_a_user_who_is_not_root(reports: dict[str, LevelReport], tmp_path: Path) -> None:
    """With the system's own Python, because another user may not be able to reach this one."""
    python = Path("/usr/bin/python3")
    if not reports["bwrap"].available or not python.exists() or shutil.which("setpriv") is None:
        pytest.skip("needs bwrap, /usr/bin/python3 and setpriv")
    shared = Path(tempfile.gettempdir())
    for parent in takewhile(lambda parent: parent != shared, [tmp_path, *tmp_path.parents]):
        parent.chmod(0o755)
    folder = tmp_path / "folder"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    jail = replace(bwrap_jail(), interpreter=Interpreter(python.resolve(), ()))
    launch = jail.launch(folder, limits=JailLimits.of(StageTwo()))
    assert launch.scratch is not None and launch.filter_program is not None
    os.chown(launch.scratch, 65534, 65534)
    script = tmp_path / "worker.py"
    shutil.copy(Path(sys.modules["stillroom.sandbox.jail"].WORKER), script)
    source = str(Path(sys.modules["stillroom.sandbox.jail"].WORKER))
    read_end, write_end = os.pipe()
    os.write(write_end, launch.filter_program)
    os.close(write_end)
    from stillroom.sandbox.worker_process import worker_config

    question = {"id": 1, "tool": "shell", "arguments": {"command": "id -u; echo hello > x; cat x"}, "room_bytes": 1000}
    argv = [str(script) if word == source else str(read_end) if word == "{filter}" else word for word in launch.argv]
    try:
        ran = subprocess.run(
            ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *argv],
            input=worker_config(launch, JailLimits.of(StageTwo())) + json.dumps(question).encode() + b"\n",
            capture_output=True,
            timeout=30,
            pass_fds=(read_end,),
            cwd="/",
            check=False,
        )
    finally:
        os.close(read_end)
        shutil.rmtree(launch.scratch)
    assert ran.stderr == b""
    assert json.loads(ran.stdout.splitlines()[1])["text"] == "1000\nhello\n\n[exit code 0]"
