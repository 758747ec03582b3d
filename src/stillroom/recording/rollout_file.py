"""An append-only file of lines: each is written whole or not at all, and a torn one costs no other."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import msgspec

from stillroom.errors import RecordingError, way_out
from stillroom.recording.names import private_folders
from stillroom.spending import Usage
from stillroom.system import APPEND, read_at

# The last account of tokens stands in the last turn.
_TAIL_BYTES = 256 * 1024


class _Counts(msgspec.Struct):
    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0


class _Info(msgspec.Struct):
    total_token_usage: _Counts


class _Event(msgspec.Struct):
    info: _Info


class _Line(msgspec.Struct):
    payload: _Event


class RolloutFile:
    """One rollout that is appended to. Any thread may write; every line is one write to the end of the file."""

    def __init__(self, path: Path, *, durable: bool = False) -> None:
        self.path = path
        self._durable = durable
        self._descriptor: int | None = None
        self._torn = False
        self._closed = False
        # Protects the descriptor and `_torn`: a line must not come between a torn one and its end.
        self._lock = threading.Lock()

    def append(self, line: bytes, *, first: bytes) -> None:
        """Write the line; ahead of it `first`, if the file has no whole line yet. Raises `RecordingError`."""
        with self._lock:
            if self._closed:
                raise RecordingError(f"`{self.path.name}` is closed: nothing can be recorded any more")
            try:
                if self._descriptor is None:
                    self._descriptor, has_line = self._open()
                    if not has_line:
                        self._write(self._descriptor, first)
                self._write(self._descriptor, line)
                if self._durable:
                    os.fsync(self._descriptor)
            except OSError as error:
                raise RecordingError(
                    f"`{self.path}` can't be written: {error.strerror}", hint=way_out(error, self.path.parent)
                ) from error

    def close(self) -> None:
        """Release the file; what is written stays."""
        with self._lock:
            self._closed = True
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def _open(self) -> tuple[int, bool]:
        private_folders(self.path.parent)
        descriptor = os.open(self.path, APPEND, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            if not size:
                return descriptor, False
            # Whoever wrote here before may have been killed within a line: it is ended, and the rest goes on behind.
            self._torn = read_at(descriptor, 1, size - 1) != b"\n"
            return descriptor, not self._torn or _has_line(descriptor, size)
        except BaseException:
            os.close(descriptor)
            raise

    def _write(self, descriptor: int, line: bytes) -> None:
        data = b"\n" + line if self._torn else line
        self._torn = True
        written = os.write(descriptor, data)
        if written < len(data):
            raise RecordingError(
                f"`{self.path}` took {written} of {len(data)} bytes",
                hint="is the disk full? The next line goes on behind",
            )
        self._torn = False


def last_total(path: Path) -> Usage:
    """The tokens that the thread had used when it was last recorded; none if its end does not tell."""
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - _TAIL_BYTES, 0))
            lines = file.read(_TAIL_BYTES).split(b"\n")
    except OSError:
        return Usage()
    for line in reversed(lines):
        if b'"type":"token_count"' in line[:200]:
            try:
                counted = msgspec.json.decode(line, type=_Line).payload.info.total_token_usage
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            return Usage(
                input_tokens=counted.input_tokens,
                cached_input_tokens=counted.cached_input_tokens,
                cache_write_tokens=counted.cache_write_input_tokens,
                output_tokens=counted.output_tokens,
                reasoning_tokens=counted.reasoning_output_tokens,
            )
    return Usage()


def _has_line(descriptor: int, size: int) -> bool:
    at = 0
    while at < size and (piece := read_at(descriptor, 64 * 1024, at)):
        if b"\n" in piece:
            return True
        at += len(piece)
    return False
