"""The strongest jail: namespaces by bubblewrap. The folder is at `/memory`; else there is the system, read-only."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from stillroom.errors import JailUnavailable
from stillroom.sandbox.jail import (
    ENVIRONMENT,
    SYSTEM_PATHS,
    WORKER,
    Interpreter,
    JailLimits,
    Launch,
    Level,
    find_interpreter,
    find_shell,
)
from stillroom.sandbox.seccomp import architecture, jail_filter
from stillroom.sandbox.watch import user_processes
from stillroom.sandbox.worker_process import FILTER, Worker, start_worker

_FOLDER = "/memory"


@dataclass(frozen=True, slots=True)
class BwrapJail:
    """Own user, process, network, mount, IPC and host-name namespaces; no capabilities; a system-call filter on top."""

    program: str
    interpreter: Interpreter
    level: Level = "bwrap"

    async def start(self, folder: Path, *, limits: JailLimits) -> Worker:
        return await start_worker(self.launch(folder, limits=limits), folder, limits=limits)

    def launch(self, folder: Path, *, limits: JailLimits) -> Launch:
        scratch = Path(tempfile.mkdtemp(prefix="stillroom-"))
        machine = architecture()
        program = jail_filter(machine, metadata=False) if machine is not None else None
        return Launch(
            level=self.level,
            argv=(
                *(
                    self.program,
                    "--unshare-all",
                    "--unshare-user",
                    "--uid",
                    "1000",
                    "--gid",
                    "1000",
                    "--hostname",
                    "jail",
                ),
                *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
                *_system(),
                *(word for path in self.interpreter.extra for word in ("--ro-bind", str(path), str(path))),
                *("--proc", "/proc", "--dev", "/dev", "--bind", str(scratch), "/tmp", "--bind", str(folder), _FOLDER),
                *("--ro-bind", str(WORKER), "/worker.py"),
                # Two are in memory, and writing there would use it up unseen. In the third root owns the settings of
                # the whole machine (`/proc/sys`), and needs no capability to change them.
                *("--remount-ro", "/dev", "--remount-ro", "/", "--remount-ro", "/proc"),
                *("--chdir", _FOLDER, "--clearenv"),
                *(word for name, value in self._environment().items() for word in ("--setenv", name, value)),
                *(("--seccomp", FILTER) if program is not None else ()),
                *("--", str(self.interpreter.program), "-I", "-S", "-B", "/worker.py"),
            ),
            working_directory=Path("/"),
            # bwrap's own environment can be read inside, as its first process has it.
            environment={"PATH": ENVIRONMENT["PATH"]},
            shell=find_shell(),
            filter_program=program,
            own_pid_namespace=True,
            max_user_processes=user_processes() + limits.processes,
            scratch=scratch,
        )

    def _environment(self) -> dict[str, str]:
        return {**ENVIRONMENT, "HOME": "/tmp", "TMPDIR": "/tmp"}


def bwrap_jail() -> BwrapJail:
    """The jail, if the program is there. Raises `JailUnavailable`. That it works here is for `probe` to find out."""
    if sys.platform != "linux":
        raise JailUnavailable("bubblewrap is Linux's")
    program = shutil.which("bwrap", path=f"{os.environ.get('PATH', '')}:{ENVIRONMENT['PATH']}")
    if program is None:
        raise JailUnavailable("`bwrap` is not installed", hint="install the package `bubblewrap`")
    return BwrapJail(program, find_interpreter())


def _system() -> list[str]:
    words: list[str] = []
    for path in SYSTEM_PATHS:
        if path.is_symlink():
            words += ["--symlink", str(path.readlink()), str(path)]
        elif path.exists():
            words += ["--ro-bind", str(path), str(path)]
    return words
