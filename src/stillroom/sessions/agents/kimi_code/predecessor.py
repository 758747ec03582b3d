"""Sessions of kimi-cli, which came before Kimi Code: the talk as its model was sent it, without ids and times.

When the talk is compacted, or goes back to a checkpoint, the client begins `context.jsonl` anew, and what it held stays
beside it as `context_1.jsonl`, `context_2.jsonl`, …
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.sessions.agents.kimi_code.records import Call, Message, Part, Records, texts_of
from stillroom.sessions.conversation import text_of
from stillroom.sessions.discovery import File
from stillroom.sessions.jsonl import open_stored, read_batches
from stillroom.sessions.metadata import preview_of, read_description
from stillroom.sessions.normalize import NormalizedItem, output
from stillroom.sessions.scaffolding import without_blocks
from stillroom.sessions.speech import preview_text
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream, stream_chunks
from stillroom.sessions.tools import calls_shell, read_result
from stillroom.thread import Thread

NAME = "context.jsonl"
_EARLIER = re.compile(r"context_(\d{1,6})\.jsonl")
_NOTE = "<system>"
_FAILED = "<system>ERROR"
_COMPACTED = "<system>Previous context has been compacted"
_EXITED = re.compile(r"exit code: (-?\d{1,10})")
# It lists every folder that the client was ever started in.
_MAX_FOLDERS_BYTES = 1024 * 1024


class _Line(msgspec.Struct):
    role: Any = None
    content: list[Part] | str | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: Any = None


class _Folder(msgspec.Struct):
    path: Any = None


class _Folders(msgspec.Struct):
    work_dirs: list[_Folder] = []


class _State(msgspec.Struct):
    custom_title: Any = None
    archived: Any = None


_line = msgspec.json.Decoder(_Line)


class OldRecords(Records):
    """Decodes such lines."""

    def may_matter(self, beginning: bytes) -> bool:
        """Always: a line tells of itself only at its end."""
        del beginning
        return True

    def made(self, line: bytes) -> tuple[int | None, Iterable[NormalizedItem]]:
        """The items of a message; the client's own lines have a role that begins with `_`."""
        read = _line.decode(line)
        if text_of(read.role).startswith("_"):
            return None, ()
        if next(iter(texts_of(read.content)), "").startswith(_COMPACTED):
            self.stats.drop("compaction summary")
            return None, ()
        message = Message(read.role, read.content, calls=read.tool_calls, call_id=read.tool_call_id)
        return None, self._message(message, line)

    def _ended(self, call_id: Any, content: Any, *, failed: bool) -> Iterator[NormalizedItem]:
        """How a call ended stands in a note of the client's ahead of its output."""
        call_id = text_of(call_id)
        if not call_id or not self.is_new(f"result {call_id}"):
            return
        texts = texts_of(content)
        note = next((text for text in texts if text.startswith(_NOTE)), "")
        failed = failed or note.startswith(_FAILED)
        call, text = self.call_of(call_id), "\n".join(without_blocks(text, "system") for text in texts).strip()
        if calls_shell(call):
            exited = _EXITED.search(note)
            code = int(exited[1]) if exited else None if failed else 0
            yield output(call, call_id, text, exit_code=code, ok=False if failed else None)
        else:
            yield read_result(call, text, call_id=call_id, failed=failed)


def open_session(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None, reading: Reading = READING
) -> ItemStream[OldRecords]:
    """Open a session with all that it held before. Raises `RolloutError` if it can't be opened."""
    if not path.is_file():
        raise RolloutError(f"`{path}` can't be opened: it is no file")
    return stream_chunks(
        _lines(path, max_line_bytes, reading),
        path,
        OldRecords(ReadStats(), cwd=_cwd(path) or None, reading=reading),
        max_line_bytes=max_line_bytes,
        stop_after_bytes=stop_after_bytes,
        reading=reading,
    )


def thread_of(agent: str, file: File, *, max_line_bytes: int, reading: Reading) -> Thread:
    """What is known of a session."""
    path = file.path
    state = read_description(path.with_name("state.json"), _State)
    with open_session(
        path, max_line_bytes=max_line_bytes, stop_after_bytes=reading.long_head_bytes, reading=reading
    ) as items:
        preview = preview_of(items, reading=reading)
    updated = file.mtime_ns // 1_000_000
    return Thread(
        thread_id=path.parent.name,
        agent=agent,
        rollout_path=str(path),
        source="cli",
        cwd=_cwd(path),
        # Its folder was last written to when its last file was made.
        created_at_ms=min(path.parent.stat().st_mtime_ns // 1_000_000, updated),
        updated_at_ms=updated,
        title=preview_text(text_of(state.custom_title), max_chars=reading.preview_chars),
        preview=preview,
        archived=state.archived is True,
    )


def _lines(path: Path, max_line_bytes: int, reading: Reading) -> Generator[bytes, None, None]:
    """The lines of all files of a session, oldest first. What a compaction took over into the next one comes once."""
    before: set[int] = set()
    for file in _files(path):
        own: set[int] = set()
        with open_stored(file, reading=reading) as opened:
            for lines in read_batches(opened, ReadStats(), max_line_bytes=max_line_bytes, reading=reading):
                for line in lines:
                    number = hash(line.rstrip())
                    if number not in before:
                        # Only at the very end a line may still be written to.
                        yield line if file == path or line.endswith(b"\n") else line + b"\n"
                    if len(before) + len(own) < reading.remembered_records:
                        own.add(number)
        before |= own


def _files(path: Path) -> list[Path]:
    earlier = [(int(match[1]), each) for each in path.parent.iterdir() if (match := _EARLIER.fullmatch(each.name))]
    return [*(each for _, each in sorted(earlier)), path]


def _cwd(path: Path) -> str:
    """The folder whose hash the session's folder is named by."""
    listed = read_description(path.parent.parent.parent.parent / "kimi.json", _Folders, max_bytes=_MAX_FOLDERS_BYTES)
    names = (text_of(each.path) for each in listed.work_dirs)
    hashed = path.parent.parent.name.rpartition("_")[2]
    return next((name for name in names if hashlib.md5(name.encode(), usedforsecurity=False).hexdigest() == hashed), "")
