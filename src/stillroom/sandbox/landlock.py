"""The jail where namespaces are not to be had: Landlock for the disk, a system-call filter for everything else.

Landlock stops TCP but not UDP, and guards neither metadata nor (on older kernels) signals, so the filter refuses
sockets, changes of metadata by path, and where needed signals. A command can't leave its process group, by which it is
ended.
"""

from __future__ import annotations

import base64
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import msgspec

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
from stillroom.sandbox.seccomp import Architecture, architecture, jail_filter, shell_filter
from stillroom.sandbox.watch import user_processes
from stillroom.sandbox.worker_process import Worker, start_worker

_LAUNCHER = Path(__file__).with_name("landlock_launcher.py")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/full")
#: From this version on Landlock itself keeps signals inside.
_ABI_WITH_SIGNALS = 6


@dataclass(frozen=True, slots=True)
class LandlockJail:
    """The kernel refuses every file outside of the folder and the system, and the calls that would go around that."""

    interpreter: Interpreter
    machine: Architecture
    abi: int
    level: Level = "landlock"

    async def start(self, folder: Path, *, limits: JailLimits) -> Worker:
        return await start_worker(self.launch(folder, limits=limits), folder, limits=limits)

    def launch(self, folder: Path, *, limits: JailLimits) -> Launch:
        scratch = Path(tempfile.mkdtemp(prefix="stillroom-"))
        python = (str(self.interpreter.program), "-I", "-S", "-B")
        config = {
            "read": [str(path) for path in (*SYSTEM_PATHS, *self.interpreter.extra, WORKER)],
            "write": [str(folder), str(scratch)],
            "devices": _DEVICES,
            "filter": base64.b64encode(jail_filter(self.machine, metadata=True)).decode("ascii"),
            "argv": (*python, str(WORKER)),
            "environment": {**ENVIRONMENT, "HOME": str(scratch), "TMPDIR": str(scratch)},
        }
        return Launch(
            level=self.level,
            argv=(*python, str(_LAUNCHER), msgspec.json.encode(config).decode("utf-8")),
            working_directory=folder,
            environment=dict(ENVIRONMENT),
            shell=find_shell(),
            shell_filter=shell_filter(self.machine, signals=self.abi < _ABI_WITH_SIGNALS),
            max_user_processes=user_processes() + limits.processes,
            scratch=scratch,
        )


def landlock_jail() -> LandlockJail:
    """The jail, if this kernel has Landlock. Raises `JailUnavailable`."""
    if sys.platform != "linux":
        raise JailUnavailable("Landlock is Linux's")
    machine = architecture()
    if machine is None:
        raise JailUnavailable("there is no table of system calls for this machine")
    from stillroom.sandbox.landlock_launcher import abi  # loads libc, which only Linux has under that name

    version = abi()
    if version < 1:
        raise JailUnavailable("this kernel has no Landlock, or it is switched off", hint="add `landlock` to `lsm=`")
    return LandlockJail(find_interpreter(), machine, version)
