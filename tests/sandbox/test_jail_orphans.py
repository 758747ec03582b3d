"""When Stillroom itself is killed, nothing of the jail outlives it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from stillroom.sandbox import Jail

SLEEP = f"sleep {200_000 + os.getpid()}"
PARENT = """
import asyncio, sys
from pathlib import Path
from stillroom.config import StageTwo
from stillroom.sandbox import JailLimits, choose

async def main():
    worker = await choose(sys.argv[1]).start(Path(sys.argv[2]), limits=JailLimits.of(StageTwo()))
    print("up", flush=True)
    await worker.call("shell", {"command": sys.argv[3], "timeout_seconds": 60})

asyncio.run(main())
"""


def _sleepers() -> list[str]:
    wanted = b"\0".join(SLEEP.encode().split()) + b"\0"
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if line.read_bytes() == wanted:
                found.append(str(line))
        except OSError:
            continue
    return found


def _becomes(wanted: bool) -> bool:
    deadline = time.monotonic() + 40
    while bool(_sleepers()) != wanted and time.monotonic() < deadline:
        select.select([], [], [], 0.02)
    return bool(_sleepers()) == wanted


def test_a_killed_stillroom_takes_its_jail_with_it(shell_jail: Jail, folder: Path) -> None:
    command = f"(trap '' TERM HUP; {SLEEP}; :) & {SLEEP}"
    # What a killed process leaves in its temporary directory is removed with the test.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(folder.parent)}
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, shell_jail.level, str(folder), command],
        stdout=subprocess.PIPE,
        env=environment,
    )
    try:
        assert parent.stdout is not None and parent.stdout.readline() == b"up\n"
        assert _becomes(True)
        parent.send_signal(signal.SIGKILL)
        assert _becomes(False)
    finally:
        parent.kill()
        parent.communicate()
