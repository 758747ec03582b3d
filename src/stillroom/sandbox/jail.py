"""What a jail is: a way to start the worker that holds the tools, for one folder, within limits.

There are four of them (`bwrap`, `landlock`, `seatbelt`, `files`), the strongest first. `probe.choose` picks one, and
never a lower one than asked for in silence.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from stillroom.config import StageTwo
from stillroom.errors import JailUnavailable

if TYPE_CHECKING:
    from stillroom.sandbox.worker_process import Worker

Level = Literal["bwrap", "landlock", "seatbelt", "files"]

WORKER = Path(__file__).with_name("worker.py")
#: What a command finds in its environment: where programs are, and that text is UTF-8.
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JailLimits:
    """What the tools of one run may use."""

    output_bytes: int
    folder_bytes: int
    file_bytes: int
    folder_entries: int
    call_seconds: float
    shell_seconds: float
    run_seconds: float
    processes: int
    memory_bytes: int
    #: Bytes that one call may cause to be written to the disk, files that it deleted again included.
    written_bytes: int
    restarts: int

    @classmethod
    def of(cls, stage: StageTwo) -> JailLimits:
        return cls(
            output_bytes=stage.max_tool_output_bytes,
            folder_bytes=stage.max_folder_bytes,
            file_bytes=min(stage.max_file_bytes, stage.max_folder_bytes),
            folder_entries=stage.max_folder_entries,
            call_seconds=stage.max_call_seconds,
            shell_seconds=stage.max_shell_seconds,
            run_seconds=stage.max_run_seconds,
            processes=stage.max_jail_processes,
            memory_bytes=stage.max_jail_memory_bytes,
            written_bytes=4 * stage.max_folder_bytes,
            restarts=stage.max_jail_restarts,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The answer to one tool call, fit for a model: `text` is within `JailLimits.output_bytes`."""

    ok: bool
    text: str
    #: Something was left out; the text says so.
    truncated: bool
    #: A file in the folder is another one than before the call.
    changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How one level starts the worker."""

    level: Level
    argv: tuple[str, ...]
    working_directory: Path
    environment: dict[str, str]
    #: None: this level has no shell.
    shell: tuple[str, ...] | None = None
    #: Given to the process at the number in `argv`.
    filter_program: bytes | None = None
    #: A second filter, for shell commands only.
    shell_filter: bytes = b""
    own_pid_namespace: bool = False
    #: Set where the kernel counts this user's processes; 0: it doesn't (root).
    max_user_processes: int = 0
    #: Removed with all that is in it when the worker is closed.
    scratch: Path | None = None


class Jail(Protocol):
    """One level of confinement."""

    @property
    def level(self) -> Level: ...

    async def start(self, folder: Path, *, limits: JailLimits) -> Worker:
        """Start the tools on `folder`. Raises `JailError` when they don't come up."""
        ...


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The Python that runs the worker, without the virtual environment around it."""

    program: Path
    #: Directories that it needs; the system's own are in `SYSTEM_PATHS`.
    extra: tuple[Path, ...]


#: What Python, sh and the usual tools need of the system. `/etc` as a whole stays outside.
SYSTEM_PATHS = tuple(
    Path(path)
    for path in (
        "/usr",
        "/bin",
        "/sbin",
        "/lib",
        "/lib32",
        "/lib64",
        "/etc/ld.so.cache",
        "/etc/alternatives",
        "/nix/store",
    )
)


def find_interpreter(*, home: Path | None = None) -> Interpreter:
    """The base interpreter. Raises `JailUnavailable` when showing it would show the user's own files too."""
    program = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    prefix = Path(sys.base_prefix).resolve()
    needed = {prefix, *([] if program.is_relative_to(prefix) else [program])}
    extra = tuple(sorted(path for path in needed if not any(path.is_relative_to(root) for root in SYSTEM_PATHS)))
    home = (home or Path.home()).resolve()
    for path in extra:
        if home.is_relative_to(path):
            raise JailUnavailable(
                f"Python is installed in `{path}`, which holds the home directory",
                hint="use a Python that has a directory of its own",
            )
    return Interpreter(program, extra)


def find_shell() -> tuple[str, ...]:
    """bash where there is one, without the files that it reads at its start."""
    for directory in ("/bin", "/usr/bin"):
        if (Path(directory) / "bash").exists():
            return (f"{directory}/bash", "--noprofile", "--norc", "-c")
    return ("/bin/sh", "-c")
