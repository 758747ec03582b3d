"""The jail on macOS: `sandbox-exec` with a profile that refuses all but the folder and the system's own files."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from stillroom.errors import JailUnavailable
from stillroom.sandbox.jail import (
    ENVIRONMENT,
    WORKER,
    Interpreter,
    JailLimits,
    Launch,
    Level,
    find_interpreter,
    find_shell,
)
from stillroom.sandbox.worker_process import Worker, start_worker

_PROGRAM = Path("/usr/bin/sandbox-exec")
_SYSTEM = ("/System", "/usr", "/bin", "/sbin", "/Library/Apple", "/private/var/db/dyld", "/private/var/select")


@dataclass(frozen=True, slots=True)
class SeatbeltJail:
    """No network, no other files, no services of the system; signals stay inside."""

    interpreter: Interpreter
    level: Level = "seatbelt"

    async def start(self, folder: Path, *, limits: JailLimits) -> Worker:
        return await start_worker(self.launch(folder, limits=limits), folder, limits=limits)

    def launch(self, folder: Path, *, limits: JailLimits) -> Launch:
        scratch = Path(tempfile.mkdtemp(prefix="stillroom-")).resolve()
        extra = [path.resolve() for path in (*self.interpreter.extra, WORKER)]
        # Paths are parameters, never part of the profile's text: a quote in a name can't end a rule.
        paths = {"FOLDER": folder.resolve(), "SCRATCH": scratch} | {f"READ{at}": path for at, path in enumerate(extra)}
        return Launch(
            level=self.level,
            argv=(
                str(_PROGRAM),
                *(word for name, path in paths.items() for word in ("-D", f"{name}={path}")),
                *("-p", profile(readable=len(extra))),
                *(str(self.interpreter.program), "-I", "-S", "-B", str(WORKER)),
            ),
            working_directory=folder,
            environment={**ENVIRONMENT, "LC_ALL": "en_US.UTF-8", "HOME": str(scratch), "TMPDIR": str(scratch)},
            shell=find_shell(),
            # Few processes of a user are counted here; the kernel's own limit for users stays.
            max_user_processes=0,
            scratch=scratch,
        )


def profile(*, readable: int) -> str:
    """The rules; `FOLDER`, `SCRATCH` and `READ0` … are given by `-D`. A later rule wins."""
    system = " ".join(f'(subpath "{path}")' for path in _SYSTEM)
    extra = "\n".join(f'(allow file-read* process-exec (subpath (param "READ{at}")))' for at in range(readable))
    return f"""(version 1)
(deny default)
(allow process-fork)
(allow process-exec {system})
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow file-read-metadata)
(allow file-read* (literal "/") {system})
(allow file-read* file-write-data (literal "/dev/null") (literal "/dev/zero"))
(allow file-read* (literal "/dev/random") (literal "/dev/urandom"))
{extra}
(allow file-read* file-write* process-exec (subpath (param "FOLDER")) (subpath (param "SCRATCH")))
(deny file-write-create (vnode-type SYMLINK) (vnode-type SOCKET) (vnode-type FIFO))
(deny file-link)
(deny network*)
(deny mach-lookup)
"""


def seatbelt_jail() -> SeatbeltJail:
    """The jail, on macOS. Raises `JailUnavailable`."""
    if sys.platform != "darwin":
        raise JailUnavailable("`sandbox-exec` is macOS's")
    if not _PROGRAM.exists():
        raise JailUnavailable(f"`{_PROGRAM}` is not there")
    return SeatbeltJail(find_interpreter())
