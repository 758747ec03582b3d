"""The weakest level: the worker without a shell, kept to the folder by the rules of its own tools."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from stillroom.errors import JailUnavailable
from stillroom.sandbox.jail import ENVIRONMENT, WORKER, Interpreter, JailLimits, Launch, Level, find_interpreter
from stillroom.sandbox.worker_process import Worker, start_worker


@dataclass(frozen=True, slots=True)
class FilesJail:
    """File tools only. They never run a program, so there is nothing to confine but their paths."""

    interpreter: Interpreter
    level: Level = "files"

    async def start(self, folder: Path, *, limits: JailLimits) -> Worker:
        return await start_worker(self.launch(folder, limits=limits), folder, limits=limits)

    def launch(self, folder: Path, *, limits: JailLimits) -> Launch:
        del limits
        return Launch(
            level=self.level,
            argv=(str(self.interpreter.program), "-I", "-S", "-B", str(WORKER)),
            working_directory=folder,
            environment=dict(ENVIRONMENT),
        )


def files_jail() -> FilesJail:
    """Always there on POSIX systems. Raises `JailUnavailable` elsewhere: the tools open everything by descriptor."""
    if os.open not in os.supports_dir_fd:
        raise JailUnavailable("the file tools need a POSIX system")
    return FilesJail(find_interpreter())
