"""The tools of the consolidation agent, run inside the jail: one JSON line in, one JSON line out.

Started as `python -I -S worker.py` with the folder as its working directory. It imports the standard library only, and
is one file, because a jail has nothing else. The first line on stdin is its configuration; each later one is
`{"id", "tool", "arguments", "room_bytes"}`, answered by `{"id", "ok"}` and the
fields of `Answer`. Whatever goes wrong in a
tool is an answer for the model.

The confinement is the jail's work. The rules for paths here (no links, no `..`, no special files, no `.git`) hold too
where there is no jail but this file, and when a shell command's leavings try to lead a later call astray.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import re
import resource
import select
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
#: What code writes into the folder, or a person; whatever a model made of it would be thrown away.
_INPUTS = frozenset({"raw_memories.md", "rollout_summaries", "extensions", "phase2_workspace_diff.md"})
_PUNCTUATION = str.maketrans("‐‑‒–—―−‘’‚‛“”„‟\u00a0\u202f\u3000", "-------''''\"\"\"\"   ")


class Refused(Exception):
    """What the model asked for can't be done; the message tells it why."""


class Answer(NamedTuple):
    text: str
    truncated: bool = False
    #: A file tool changed something, and by how many bytes the folder grew.
    changed: bool = False
    growth: int = 0


class Patched(NamedTuple):
    """One file of a patch: its lines to find and to put there."""

    action: str
    path: str
    move_to: str | None
    added: list[str]
    hunks: list[Hunk]


class Hunk(NamedTuple):
    below: str | None
    old: list[str]
    new: list[str]
    at_end: bool


# --- paths ---------------------------------------------------------------------------------------------------------


def split_path(path: object) -> tuple[str, ...]:
    """The components of a path inside the folder. Raises `Refused` for every way out of it."""
    if not isinstance(path, str) or any(ord(char) < 32 or ord(char) == 127 for char in path):
        raise Refused("a path is a string without control characters")
    if path.startswith(("/", "~", "\\")) or (len(path) > 1 and path[1] == ":"):
        raise Refused(f"`{path[:200]}`: paths are relative to the memory folder")
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    for part in parts:
        if part == "..":
            raise Refused(f"`{path[:200]}`: `..` is not allowed")
        if part.lower().startswith(".git"):
            raise Refused(f"`{path[:200]}`: names that begin with `.git` are not allowed")
        if len(part.encode("utf-8", "surrogatepass")) > 255:
            raise Refused("a name is at most 255 bytes long")
    if len(parts) > 16:
        raise Refused(f"`{path[:200]}`: at most 16 levels deep")
    return parts


class Folder:
    """The memory folder, reached through descriptors only, so that no link can take the place of a directory."""

    def __init__(self, *, max_file_bytes: int) -> None:
        self._root = os.open(".", _DIRECTORY)
        self._max_file_bytes = max_file_bytes
        self._temporaries = 0

    @contextlib.contextmanager
    def directory(self, parts: tuple[str, ...], *, create: bool = False) -> Iterator[int]:
        current = os.dup(self._root)
        try:
            for part in parts:
                if create:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, 0o700, dir_fd=current)
                below = os.open(part, _DIRECTORY, dir_fd=current)
                os.close(current)
                current = below
            yield current
        finally:
            os.close(current)

    def read(self, parts: tuple[str, ...]) -> bytes:
        if not parts:
            raise IsADirectoryError
        with self.directory(parts[:-1]) as parent:
            handle = os.open(parts[-1], _FILE, dir_fd=parent)
        with open(handle, "rb") as file:
            status = os.fstat(handle)
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError
            if not stat.S_ISREG(status.st_mode):
                raise Refused(f"`{'/'.join(parts)}` is not a regular file")
            if status.st_size > self._max_file_bytes:
                raise Refused(f"`{'/'.join(parts)}` is too large ({status.st_size:,} bytes)")
            return file.read(self._max_file_bytes + 1)

    def read_if_there(self, parts: tuple[str, ...]) -> bytes | None:
        try:
            return self.read(parts)
        except FileNotFoundError:
            return None

    def replace(self, parts: tuple[str, ...], content: bytes) -> None:
        """Put `content` there whole, or leave what is there. The caller has looked that no link or directory is."""
        with self.directory(parts[:-1], create=True) as parent:
            self._temporaries += 1
            temporary = f".stillroom-{os.getpid()}-{self._temporaries}.tmp"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(temporary, flags, 0o600, dir_fd=parent)
            try:
                with open(handle, "wb") as file:
                    file.write(content)
                os.replace(temporary, parts[-1], src_dir_fd=parent, dst_dir_fd=parent)
            except OSError:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=parent)
                raise

    def remove(self, parts: tuple[str, ...]) -> None:
        with self.directory(parts[:-1]) as parent:
            os.unlink(parts[-1], dir_fd=parent)

    def walk(self, parts: tuple[str, ...], *, depth: int = 16) -> Iterator[tuple[tuple[str, ...], os.stat_result]]:
        """Everything below a directory, in order of its name; links are told of and never followed."""
        with self.directory(parts) as handle:
            names = sorted(os.listdir(handle))
            for name in names:
                if name.lower().startswith(".git"):
                    continue
                try:
                    status = os.stat(name, dir_fd=handle, follow_symlinks=False)
                except FileNotFoundError:
                    continue
                yield (*parts, name), status
                if stat.S_ISDIR(status.st_mode) and depth > 1:
                    with contextlib.suppress(OSError):
                        yield from self.walk((*parts, name), depth=depth - 1)

    def commit(self, changes: dict[tuple[str, ...], bytes | None], before: dict[tuple[str, ...], bytes | None]) -> None:
        """Make all changes, or none: an error puts back what the earlier ones changed."""
        done: list[tuple[str, ...]] = []
        try:
            for parts, content in changes.items():
                if content is None:
                    self.remove(parts)
                else:
                    self.replace(parts, content)
                done.append(parts)
        except OSError:
            for parts in reversed(done):
                content = before[parts]
                with contextlib.suppress(OSError):
                    self.remove(parts) if content is None else self.replace(parts, content)
            raise


# --- patches -------------------------------------------------------------------------------------------------------


def parse_patch(text: str) -> list[Patched]:
    """Read Codex's patch format. Raises `Refused` with the line that doesn't fit."""
    lines = text.strip().split("\n")
    if len(lines) > 2 and lines[0].startswith("<<") and lines[-1].strip() == "EOF":
        lines = lines[1:-1]
    if len(lines) < 2 or lines[0].strip() != "*** Begin Patch" or lines[-1].strip() != "*** End Patch":
        raise Refused("a patch begins with `*** Begin Patch` and ends with `*** End Patch`")
    found: list[Patched] = []
    for number, line in enumerate(lines[1:-1], 2):
        head, _, path = line.rstrip().partition(": ")
        if head in ("*** Add File", "*** Delete File", "*** Update File"):
            found.append(Patched(head.split()[1].lower(), path.strip(), None, [], []))
            continue
        if not found:
            raise Refused(
                f"line {number} of the patch: expected `*** Add File: `, `*** Update File: ` or `*** Delete File: `"
            )
        current = found[-1]
        if current.action == "update" and head == "*** Move to" and not current.hunks:
            found[-1] = current._replace(move_to=path.strip())
        elif current.action == "add" and line.startswith("+"):
            current.added.append(line[1:])
        elif current.action == "update":
            _parse_hunk_line(current.hunks, line, number)
        elif line.strip():
            raise Refused(
                f"line {number} of the patch doesn't belong to `*** {current.action.title()} File`: {line[:80]!r}"
            )
    for patched in found:
        if patched.action == "update" and not patched.hunks and patched.move_to is None:
            raise Refused(f"`*** Update File: {patched.path}` changes nothing")
    if not found:
        raise Refused("the patch names no file")
    return found


def _parse_hunk_line(hunks: list[Hunk], line: str, number: int) -> None:
    marker, rest = line[:1], line[1:]
    if line.startswith("@@"):
        hunks.append(Hunk(line[2:].strip().removesuffix("@@").strip() or None, [], [], False))
        return
    if line.rstrip() == "*** End of File":
        if not hunks:
            raise Refused(f"line {number} of the patch: `*** End of File` without a hunk")
        hunks[-1] = hunks[-1]._replace(at_end=True)
        return
    if marker not in ("", " ", "+", "-", "\r"):
        raise Refused(f"line {number} of the patch: a hunk's line begins with ` `, `+` or `-`, not {line[:80]!r}")
    if not hunks:
        hunks.append(Hunk(None, [], [], False))
    if marker != "+":
        hunks[-1].old.append(rest)
    if marker != "-":
        hunks[-1].new.append(rest)


def apply_hunks(path: str, content: str, hunks: list[Hunk]) -> str:
    """The text with every hunk done, in order. Raises `Refused` with the lines that aren't there."""
    lines = content.split("\n")
    if lines[-1] == "":
        lines.pop()
    result: list[str] = []
    cursor = 0
    for hunk in hunks:
        start = cursor
        if hunk.below is not None:
            at = _seek(lines, [hunk.below], start, at_end=False)
            if at is None:
                raise Refused(f"`{path}`: no line `{hunk.below[:200]}`{_below(cursor)}")
            start = at + 1
        old, new = hunk.old, hunk.new
        if not old:
            at = len(lines) if hunk.below is None or hunk.at_end else start
        else:
            at = _seek(lines, old, start, at_end=hunk.at_end)
            if at is None and len(old) > 1 and old[-1] == "":
                # The blank line before the next header is often the patch's layout, not the file's.
                old, new = old[:-1], new[:-1] if new and new[-1] == "" else new
                at = _seek(lines, old, start, at_end=hunk.at_end)
        if at is None:
            wanted = "\n".join(old)[:1000]
            raise Refused(f"`{path}`: these lines are not there{_below(cursor)}; read the file again:\n{wanted}")
        result += lines[cursor:at] + new
        cursor = at + len(old)
    result += lines[cursor:]
    return "\n".join(result) + "\n" if result else ""


def _below(cursor: int) -> str:
    return f" below line {cursor}" if cursor else ""


def _seek(lines: list[str], wanted: list[str], start: int, *, at_end: bool) -> int | None:
    """Where the lines are: exactly, else but for trailing blanks, for all blanks, for typographic signs."""
    loosened: list[Callable[[str], str]] = [
        str,
        str.rstrip,
        str.strip,
        lambda line: line.strip().translate(_PUNCTUATION),
    ]
    for loosen in loosened:
        here, there = [loosen(line) for line in lines], [loosen(line) for line in wanted]
        last = len(lines) - len(wanted)
        for at in [last] * (at_end and last >= start) + list(range(start, last + 1)):
            if here[at : at + len(there)] == there:
                return at
    return None


# --- the tools -----------------------------------------------------------------------------------------------------


class Tools:
    """The six tools, bound to one folder and its limits."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._output = int(config["max_output_bytes"])
        self._folder = Folder(max_file_bytes=int(config["max_file_bytes"]))
        self._room = 0
        self.by_name: dict[str, Callable[..., Answer]] = {
            "list": self.list_entries,
            "read": self.read,
            "search": self.search,
            "write": self.write,
            "apply_patch": self.apply_patch,
        }
        if config["shell"]:
            self.by_name["shell"] = self.shell

    def run(self, tool: str, arguments: dict[str, Any], *, room_bytes: int) -> tuple[bool, Answer]:
        self._room = room_bytes
        chosen = self.by_name.get(tool)
        try:
            if chosen is None:
                raise Refused(f"no tool `{tool[:100]}`; there are {', '.join(self.by_name)}")
            return True, chosen(**arguments)
        except Refused as refusal:
            return False, self._cut(str(refusal))
        except (OSError, TypeError, ValueError, RecursionError, MemoryError) as error:
            return False, self._cut(_in_words(error, arguments))

    def list_entries(self, path: str = ".", depth: int = 2) -> Answer:
        lines: list[str] = []
        parts = split_path(path)
        for entry, status in self._folder.walk(parts, depth=min(max(int(depth), 1), 16)):
            name, kind = "/".join(entry), stat.S_IFMT(status.st_mode)
            if kind == stat.S_IFREG:
                lines.append(f"{name}  {status.st_size:,} bytes")
            else:
                lines.append(f"{name}/" if kind == stat.S_IFDIR else f"{name}  (a link or special file, not readable)")
        return self._lines(lines, empty="(empty)", more="list a folder below, or with a smaller depth")

    def read(self, path: str, first_line: int = 1, max_lines: int = 2000) -> Answer:
        text = _as_text(path, self._folder.read(split_path(path)))
        lines = text.split("\n")
        if lines[-1] == "":
            lines.pop()
        first = max(int(first_line), 1)
        if first > max(len(lines), 1):
            raise Refused(f"`{path}` has {len(lines):,} lines")
        shown: list[str] = []
        room, cut_inside = self._output - 300, False
        for line in lines[first - 1 : first - 1 + max(int(max_lines), 1)]:
            size = len(line.encode("utf-8", "replace")) + 1
            if size > room:
                if not shown:
                    shown.append(_head(line, room) + f" [cut: this line has {size - 1:,} bytes]")
                    cut_inside = True
                break
            room -= size
            shown.append(line)
        last = first - 1 + len(shown)
        if last < len(lines):
            shown.append(f"[cut: lines {first:,} to {last:,} of {len(lines):,}; go on with first_line={last + 1}]")
        return Answer("\n".join(shown), cut_inside or last < len(lines))

    def search(
        self,
        query: str,
        path: str = ".",
        regex: bool = False,
        case_sensitive: bool = False,
        context_lines: int = 0,
    ) -> Answer:
        if not isinstance(query, str) or not query.strip():
            raise Refused("`query` is empty")
        try:
            wanted = re.compile(query if regex else re.escape(query), 0 if case_sensitive else re.IGNORECASE)
        except re.error as error:
            raise Refused(f"`query` is not a regular expression: {error}") from error
        around, found = min(max(int(context_lines), 0), 5), []
        with _no_longer_than(float(self._config["search_seconds"]), "the search"):
            for parts in self._files(split_path(path)):
                content = self._folder.read_if_there(parts)
                if content is None or b"\0" in content[:8192]:
                    continue
                lines = content.decode("utf-8", "replace").split("\n")
                hits = [number for number, line in enumerate(lines) if wanted.search(line)]
                wide = sorted(
                    {at for hit in hits for at in range(max(hit - around, 0), min(hit + around + 1, len(lines)))}
                )
                mark = dict.fromkeys(hits, ":")
                found += [f"{'/'.join(parts)}:{at + 1}{mark.get(at, '-')} {_head(lines[at], 500)}" for at in wide]
                if len(found) > 5000:
                    break
        return self._lines(found, empty="(no line matches)", more="search for something rarer, or below one path")

    def write(self, path: str, content: str, append: bool = False) -> Answer:
        if not isinstance(content, str):
            raise Refused("`content` is text")
        parts = split_path(path)
        before = self._folder.read_if_there(parts)
        data = content.encode("utf-8")
        if append and before:
            data = before + (b"" if before.endswith(b"\n") else b"\n") + data
        return self._commit({parts: data}, {parts: before})

    def apply_patch(self, patch: str) -> Answer:
        if not isinstance(patch, str):
            raise Refused("`patch` is text")
        before: dict[tuple[str, ...], bytes | None] = {}
        after: dict[tuple[str, ...], bytes | None] = {}

        def now(parts: tuple[str, ...]) -> bytes | None:
            if parts not in after:
                before[parts] = after[parts] = self._folder.read_if_there(parts)
            return after[parts]

        for change in parse_patch(patch):
            parts = split_path(change.path)
            content = now(parts)
            if change.action == "add":
                if content is not None:
                    raise Refused(f"`{change.path}` exists; use `*** Update File: `")
                after[parts] = "".join(f"{line}\n" for line in change.added).encode()
                continue
            if content is None:
                raise Refused(f"`{change.path}` doesn't exist")
            if change.action == "delete":
                after[parts] = None
                continue
            target = split_path(change.move_to) if change.move_to is not None else parts
            if target != parts and now(target) is not None:
                raise Refused(f"`{change.move_to}` exists")
            updated = apply_hunks(change.path, _as_text(change.path, content), change.hunks).encode()
            after[parts] = None
            after[target] = updated if change.hunks else content
        return self._commit(after, before)

    def shell(self, command: str, timeout_seconds: float = 30.0) -> Answer:
        if not isinstance(command, str) or not command.strip() or "\0" in command:
            raise Refused("`command` is empty")
        seconds = min(max(float(timeout_seconds), 0.1), float(self._config["shell_seconds"]))
        read_end, write_end = os.pipe()
        process = subprocess.Popen(
            [*self._config["shell"], command],
            stdin=subprocess.DEVNULL,
            stdout=write_end,
            stderr=write_end,
            start_new_session=True,
            preexec_fn=_confinement(self._config, cpu_seconds=int(seconds) + 1),
        )
        os.close(write_end)
        try:
            kept, note = _collect(process, read_end, seconds=seconds, limit=self._output)
        finally:
            _end_all(process, own_pid_namespace=bool(self._config["own_pid_namespace"]))
            os.close(read_end)
        status = process.wait()
        ending = f"exit code {status}" if status >= 0 else f"ended by signal {-status}"
        text = kept.text(self._output - 200)
        return Answer(f"{text}\n[{note or ending}]", kept.total > len(text.encode()) or bool(note))

    def _files(self, parts: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if parts:
            with contextlib.suppress(NotADirectoryError), self._folder.directory(parts[:-1]) as parent:
                if stat.S_ISREG(os.stat(parts[-1], dir_fd=parent, follow_symlinks=False).st_mode):
                    yield parts
                    return
        yield from (entry for entry, status in self._folder.walk(parts) if stat.S_ISREG(status.st_mode))

    def _commit(
        self, changes: dict[tuple[str, ...], bytes | None], before: dict[tuple[str, ...], bytes | None]
    ) -> Answer:
        if () in changes:
            raise IsADirectoryError
        if given := next((parts for parts in changes if parts[0] in _INPUTS), None):
            raise Refused(
                f"`{'/'.join(given)}` is an input and stays as it is; write MEMORY.md, memory_summary.md, skills/"
            )
        changes = {parts: content for parts, content in changes.items() if content != before[parts]}
        growth = sum(len(content or b"") - len(before[parts] or b"") for parts, content in changes.items())
        if growth > max(self._room, 0):
            raise Refused(f"{growth:,} bytes more don't fit: the folder may grow by {max(self._room, 0):,} bytes")
        self._folder.commit(changes, before)
        words = {(True, True): "updated", (True, False): "deleted", (False, True): "added"}
        told = [
            f"{words[before[parts] is not None, content is not None]} {'/'.join(parts)}  {len(content or b''):,} bytes"
            for parts, content in changes.items()
        ]
        told_of = self._lines(told, empty="(nothing to change)", more="list the folder")
        return told_of._replace(changed=bool(changes), growth=growth)

    def _lines(self, lines: list[str], *, empty: str, more: str) -> Answer:
        room = self._output - 200
        for number, line in enumerate(lines):
            room -= len(line.encode("utf-8", "replace")) + 1
            if room < 0:
                shown = "\n".join(lines[:number])
                return Answer(f"{shown}\n[cut: {number:,} of {len(lines):,} lines; {more}]", True)
        return Answer("\n".join(lines) or empty)

    def _cut(self, text: str) -> Answer:
        short = _head(text, self._output - 200)
        return Answer(short if short == text else f"{short} [cut]", short != text)


# --- running a command ---------------------------------------------------------------------------------------------


class Kept:
    """The first and the last bytes of an output of any length."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = b""
        self._tail = b""
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head, data = self._head + data[:room], data[room:]
        self._tail = (self._tail + data)[-self._half :]

    def text(self, limit: int) -> str:
        whole = (self._head + self._tail).decode("utf-8", "replace")
        if self.total <= len(self._head) + len(self._tail) and len(whole.encode()) <= limit:
            return whole
        # Bytes that are no text grow threefold when they are shown as replacement characters.
        head = _head(self._head.decode("utf-8", "replace"), limit // 2 - 50)
        tail = _head(self._tail.decode("utf-8", "replace")[::-1], limit // 2 - 50)[::-1]
        return f"{head}\n[cut: {self.total:,} bytes in all]\n{tail}"


def _collect(process: subprocess.Popen[bytes], handle: int, *, seconds: float, limit: int) -> tuple[Kept, str]:
    """Read until the command has ended; give up on it after its time, or when it floods us."""
    kept, deadline, flood = Kept(limit), time.monotonic() + seconds, 256 * limit
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            return kept, f"stopped after {seconds:g} s"
        if kept.total > flood:
            return kept, f"stopped after {kept.total:,} bytes of output"
        ended = process.poll() is not None
        # What it left running may hold the pipe open for ever: after its end only what is there is read.
        readable, _, _ = select.select([handle], [], [], 0 if ended else min(left, 0.05))
        if readable:
            data = os.read(handle, 65536)
            if not data:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=max(deadline - time.monotonic(), 0))
                    return kept, ""
                return kept, f"stopped after {seconds:g} s"
            kept.add(data)
        elif ended:
            return kept, ""


def _end_all(process: subprocess.Popen[bytes], *, own_pid_namespace: bool) -> None:
    """End the command and all that it started. Both ways are one system call, which no fork can outrun.

    -1 is everything in our namespace but us and its first process.
    """
    everything = -1 if own_pid_namespace else -process.pid
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(everything, signal.SIGKILL)
        process.wait()
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            os.kill(everything, 0)
            time.sleep(0.001)


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("program", ctypes.c_void_p))


def _confinement(config: dict[str, Any], *, cpu_seconds: int) -> Callable[[], None]:
    """What a command does to itself before it starts: die with us, keep to its CPU time and its process group."""
    linux = sys.platform == "linux"
    libc = ctypes.CDLL(None, use_errno=True) if linux else None
    program = base64.b64decode(config["shell_filter"])
    buffer = ctypes.create_string_buffer(program, len(program))
    seccomp = _Filter(len(program) // 8, ctypes.cast(buffer, ctypes.c_void_p))

    def confine() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
        os.nice(5)
        if libc is not None:
            libc.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
            # PR_SET_NO_NEW_PRIVS is set by then; PR_SET_SECCOMP, SECCOMP_MODE_FILTER
            if program and libc.prctl(22, 2, ctypes.byref(seccomp), 0, 0):
                os._exit(126)

    return confine


# --- words and limits ----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _no_longer_than(seconds: float, what: str) -> Iterator[None]:
    """An endless regular expression looks at signals; nothing else would stop it."""

    def stop(_number: int, _frame: object) -> NoReturn:
        raise Refused(f"{what} took more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _as_text(path: str, content: bytes) -> str:
    if b"\0" in content:
        raise Refused(f"`{path}` is binary ({len(content):,} bytes)")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"`{path}` is not UTF-8 text ({len(content):,} bytes)") from error


def _head(text: str, limit: int) -> str:
    return text.encode("utf-8", "replace")[: max(limit, 0)].decode("utf-8", "ignore")


def _in_words(error: Exception, arguments: dict[str, Any]) -> str:
    name = f"`{str(arguments.get('path', ''))[:200]}`: " if "path" in arguments else ""
    match error:
        case FileNotFoundError():
            return f"{name}no such file or folder"
        case IsADirectoryError():
            return f"{name}is a folder"
        case NotADirectoryError():
            return f"{name}is not a folder, or leads through a link"
        case OSError(errno=40 | 62):  # ELOOP on Linux, on macOS
            return f"{name}is a link; links are not followed"
        case OSError(strerror=str() as words):
            return f"{name}{words}"
        case MemoryError():
            return "not enough memory for that"
        case TypeError() | ValueError():
            return f"bad arguments: {error}"
        case _:
            return f"{name}{type(error).__name__}"


def _limit_ourselves(config: dict[str, Any]) -> None:
    def lower(kind: int, value: int) -> None:
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        # macOS refuses some of them; the parent watches what matters.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (value, value))

    lower(resource.RLIMIT_CORE, 0)
    lower(resource.RLIMIT_FSIZE, int(config["max_file_bytes"]))
    lower(resource.RLIMIT_NOFILE, 256)
    lower(resource.RLIMIT_AS, int(config["max_memory_bytes"]))
    if config["max_user_processes"]:
        lower(resource.RLIMIT_NPROC, int(config["max_user_processes"]))
    os.umask(0o077)
    if sys.platform == "linux":
        # PR_SET_DUMPABLE off: what a command leaves behind can't write into our memory or our pipes through /proc.
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)


def main() -> None:
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    config = json.loads(requests.readline())
    _limit_ourselves(config)
    if config["own_pid_namespace"] and os.readlink("/proc/self/ns/pid") == config["outer_pid_namespace"]:
        sys.exit("the jail has no process namespace of its own")
    tools = Tools(config)
    answers.write(b'{"ready": true}\n')
    answers.flush()
    for line in requests:
        request = json.loads(line)
        ok, answer = tools.run(request["tool"], request["arguments"], room_bytes=request["room_bytes"])
        reply = {"id": request["id"], "ok": ok, **answer._asdict()}
        answers.write(json.dumps(reply).encode("ascii") + b"\n")
        answers.flush()


if __name__ == "__main__":
    main()
