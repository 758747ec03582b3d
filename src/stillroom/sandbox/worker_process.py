"""The parent's end of a jail: one worker process, its calls, its limits, its end.

The worker is not trusted. What it prints is parsed as data of a bounded size; what it uses is watched from outside.
When it hangs, floods, dies or answers nonsense, all that is in the jail is ended and the next call starts it anew, a
few times.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import msgspec

from stillroom.errors import JailError
from stillroom.sandbox.jail import JailLimits, Launch, Level, ToolResult
from stillroom.sandbox.watch import Survey, descendants, end_below, open_up, survey, use_of

#: In an `argv`: the number of the descriptor with the system-call filter.
FILTER = "{filter}"
#: The tool whose effects only a look at the folder tells. What the file tools say of theirs is believed until the next
#: look, which every such call has.
_SHELL = "shell"
FILE_TOOLS = ("list", "read", "search", "write", "apply_patch")
_WATCH_SECONDS = 0.05
#: A folder with too many files is counted on to so many times the limit, to tell whether they become fewer.
_COUNTED = 2
_END_SECONDS = 5.0


class _Reply(msgspec.Struct, frozen=True):
    id: int
    ok: bool
    text: str
    truncated: bool
    changed: bool
    growth: int


class _Stopped(msgspec.Struct, frozen=True):
    """The worker gave no answer and has to go."""

    why: str


class Worker:
    """The tools of one run, in their jail. Calls are answered one after the other."""

    def __init__(self, launch: Launch, folder: Path, limits: JailLimits) -> None:
        self._launch = launch
        self._folder = folder
        self._limits = limits
        self._process: asyncio.subprocess.Process | None = None
        # A pipe of our own, read once at the end: asyncio would go on reading what nobody wants.
        self._errors: int | None = None
        self._said = ""
        self._survey = Survey(0, 0, 0, (), over=False)
        self._deadline = time.perf_counter() + limits.run_seconds
        # A file tool has changed something since the last look.
        self._stale = False
        self._calls = 0
        self._starts = 0
        self._closed = False
        # Protects the pipe: a request and its answer belong together.
        self._turn = asyncio.Lock()

    @property
    def level(self) -> Level:
        return self._launch.level

    @property
    def tools(self) -> tuple[str, ...]:
        """The names that `call` knows."""
        return (*FILE_TOOLS, _SHELL) if self._launch.shell is not None else FILE_TOOLS

    @property
    def process_id(self) -> int | None:
        """Of the process that holds the jail, as long as it runs."""
        return self._process.pid if self._process is not None else None

    async def start(self) -> None:
        """Bring the worker up. Raises `JailError`, and leaves nothing behind then."""
        try:
            await self._start()
            self._survey = await self._look()
        except BaseException:
            await self.close()
            raise

    async def call(self, tool: str, arguments: dict[str, object]) -> ToolResult:
        """Run one tool. Failures of the tool or of the worker are results. Cancelled: nothing of the call runs on."""
        async with self._turn:
            if self._closed:
                raise JailError("the jail is closed")
            if self._deadline <= time.perf_counter():
                await self._stop()
                return self._refusal(f"the time of this run ({self._limits.run_seconds:g} s) is over")
            if self._process is None:
                if self._starts > self._limits.restarts:
                    return self._refusal("the tools had to be stopped too often and are not started again")
                await self._start()
            if tool == _SHELL and self._stale:
                self._survey, self._stale = await self._look(), False
            answer, before = await self._exchange(tool, arguments), self._survey
            if isinstance(answer, _Reply) and tool != _SHELL:
                self._stale |= answer.changed
                self._survey = replace(before, total_bytes=before.total_bytes + answer.growth)
                changed = answer.changed
            else:
                self._survey = await self._look()
                changed = self._stale or self._survey.fingerprint != before.fingerprint
                self._stale = False
            if isinstance(answer, _Stopped):
                text = f"the tools were stopped: {answer.why}. Files are as they were left; the next call starts anew"
                return self._result(text + self._notes(tool), ok=False, changed=changed)
            return self._result(
                answer.text + self._notes(tool), ok=answer.ok, changed=changed, truncated=answer.truncated
            )

    async def close(self) -> None:
        """End everything in the jail. May be called twice, and while a call is under way."""
        self._closed = True
        await self._stop()
        await asyncio.to_thread(open_up, self._folder)
        if self._launch.scratch is not None:
            await asyncio.to_thread(_remove, self._launch.scratch)

    async def __aenter__(self) -> Worker:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _start(self) -> None:
        self._starts += 1
        launch, limits = self._launch, self._limits
        read_end, write_end = os.pipe()
        self._errors, errors = os.pipe()
        os.set_blocking(self._errors, False)
        try:
            if launch.filter_program is not None:
                os.write(write_end, launch.filter_program)
            os.close(write_end)
            argv = [str(read_end) if word == FILTER else word for word in launch.argv]
            self._process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                cwd=launch.working_directory,
                env=launch.environment,
                pass_fds=(read_end,) if launch.filter_program is not None else (),
                start_new_session=True,
                # JSON spends up to six bytes on one.
                limit=6 * limits.output_bytes + 4096,
            )
        except OSError as error:
            raise JailError(f"`{launch.argv[0]}` can't be started: {error}") from error
        finally:
            os.close(read_end)
            os.close(errors)
        first = await self._exchange_line(worker_config(launch, limits))
        if first != b'{"ready": true}\n':
            await self._stop()
            raise JailError(f"the tools didn't come up in the `{launch.level}` jail: {self._said or 'no reason given'}")

    async def _exchange_line(self, request: bytes) -> bytes:
        assert self._process is not None and self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(request)
        try:
            async with asyncio.timeout(self._limits.call_seconds):
                await self._process.stdin.drain()
                return await self._process.stdout.readline()
        except (TimeoutError, ConnectionError, ValueError):
            return b""

    async def _exchange(self, tool: str, arguments: dict[str, object]) -> _Reply | _Stopped:
        """Send the request, watch the jail while it works, and read the answer."""
        assert self._process is not None and self._process.stdin is not None and self._process.stdout is not None
        limits = self._limits
        self._calls += 1
        request = {
            "id": self._calls,
            "tool": tool,
            "arguments": arguments,
            "room_bytes": limits.folder_bytes - self._survey.total_bytes,
        }
        allowed = limits.call_seconds + (limits.shell_seconds if tool == "shell" else 0)
        deadline = min(time.perf_counter() + allowed, self._deadline)
        answer: _Reply | _Stopped | None = None
        reading = asyncio.create_task(self._answer(msgspec.json.encode(request) + b"\n"))
        try:
            while answer is None:
                await asyncio.wait({reading}, timeout=_WATCH_SECONDS)
                if reading.done():
                    answer = reading.result()
                elif deadline <= time.perf_counter():
                    answer = _Stopped(f"no answer within {allowed:g} s")
                else:
                    answer = await self._watch()
        finally:
            reading.cancel()
            if not isinstance(answer, _Reply):
                await self._stop()
        return answer

    async def _answer(self, request: bytes) -> _Reply | _Stopped:
        assert self._process is not None and self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(request)
            await self._process.stdin.drain()
            line = await self._process.stdout.readline()
        except ConnectionError:
            line = b""
        except ValueError:
            return _Stopped("the answer was too long")
        if not line:
            return _Stopped("the worker ended")
        try:
            reply = msgspec.json.decode(line, type=_Reply)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return _Stopped("the answer was not one")
        return reply if reply.id == self._calls else _Stopped("the answer was to another question")

    async def _watch(self) -> _Stopped | None:
        """Why the jail has to be ended while it works, if it has to."""
        assert self._process is not None
        limits = self._limits
        use = await asyncio.to_thread(use_of, self._process.pid)
        if use.processes > limits.processes:
            return _Stopped(f"{use.processes:,} processes, more than {limits.processes:,}")
        if use.resident_bytes > limits.memory_bytes:
            return _Stopped(f"{use.resident_bytes:,} bytes of memory, more than {limits.memory_bytes:,}")
        if use.written_bytes > limits.written_bytes:
            return _Stopped(f"{use.written_bytes:,} bytes written, more than {limits.written_bytes:,}")
        return self._too_large(await self._look(), before=self._survey)

    def _too_large(self, found: Survey, *, before: Survey | None = None) -> _Stopped | None:
        """Why the folder is too large; with `before`, only if it has grown since: who deletes is let do it."""
        limits = self._limits
        entries = max(limits.folder_entries, before.entries if before else 0)
        size = max(limits.folder_bytes, before.total_bytes if before else 0)
        if found.over or found.entries > entries:
            return _Stopped(f"the folder holds more than {limits.folder_entries:,} files")
        if found.total_bytes > size:
            return _Stopped(f"the folder holds {found.total_bytes:,} bytes, more than {limits.folder_bytes:,}")
        return None

    async def _look(self) -> Survey:
        """The folder, with the size of the scratch directory added."""
        max_entries = _COUNTED * self._limits.folder_entries
        found = await asyncio.to_thread(survey, self._folder, max_entries=max_entries)
        if self._launch.scratch is None:
            return found
        beside = await asyncio.to_thread(survey, self._launch.scratch, max_entries=max_entries)
        return replace(
            found,
            total_bytes=found.total_bytes + beside.total_bytes,
            entries=max(found.entries, beside.entries),
            over=found.over or beside.over,
        )

    async def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await asyncio.to_thread(_end, process.pid)
            if process.returncode is None:
                # Not `process.kill()`, which also waits for the process and takes its end away from asyncio.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
            # What is still in the pipe is read, so that asyncio sees their end and lets go of them.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_END_SECONDS):
                    await process.communicate()
        if self._errors is not None:
            errors, self._errors = self._errors, None
            with contextlib.suppress(BlockingIOError):
                self._said = " ".join(os.read(errors, 4096).decode("utf-8", "replace").split())[-500:]
            os.close(errors)

    def _notes(self, tool: str) -> str:
        """What the model should know about the folder after a call that may have changed it."""
        if tool != _SHELL:
            return ""
        notes = ""
        if (large := self._too_large(self._survey)) is not None:
            notes += f"\n[{large.why}: delete what isn't needed]"
        if self._survey.foreign:
            names = ", ".join(repr(name[:80]) for name in self._survey.foreign)
            notes += f"\n[not allowed in the memory folder, remove them: {names}]"
        return notes

    def _result(self, text: str, *, ok: bool, changed: bool, truncated: bool = False) -> ToolResult:
        raw = text.encode("utf-8", "replace")
        if len(raw) > self._limits.output_bytes:
            text = raw[: self._limits.output_bytes - 20].decode("utf-8", "ignore") + " [cut]"
            truncated = True
        return ToolResult(ok=ok, text=text, truncated=truncated, changed=changed)

    def _refusal(self, text: str) -> ToolResult:
        return ToolResult(ok=False, text=text, truncated=False, changed=False)


async def start_worker(launch: Launch, folder: Path, *, limits: JailLimits) -> Worker:
    """Start the worker as `launch` says. Raises `JailError`."""
    worker = Worker(launch, folder, limits)
    await worker.start()
    return worker


def worker_config(launch: Launch, limits: JailLimits) -> bytes:
    """The first line that the worker reads."""
    config = {
        "max_output_bytes": limits.output_bytes,
        "max_file_bytes": limits.file_bytes,
        "max_memory_bytes": limits.memory_bytes,
        "max_user_processes": launch.max_user_processes,
        "search_seconds": limits.call_seconds / 2,
        "shell": launch.shell,
        "shell_seconds": limits.shell_seconds,
        "shell_filter": launch.shell_filter,
        "own_pid_namespace": launch.own_pid_namespace,
        "outer_pid_namespace": str(Path("/proc/self/ns/pid").readlink()) if launch.own_pid_namespace else "",
    }
    return msgspec.json.encode(config) + b"\n"


def _end(root: int) -> None:
    """End all below `root`, for as long as there is something."""
    deadline = time.perf_counter() + _END_SECONDS
    while descendants(root) and time.perf_counter() < deadline:
        end_below(root)
        time.sleep(0.002)


def _remove(directory: Path) -> None:
    open_up(directory)
    shutil.rmtree(directory, ignore_errors=True)
