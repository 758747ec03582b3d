"""Find conversations that are stored as the messages that a model's API takes, in files of any program.

A conversation that is a file has the file's path. One of many in a file has a fragment behind it: where its line begins
(`dataset.jsonl#1200`), or its number in a list (`conversations.json#3`). Its stamp is its size and its place, with the
time of the file when it was seen first, so that those that stay as they are cost nothing when others are appended.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.sessions import documents
from stillroom.sessions.chat_parts import ChatDecoder, is_message, when
from stillroom.sessions.conversation import text_of
from stillroom.sessions.discovery import Broken, Discovery, File, Found, Unchanged, scan_stores
from stillroom.sessions.discovery import refreshed as refreshed
from stillroom.sessions.item import UNREADABLE
from stillroom.sessions.jsonl import BOM, open_stored
from stillroom.sessions.metadata import preview_of
from stillroom.sessions.speech import preview_text
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream, open_chunks
from stillroom.thread import FileStamp, Thread

# --- In which of the usual ways a file stores conversations, told from its beginning.

#: Names of the list of messages.
_NAMES = ("messages", "conversations", "conversation")
_LINES = frozenset({".jsonl", ".ndjson"})
_BLANK = b" \t\r\n"


class Layout(NamedTuple):
    """`lines`: each line a message; `rows`: each line a conversation; `document`: the file is one conversation;
    `listed`: it is a list of them."""

    kind: Literal["lines", "rows", "document", "listed"]
    #: Where the messages stand in a conversation: `()` where it is a list itself.
    path: documents.Path


def layout_of(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> Layout:
    """Raises `RolloutError` for a file without messages, and `OSError`."""
    with open_stored(path, reading=reading) as file:
        head = file.read(reading.batch_bytes).removeprefix(BOM).lstrip(_BLANK)

    def begins_with_message(*place: str | int) -> bool:
        with (
            open_stored(path, reading=reading) as file,
            elements(
                file,
                place,
                max_line_bytes=max_line_bytes,
                stop_after_bytes=reading.long_head_bytes,
                reading=reading,
            ) as found,
        ):
            return is_message(next(found, b""))

    if head[:1] == b"[":
        if begins_with_message():
            return Layout("document", ())
        for name in _NAMES:
            if begins_with_message(0, name):
                return Layout("listed", (name,))
    elif head[:1] == b"{":
        in_lines = path.name.removesuffix(".zst").endswith(tuple(_LINES)) or _is_whole(head.partition(b"\n"))
        for name in _NAMES:
            if begins_with_message(name):
                return Layout("rows" if in_lines else "document", (name,))
        if in_lines and is_message(head.partition(b"\n")[0]):
            return Layout("lines", ())
    cut = documents.cut(path, reading=reading)
    raise RolloutError(f"`{path}` can't be used: no messages were found in it{cut}")


@contextmanager
def elements(
    file: BinaryIO,
    path: documents.Path,
    *,
    max_line_bytes: int,
    stop_after_bytes: int = sys.maxsize,
    reading: Reading = READING,
) -> Generator[Generator[bytes, None, None], None, None]:
    """The elements of a list of which no more is read than is asked for."""
    found = documents.elements(
        file, path, max_line_bytes=max_line_bytes, stop_after_bytes=stop_after_bytes, reading=reading
    )
    try:
        yield found
    finally:
        found.close()


def _is_whole(parts: tuple[bytes, bytes, bytes]) -> bool:
    """Whether the first line is a document, and another follows."""
    line, _, rest = parts
    try:
        msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except UNREADABLE:
        return False
    return rest.lstrip(_BLANK)[:1] == b"{"


# --- Conversations that are stored again each time they grow, as in a log of requests: the last one holds all.

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_messages = msgspec.json.Decoder(list[msgspec.Raw])


def last_of_each(conversations: Iterable[tuple[int, bytes]], path: documents.Path, *, max_kept: int) -> dict[int, int]:
    """The numbers of those that no later one repeats from its beginning on, each with the number of the first of them.

    Messages stand at `path`. No more than `max_kept` and one are returned.
    """
    first_of: dict[int, int] = {}
    ends: dict[int, int] = {}
    for number, text in conversations:
        told = _beginnings(text, path)
        repeated = next((ends.pop(beginning) for beginning in reversed(told) if beginning in ends), number)
        first_of[number] = first_of.pop(repeated, number)
        if told:
            ends[told[-1]] = number
        if len(first_of) > max_kept:
            break
    return first_of


def _beginnings(text: bytes, path: documents.Path) -> list[int]:
    """A hash of the first message, of the first two, and so on."""
    try:
        raw: msgspec.Raw | bytes = text
        for name in path:
            raw = _fields.decode(raw)[str(name)]
        messages = _messages.decode(raw)
    except (KeyError, *UNREADABLE):
        return []
    beginnings: list[int] = []
    for message in messages:
        beginnings.append(hash((beginnings[-1] if beginnings else 0, bytes(message))))
    return beginnings


# --- Sessions

AGENT = "chat-messages"
COPIES = False
_PLACES = ("*.json", "*.jsonl", "*.ndjson", "*.jsonl.zst")
_INSIDE = re.compile(r"(.+)#(\d{1,18})", re.DOTALL)
# A person's own conversations are fewer; a data set is not a person's.
_MAX_THREADS_PER_FILE = 10_000
_MAX_FIELD_BYTES = 64 * 1024


class _Traits(msgspec.Struct):
    """What may stand beside the messages."""

    title: Any = None
    cwd: Any = None
    created_at: Any = None
    updated_at: Any = None
    timestamp: Any = None


class _Place(NamedTuple):
    """A conversation in its file."""

    file: Path
    #: Where its line begins, or its number in the list.
    number: int | None = None

    @property
    def rollout(self) -> Path:
        return self.file if self.number is None else self.file.with_name(f"{self.file.name}#{self.number}")


def discover(
    root: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every conversation in `root`, a folder or a file, those of the oldest file first."""
    root = root.absolute()
    paths = [root] if root.is_file() else [path for place in _PLACES for path in root.rglob(place)]
    yield from scan_stores(
        paths, known, _is_unchanged, lambda file: _look(file, known, max_line_bytes=max_line_bytes, reading=reading)
    )


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[ChatDecoder]:
    """Open a conversation. Raises `RolloutError` if it can't be opened."""
    place = _place_of(path)
    try:
        layout = layout_of(place.file, max_line_bytes=max_line_bytes, reading=reading)
        file = open_stored(place.file, reading=reading)
    except OSError as error:
        raise RolloutError(f"`{path}` can't be opened: {error.strerror}") from error
    return _stream(
        file, place, layout, max_line_bytes=max_line_bytes, stop_after_bytes=stop_after_bytes, reading=reading
    )


def _stream(
    file: BinaryIO,
    place: _Place,
    layout: Layout,
    *,
    max_line_bytes: int,
    stop_after_bytes: int | None,
    reading: Reading,
) -> ItemStream[ChatDecoder]:
    if layout.kind != "lines":
        path = (place.number or 0, *layout.path) if layout.kind == "listed" else layout.path
        if layout.kind == "rows":
            file.seek(place.number or 0)
        file = open_chunks(_lines(file, path, reading), reading=reading)
    stop = sys.maxsize if stop_after_bytes is None else stop_after_bytes
    decoder = ChatDecoder(ReadStats(), reading=reading)
    return ItemStream(
        file, place.rollout, decoder, max_line_bytes=max_line_bytes, stop_after_bytes=stop, reading=reading
    )


def _lines(file: BinaryIO, path: documents.Path, reading: Reading) -> Generator[bytes, None, None]:
    with file:
        yield from documents.lines(file, path, reading=reading)


def _place_of(path: Path) -> _Place:
    inside = _INSIDE.fullmatch(path.name)
    return _Place(path.with_name(inside[1]), int(inside[2])) if inside and not path.exists() else _Place(path)


def _is_unchanged(file: File, stamps: list[FileStamp]) -> bool:
    """Whether the file is as it was when its last conversation was seen. A list is written anew as a whole."""
    is_list = file.path.suffix == ".json"
    return any(
        stamp.mtime_ns == file.mtime_ns and (is_list or stamp.offset + stamp.size == file.size) for stamp in stamps
    )


def _look(file: File, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading) -> Iterator[Discovery]:
    layout = layout_of(file.path, max_line_bytes=max_line_bytes, reading=reading)
    if layout.kind in ("lines", "document"):
        yield _whole(file, layout, max_line_bytes, reading)
        return
    first_of = last_of_each(
        ((stamp.offset, line) for stamp, line in _conversations(file, layout, max_line_bytes, reading)),
        layout.path,
        max_kept=_MAX_THREADS_PER_FILE,
    )
    count = 0
    for stamp, line in _conversations(file, layout, max_line_bytes, reading):
        place = _Place(file.path, stamp.offset)
        if (first := first_of.get(stamp.offset)) is None:
            continue
        count += 1
        if count > _MAX_THREADS_PER_FILE:
            yield Broken(str(file.path), f"`{file.path}` has over {count - 1} conversations: the others are not read")
            return
        before = known.get(str(place.rollout))
        if before is not None and (before.size, before.offset) == (stamp.size, stamp.offset):
            yield Unchanged(str(place.rollout))
        else:
            yield _one(file, place, first, layout, stamp, line, max_line_bytes, reading)


def _whole(file: File, layout: Layout, max_line_bytes: int, reading: Reading) -> Discovery:
    """The file is one conversation."""
    traits = _Traits()
    if layout.kind == "document":
        with open_stored(file.path, reading=reading) as text:
            traits = _traits(text, reading)
    place = _Place(file.path)
    with _stream(
        open_stored(file.path, reading=reading),
        place,
        layout,
        max_line_bytes=max_line_bytes,
        stop_after_bytes=reading.long_head_bytes,
        reading=reading,
    ) as items:
        preview = preview_of(items, reading=reading)
    return Found(_thread(file, place, traits, preview, reading), file.stamp(0))


def _one(
    file: File,
    place: _Place,
    first: int,
    layout: Layout,
    stamp: FileStamp,
    line: bytes,
    max_line_bytes: int,
    reading: Reading,
) -> Discovery:
    """A conversation of many, which was stored `first` at another place, or at this one.

    The beginning of its text is at hand, mostly all of it.
    """
    alone = Layout("document", layout.path)
    try:
        with _stream(
            BytesIO(line), place, alone, max_line_bytes=max_line_bytes, stop_after_bytes=None, reading=reading
        ) as items:
            preview = preview_of(items, reading=reading)
    except RolloutError as error:
        return Broken(str(place.rollout), f"`{place.rollout}` can't be used: {error}")
    stamp = msgspec.structs.replace(stamp, mtime_ns=file.mtime_ns)
    thread = _thread(file, place, _traits(BytesIO(line), reading), preview, reading)
    return Found(msgspec.structs.replace(thread, thread_id=_id_of(place._replace(number=first))), stamp)


def _conversations(
    file: File, layout: Layout, max_line_bytes: int, reading: Reading
) -> Iterator[tuple[FileStamp, bytes]]:
    """Their places and texts. What is too long for a line is cut off, or squeezed."""
    read = _rows if layout.kind == "rows" else _listed
    with open_stored(file.path, reading=reading) as text:
        yield from read(text, max_line_bytes, reading)


def _rows(text: BinaryIO, max_line_bytes: int, reading: Reading) -> Iterator[tuple[FileStamp, bytes]]:
    """The lines that are not blank, each no farther than the limit. A torn one waits."""
    at = 0
    while line := text.readline(max_line_bytes):
        size, last = len(line), line
        while last[-1:] != b"\n" and (last := text.readline(reading.chunk_bytes)):
            size += len(last)
        if not line.isspace() and (last or _is_document(line)):
            yield FileStamp(size=size, mtime_ns=0, offset=at), line
        at += size


def _listed(text: BinaryIO, max_line_bytes: int, reading: Reading) -> Iterator[tuple[FileStamp, bytes]]:
    with elements(text, (), max_line_bytes=max_line_bytes, reading=reading) as found:
        for number, line in enumerate(found):
            if line != documents.TORN:
                yield FileStamp(size=len(line), mtime_ns=0, offset=number), line


def _is_document(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except UNREADABLE:
        return False
    return True


def _traits(text: BinaryIO, reading: Reading) -> _Traits:
    names = _Traits.__struct_fields__
    found = documents.fields(
        text, names, max_bytes=_MAX_FIELD_BYTES, stop_after_bytes=reading.long_head_bytes, reading=reading
    )
    try:
        return msgspec.convert({name: msgspec.json.decode(raw) for name, raw in found.items()}, _Traits)
    except UNREADABLE:
        return _Traits()


def _thread(file: File, place: _Place, traits: _Traits, preview: str, reading: Reading) -> Thread:
    seen = file.mtime_ns // 1_000_000
    created = when(traits.created_at) or when(traits.timestamp) or seen
    updated = seen if place.number is None else when(traits.updated_at) or created
    return Thread(
        thread_id=_id_of(place),
        agent=AGENT,
        rollout_path=str(place.rollout),
        source="cli",
        cwd=text_of(traits.cwd),
        created_at_ms=min(created, updated),
        updated_at_ms=updated,
        title=preview_text(text_of(traits.title), max_chars=reading.preview_chars),
        preview=preview,
    )


def _id_of(place: _Place) -> str:
    """Files of any program have no ids that could be trusted to differ."""
    name = str(place.rollout).encode("utf-8", "surrogateescape")
    return f"chat-{hashlib.sha256(name).hexdigest()[:32]}"
