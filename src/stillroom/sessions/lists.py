"""Files that hold the messages of one session: a JSON list, or lines with a message or a list of them each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.sessions import documents
from stillroom.sessions.conversation import LineDecoder
from stillroom.sessions.discovery import Broken, Discovery, File, Found, scan
from stillroom.sessions.jsonl import BOM, open_stored, read_lines
from stillroom.sessions.metadata import read_small
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream, open_chunks, open_stream
from stillroom.thread import FileStamp

_SUFFIXES = frozenset({".json", ".jsonl", ".ndjson"})
D = TypeVar("D", bound=LineDecoder)


def list_files(root: Path, *, deep: bool = True) -> Iterator[Path]:
    """`root` itself, or the files in it, or anywhere under it, that may hold messages."""
    if root.is_dir():
        yield from (path for path in root.glob("**/*" if deep else "*") if path.suffix.lower() in _SUFFIXES)
    elif root.exists():
        yield root


def scan_lists(
    root: Path, known: Mapping[str, FileStamp], look: Callable[[File], Found | None], *, lacking: str
) -> Iterator[Discovery]:
    """What `look` finds in these files, oldest first; None is for a file without a message of the format.

    In a folder that is another program's file, and passed over. One that was named as the root is told.
    """
    strangers: set[str] = set()

    def looked(file: File) -> Discovery:
        if (found := look(file)) is None:
            strangers.add(str(file.path))
            why = lacking + (documents.cut(file.path) if root == file.path else "")
            return Broken(str(file.path), f"`{file.path}` can't be used: it holds {why}")
        return found

    for discovery in scan(list_files(root), known, looked):
        if not (isinstance(discovery, Broken) and discovery.path in strangers and root.is_dir()):
            yield discovery


def open_list(
    path: Path, decoder: D, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[D]:
    """The items of such a file. Raises `RolloutError` if it can't be opened."""
    if is_lines(path):
        return open_stream(
            path, decoder, max_line_bytes=max_line_bytes, stop_after_bytes=stop_after_bytes, reading=reading
        )
    file = open_chunks(document(path, (), reading), reading=reading)
    stop = sys.maxsize if stop_after_bytes is None else stop_after_bytes
    return ItemStream(file, path, decoder, max_line_bytes=max_line_bytes, stop_after_bytes=stop, reading=reading)


def raw_lines(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> Iterator[bytes]:
    """Each message, or list of them, as it is stored. Raises `OSError` or `RolloutError`."""
    lines = is_lines(path)
    opened = open_stored(path, reading=reading) if lines else open_chunks(document(path, (), reading), reading=reading)
    with opened as file:
        yield from read_lines(file, ReadStats(), max_line_bytes=max_line_bytes, reading=reading)


def read_end(path: Path, size: int, *, reading: Reading = READING) -> bytes:
    """The last bytes of a file. Raises `OSError` or `RolloutError`."""
    with open_stored(path, reading=reading) as file:
        file.seek(max(size - reading.tail_window_bytes, 0))
        return file.read(reading.tail_window_bytes)


def is_lines(path: Path) -> bool:
    """Whether each line is a value of its own; else the file is one."""
    return path.suffix.lower() != ".json" or read_small(path, max_bytes=1024).removeprefix(BOM).lstrip()[:1] == b"{"


def document(path: Path, where: documents.Path, reading: Reading) -> Generator[bytes, None, None]:
    """The elements of the list in a JSON document, as lines. Raises `OSError` or `RolloutError`."""
    with open_stored(path, reading=reading) as file:
        try:
            yield from documents.lines(file, where, reading=reading)
        except RolloutError as error:
            raise RolloutError(f"`{path}` can't be used: {error}") from error
