"""Find conversations in files of OpenTelemetry's GenAI spans; a file has as many as the program had.

The `rollout_path` is the file's with the conversation's id as a fragment: `…/spans.jsonl#ID`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from stat import S_ISREG

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.agents.chunks import stream_chunks
from stillroom.rollouts.agents.ends import preview_of
from stillroom.rollouts.agents.lists import list_files
from stillroom.rollouts.agents.names import MAX_NAME_CHARS, place_of, rollout_path, thread_id
from stillroom.rollouts.agents.otel.conversations import Conversation, Conversations, conversations, lines
from stillroom.rollouts.agents.otel.records import Records
from stillroom.rollouts.agents.scan import refreshed as refreshed
from stillroom.rollouts.found import Broken, Discovery, Found, Unchanged
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.stream import ItemStream
from stillroom.thread import FileStamp, Thread

AGENT = "otel-genai"
COPIES = False


def discover(
    root: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every conversation in the file `root`, or in those under that folder. What has not changed since its
    conversations were found is not opened."""
    before: dict[Path, list[str]] = {}
    for name in known:
        before.setdefault(place_of(Path(name))[0], []).append(name)
    root = root.absolute()
    for path in sorted(list_files(root)):
        try:
            status = path.stat()
            if not S_ISREG(status.st_mode):
                continue
            names = before.get(path, [])
            stamp = FileStamp(size=status.st_size, mtime_ns=status.st_mtime_ns)
            if names and all(known[name] == stamp for name in names):
                yield from map(Unchanged, names)
            else:
                found = conversations(path, max_line_bytes=max_line_bytes, reading=reading)
                # Without any in a folder it is another program's file.
                if found or path == root:
                    yield from _look(path, stamp, found, max_line_bytes, reading)
        except RolloutError as error:
            yield Broken(str(path), str(error))
        except OSError as error:
            yield Broken(str(path), f"`{path}` can't be read: {error.strerror}")


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a conversation. Raises `RolloutError` if the file can't be opened."""
    place, name = place_of(path)
    try:
        found = conversations(place, max_line_bytes=max_line_bytes, reading=reading).get(name)
    except OSError as error:
        raise RolloutError(f"`{path}` can't be opened: {error.strerror}") from error
    return stream_chunks(
        lines(place, name, max_line_bytes=max_line_bytes, reading=reading),
        path,
        Records(
            ReadStats(), at_ms=found.last_ms if found else None, of_agent=bool(found and found.parent), reading=reading
        ),
        max_line_bytes=max_line_bytes,
        stop_after_bytes=stop_after_bytes,
        reading=reading,
    )


def _look(
    path: Path, stamp: FileStamp, found: Conversations, max_line_bytes: int, reading: Reading
) -> Iterator[Discovery]:
    some = False
    for name, each in found.items():
        if each.place >= 0 and len(name) <= MAX_NAME_CHARS:
            some = True
            preview = each.preview or (_first_words(path, name, max_line_bytes, reading) if each.long else "")
            yield Found(_thread(path, name, each, stamp, preview), stamp)
    if not some:
        raise RolloutError(f"`{path}` can't be used: it holds no span with messages")
    if found.untold:
        yield Broken(f"{path}#", f"`{path}` has more conversations than are read; {found.untold} spans were left")


def _first_words(path: Path, name: str, max_line_bytes: int, reading: Reading) -> str:
    with open_items(rollout_path(path, name), max_line_bytes=max_line_bytes, reading=reading) as items:
        return preview_of(items, reading=reading)


def _thread(path: Path, name: str, each: Conversation, stamp: FileStamp, preview: str) -> Thread:
    updated = each.last_ms or stamp.mtime_ns // 1_000_000
    agent = {"subagent": each.agent or "other"}
    return Thread(
        thread_id=thread_id(path, name),
        agent=AGENT,
        rollout_path=str(rollout_path(path, name)),
        # Else of whoever it is: a person named this file as a source.
        source=msgspec.json.encode(agent).decode() if each.parent else "cli",
        cwd="",
        created_at_ms=min(each.first_ms or updated, updated),
        updated_at_ms=updated,
        title=each.agent or name,
        preview="" if each.parent else preview,
        parent_thread_id=thread_id(path, each.parent) if each.parent else None,
        model_provider=each.provider or None,
    )
