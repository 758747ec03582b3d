"""A home with a memory in it, every command on it as a real process, and what must hold whatever was broken."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

import msgspec
import pytest
from nursery import Command

from stillroom.cli.app import COMMANDS, Commands

PROJECT = Path(__file__).parents[2]
SESSIONS = "codex-home/sessions/2026/11/29"
SPLIT = "01a2273c-0036-7133-90f0-7698c74b216a"
NOW = "2026-11-30T09:00:00Z"
LATER = "2026-12-01T09:00:00Z"
#: Permissions bind a root without these.
NOT_ALMIGHTY = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all")

#: What a command is called with. One that is not here is called alone.
WORDS: dict[str, tuple[str, ...]] = {
    "--help": (),
    "init": ("--yes",),
    "run": ("--backfill", "--now", LATER),
    "eval": ("--mine",),
    "explain": (SPLIT,),
    "search": ("parser",),
    "read": ("MEMORY.md",),
    "note": ("Deploys go out on Tuesdays.",),
    "undo": ("--yes",),
    "rm": ("we use biome here", "--yes"),
    "forget": (SPLIT, "--yes"),
    "redact": ("--retro",),
    "memories": ("--off",),
    "ingest": ("{ingested}", "--format", "codex"),
    "export": (SPLIT, "--format", "markdown"),
    "budget": ("status",),
    "why": ("MEMORY.md:3",),
}
#: What may change the memory folder or the database when it says that it did.
CHANGING = frozenset({"run", "note", "undo", "redo", "rm", "edit", "forget", "memories", "ingest", "review", "redact"})
DOCUMENTED = {0, 1, 2}
EVERY = ("--help", *COMMANDS)
assert all(name in WORDS for name, each in COMMANDS.items() if isinstance(each, Commands)), (
    "which command of the group?"
)


@dataclass(frozen=True)
class House:
    """A person's home: agents' sessions, and Stillroom's home with a memory of them."""

    base: Path

    @property
    def home(self) -> Path:
        return self.base / ".stillroom"

    @property
    def root(self) -> Path:
        return self.home / "memories"

    @property
    def database(self) -> Path:
        return self.home / "state.sqlite3"

    @property
    def environment(self) -> dict[str, str]:
        own = {"HOME": str(self.base), "EDITOR": "true"}
        return {**own, "PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT / "src")}

    def words(self, command: str) -> list[str]:
        return [command, *(word.format(ingested=self.base / "ingested.jsonl") for word in WORDS.get(command, ()))]

    def start(self, command: str, *more: str, prefix: tuple[str, ...] = (), dying_at: int | None = None) -> Running:
        """`dying_at`: kill it ahead of that change to disk; 0: count them."""
        return nursery(prefix).start(Command([*self.words(command), *more], self.environment, str(self.base), dying_at))

    def run(self, command: str, *more: str, prefix: tuple[str, ...] = (), dying_at: int | None = None) -> Done:
        return self.start(command, *more, prefix=prefix, dying_at=dying_at).ended()

    def run_without_powers(self, command: str) -> Done:
        """As somebody whom permissions bind."""
        return self.run(command, prefix=NOT_ALMIGHTY if os.geteuid() == 0 else ())

    def copy(self, to: Path) -> House:
        shutil.copytree(self.base, to, symlinks=True)
        return House(to)

    def folder(self) -> dict[str, bytes]:
        """The memory folder, without what is only there while something works."""
        paths = [path for path in sorted(self.root.rglob("*")) if path.is_file() and not path.name.startswith(".")]
        return {str(path.relative_to(self.root)): path.read_bytes() for path in paths}

    def rows(self) -> dict[str, str]:
        """A hash of every table."""
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as db:
            names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            tables = {name: sorted(map(repr, db.execute(f"SELECT * FROM {name}"))) for name in names}
        return {name: hashlib.sha256("\n".join(rows).encode()).hexdigest() for name, rows in tables.items()}

    def is_whole(self) -> bool:
        with closing(sqlite3.connect(self.database)) as db:
            return db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@dataclass(frozen=True)
class Done:
    """A command that ended."""

    code: int
    out: str
    err: str

    @property
    def told(self) -> str:
        return self.out + self.err


class Running:
    """A command that was started."""

    def __init__(self, connection: socket.socket, streams: list[IO[bytes]]) -> None:
        self._connection, self._streams = connection, streams

    def ended(self) -> Done:
        with self._connection, self._connection.makefile("r", encoding="ascii") as told:
            pid = int(told.readline())
            try:
                code = int(told.readline())
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise
        texts = []
        for stream in self._streams:
            with stream:
                stream.seek(0)
                texts.append(stream.read().decode("utf-8", "replace"))
        return Done(code, *texts)


class Nursery:
    """A process that has imported everything, and forks for each command."""

    def __init__(self, prefix: tuple[str, ...]) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._place = f"{self._folder.name}/socket"
        program = [*prefix, sys.executable, str(Path(__file__).with_name("nursery.py")), self._place]
        own = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        self._process = subprocess.Popen(program, env=own, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"
        atexit.register(self._end)

    def start(self, command: Command) -> Running:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(110)
        connection.connect(self._place)
        # Files, not pipes: nobody has to read while it runs.
        streams = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115
        with open(os.devnull, "rb") as nothing:
            numbers = [nothing.fileno(), *(stream.fileno() for stream in streams)]
            socket.send_fds(connection, [msgspec.json.encode(command)], numbers)
        return Running(connection, streams)

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()


@cache
def nursery(prefix: tuple[str, ...]) -> Nursery:
    return Nursery(prefix)


def build(base: Path) -> House:
    """A house in which a pass has been, and a second one after an edit by hand."""
    shutil.copytree(PROJECT / "examples" / "codex-home", base / ".codex")
    (ingested,) = (PROJECT / "examples" / SESSIONS).glob(f"*{SPLIT}*")
    text = ingested.read_text(encoding="utf-8").replace(SPLIT, "01a2273c-9999-7133-90f0-7698c74b216a")
    (base / "ingested.jsonl").write_text(text, encoding="utf-8")
    house = House(base)
    command = [sys.executable, "-m", "stillroom", "run", "--backfill", "--now", NOW]
    subprocess.run(command, env=house.environment, check=True, capture_output=True, timeout=60)
    return house


def check_told(done: Done) -> None:
    assert done.code in DOCUMENTED, done.err
    assert "Traceback" not in done.err, done.err


def check_refused(done: Done, *, names: Path | str) -> None:
    """It says what is wrong, with the place, and what to do."""
    check_told(done)
    assert done.code != 0
    assert str(names) in done.told, done.told
    assert any(
        mark in done.told for mark in ("hint:", "-> ", "`;", "(`", ": set ", "then try again", "(upgrade it: ")
    ), done.told


@contextmanager
def locked(database: Path, *, altogether: bool) -> Iterator[None]:
    """Another program holds the database: no one may write, or no one may even read."""
    with closing(sqlite3.connect(database, isolation_level=None, check_same_thread=False)) as db:
        if altogether:
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        yield


def chmod(place: Path, *, folders: int, files: int) -> None:
    for path in [place, *place.rglob("*")]:
        if path.is_dir():
            path.chmod(0o700 if folders == 0o500 else folders)
    for path in sorted([place, *place.rglob("*")], reverse=True):
        if not path.is_symlink():
            path.chmod(folders if path.is_dir() else files)


@contextmanager
def small_disk(path: Path) -> Iterator[Path]:
    """A file system of eight megabytes."""
    if os.geteuid() != 0:
        pytest.skip("only root mounts a small file system")
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(path)]
    if (mounted := subprocess.run(mount, capture_output=True, text=True, timeout=20)).returncode:
        pytest.skip(f"no file system can be mounted: {mounted.stderr.strip()}")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True, timeout=20)


def fill(disk: Path, *, but_for_bytes: int = 0) -> Path:
    """What leaves no more room than this; delete it for more."""
    room = os.statvfs(disk)
    filling = disk / "filling"
    filling.write_bytes(b"\0" * max(room.f_bavail * room.f_frsize - but_for_bytes, 0))
    return filling
