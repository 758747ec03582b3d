"""Find Aider's threads: a file may hold many, one behind the other.

Aider keeps its history in the repository that it works in, and has no list of those. So it is read where it is named:
a file, or a folder with one in it or in one of the folders right below.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO, Literal, NamedTuple

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.sessions.conversation import LineDecoder
from stillroom.sessions.discovery import Broken, Discovery, File, Found, Unchanged
from stillroom.sessions.discovery import refreshed as refreshed
from stillroom.sessions.jsonl import open_stored
from stillroom.sessions.metadata import preview_of
from stillroom.sessions.normalize import (
    NormalizedItem,
    function_call,
    output,
    patch_call,
    run_by_user,
    said_by_assistant,
    said_by_user,
    update_patch,
)
from stillroom.sessions.scaffolding import without_blocks
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream, stream_chunks
from stillroom.sessions.timestamps import parse_local_time
from stillroom.thread import FileStamp, Thread

# --- Where the chats of Aider's history stand: one file of Markdown that grows for as long as its repository is worked
# in.
#
# A chat is named `FILE#STARTED@OFFSET`, with the time of its heading and where that stands. The file is only appended
# to, so an offset stays true; where somebody shortened the file the heading is looked for by its time.

_HEADING = re.compile(rb"# aider chat started at (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)[ \t]*\r?\n")
_NAMED = re.compile(r"(.+)#(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?@(\d{1,18})", re.DOTALL | re.ASCII)
# Whatever is longer is no line that anybody wrote by hand.
PIECE_BYTES = 64 * 1024


class Chat(NamedTuple):
    """A chat of a file. They are ordered by where they stand."""

    offset: int
    #: As its heading says: local time, to the second.
    started: str
    #: Of several that began in the same second.
    number: int = 1

    def path(self, file: Path) -> str:
        """The `rollout_path` of the chat."""
        return f"{file}#{self._name}@{self.offset}"

    def thread_id(self, file: Path) -> str:
        """The same as long as the file stays where it is: only that tells chats of two repositories apart."""
        place = sha256(str(file).encode("utf-8", "surrogateescape")).hexdigest()[:12]
        return f"{re.sub('[-:]', '', self._name)}-{place}"

    @property
    def _name(self) -> str:
        return self.started if self.number == 1 else f"{self.started}.{self.number}"


class Section(NamedTuple):
    """A chat with its length in bytes, and when the one behind it began; None: it is the last."""

    chat: Chat
    size: int
    next_started: str | None


def parse_path(path: str) -> tuple[Path, Chat] | None:
    """The file and the chat of a `rollout_path`; None if it names none."""
    if (match := _NAMED.fullmatch(path)) is None:
        return None
    return Path(match[1]), Chat(int(match[4]), match[2], int(match[3] or 1))


def started_at(line: bytes) -> str | None:
    """When the chat began whose heading this is; None for every other line."""
    match = _HEADING.fullmatch(line)
    return f"{match[1].decode()}T{match[2].decode()}" if match else None


def stands(file: BinaryIO, chat: Chat) -> bool:
    """Whether the chat's heading is where its name says. Leaves the file there. Raises `OSError`."""
    file.seek(chat.offset)
    there = started_at(file.readline(PIECE_BYTES)) == chat.started
    file.seek(chat.offset)
    return there


def sections(file: BinaryIO, first: Chat | None = None) -> Iterator[Section]:
    """The chats from where the file stands, which is the beginning or the heading of `first`. Raises `OSError`."""
    chat: Chat | None = None
    at, blank = file.tell(), True
    line_begins = True
    while piece := file.readline(PIECE_BYTES):
        if blank and line_begins and piece[0] == 35 and (started := started_at(piece)) is not None:
            if chat is not None:
                yield Section(chat, at - chat.offset, started)
            number = chat.number + 1 if chat is not None and chat.started == started else 1
            chat = first if chat is None and first is not None else Chat(at, started, number)
        at += len(piece)
        blank = line_begins and piece[-1] == 10 and piece.isspace()
        line_begins = piece[-1] == 10
    if chat is not None:
        yield Section(chat, at - chat.offset, None)


def find(file: BinaryIO, chat: Chat) -> bool:
    """Leave the file at the chat's heading, wherever it stands now; False if it is gone. Raises `OSError`."""
    if stands(file, chat):
        return True
    file.seek(0)
    for section in sections(file):
        if section.chat[1:] == chat[1:]:
            file.seek(section.chat.offset)
            return True
    return False


# --- Aider's Markdown as lines of JSON, one a message: `{"kind":"user","text":…}`.
#
# The client writes a person's words after a blank line, each line as `#### …` with two blanks at its end; its own words
# as `> …`, the last line with two blanks at its end; and the assistant's as they are, between blank lines. A heading or
# a quotation of the assistant's has no blanks at its end, and so is told from both.

Kind = Literal["user", "assistant", "client"]
_MARKS = b"#>"
_END = b'"}\n'
# Of one message; it is written in pieces of about this size.
_HELD_BYTES = 128 * 1024


class _Talk:
    """What the lines before tell about the next one."""

    def __init__(self) -> None:
        #: Behind the heading stands the command line.
        self.kind: Kind | None = None
        self.blank = False
        #: The client's message goes on: its last line had no blanks at its end.
        self.goes_on = False

    def next(self, line: bytes) -> tuple[Kind, bytes, bool]:
        """Whose line it is, without its marks, and whether a message begins with it."""
        if self.kind == "assistant" and line[0] not in _MARKS:
            return "assistant", line, False
        ends = line.endswith(b"  ")
        before, self.kind = self.kind, "assistant"
        if self.goes_on and before == "client":
            self.kind, self.goes_on = "client", not ends
            return "client", line, False
        if line.startswith(b"####") and ends and (self.blank or before == "user"):
            self.kind = "user"
            return "user", line[4:].removeprefix(b" ").removesuffix(b"  "), self.blank
        alone = self.blank if before == "assistant" else True
        if line.startswith(b"> ") and alone and (ends or not self.blank or before is None):
            self.kind, self.goes_on = "client", not ends
            return "client", line[2:], True
        return "assistant", line, before != "assistant"


def lines(file: BinaryIO) -> Generator[bytes, None, None]:
    """The messages of the chat whose heading the file stands at, in pieces; the file is closed at the end."""
    with file:
        file.readline(PIECE_BYTES)
        yield from _lines(file)


def _lines(file: BinaryIO) -> Generator[bytes, None, None]:
    talk = _Talk()
    held: list[bytes] = []  # of a message: its lines are written together, as each call costs more than a line
    size = 0
    open_ = inside = False
    while piece := file.readline(PIECE_BYTES):
        if inside:  # a line so long that it comes in several pieces
            held.append(piece.rstrip(b"\r\n"))
        elif piece[-1] == 10 and piece.isspace():
            talk.blank = True
        elif talk.blank and piece[0] == 35 and started_at(piece) is not None:
            break
        elif piece[-1] != 10 and len(piece) < PIECE_BYTES:
            break  # still being written: only a line's end tells whose it is
        else:
            kind, text, begins = talk.next(piece.rstrip(b"\r\n"))
            if begins:
                yield _escaped(held) + (_END if open_ else b"") + b'{"kind":"%s","text":"' % kind.encode()
                held, size, open_ = [text], 0, True
            else:
                held += (b"\n\n" if talk.blank and kind == "assistant" else b"\n", text)
            talk.blank = False
        inside = piece[-1] != 10
        size += len(piece)
        if size > _HELD_BYTES:
            yield _escaped(held)
            held, size = [], 0
    yield _escaped(held)
    if open_:
        yield _END


def _escaped(pieces: list[bytes]) -> bytes:
    return msgspec.json.encode(b"".join(pieces).decode("utf-8", "replace"))[1:-1]


# --- What was typed, by Aider's own account: the `.aider.input.history` beside the chats, with the time of each prompt.
#
# The chats say `####` of all that is sent to a model, also of what the client sends by itself. Where this account
# covers a chat, only what stands in it was typed.

_INPUT_NAME = ".aider.input.history"
_LINE_BYTES = 64 * 1024
# Of one file; nobody types more.
_MAX_PROMPTS = 200_000
# Of one chat, and of those after it: where it ends is not known yet.
_MAX_PROMPTS_OF_CHAT = 2000


class _Prompt(NamedTuple):
    time_ms: int
    #: The hashes of its lines.
    lines: tuple[int, ...]


class Inputs:
    """The prompts of a chat, in their order; false if there are none, and then nothing can be said of the chat."""

    def __init__(self, prompts: Sequence[_Prompt] = ()) -> None:
        self._prompts = prompts
        self._next = 0
        self._typed: frozenset[int] | None = None

    def __bool__(self) -> bool:
        return bool(self._prompts)

    def typed_at(self, text: str) -> int | None:
        """When `text`, of which each line may be a prompt, was typed in milliseconds; None: it was not.

        To be asked in the order of the chat.
        """
        lines = _hashes(text.split("\n"))
        if not lines or not self._prompts:
            return None
        for number in range(self._next, len(self._prompts)):
            if self._prompts[number].lines == lines:
                self._next = number
                return self._prompts[number].time_ms
        if self._typed is None:
            self._typed = frozenset(line for prompt in self._prompts for line in prompt.lines)
        return self._prompts[self._next].time_ms if self._typed.issuperset(lines) else None

    def last_before(self, time_ms: int) -> int | None:
        """When the last prompt before that time was typed."""
        before = bisect_left(self._prompts, time_ms, key=_time_of)
        return self._prompts[before - 1].time_ms if before else None


def inputs_since(history: Path, started_ms: int) -> Inputs:
    """What was typed beside the chats of `history` since then; nothing if it can't be read."""
    path = history.with_name(_INPUT_NAME)
    try:
        status = path.stat()
        prompts = _read(path, status.st_size, status.st_mtime_ns)
    except (OSError, RolloutError):
        return Inputs()
    first = bisect_left(prompts, started_ms, key=_time_of)
    return Inputs(prompts[first : first + _MAX_PROMPTS_OF_CHAT])


@lru_cache(maxsize=2)
def _read(path: Path, size: int, mtime_ns: int) -> tuple[_Prompt, ...]:
    """All prompts by time; those of a file that did not change are not read again for each of its chats."""
    del size, mtime_ns
    prompts: list[_Prompt] = []
    time: int | None = None
    typed: list[str] = []
    with open_stored(path) as file:
        for line in islice(iter(lambda: file.readline(_LINE_BYTES), b""), 2 * _MAX_PROMPTS):
            text = line.decode("utf-8", "replace")
            if text.startswith("+"):
                typed.append(text[1:])
            elif text.startswith("# "):
                _add(prompts, time, typed)
                time, typed = parse_local_time(text[2:].strip()), []
    _add(prompts, time, typed)
    return tuple(sorted(prompts))


def _time_of(prompt: _Prompt) -> int:
    return prompt.time_ms


def _add(prompts: list[_Prompt], time: int | None, typed: list[str]) -> None:
    if time is not None and typed:
        prompts.append(_Prompt(time, _hashes(typed)))


def _hashes(lines: list[str]) -> tuple[int, ...]:
    return tuple(hash(line.strip()) for line in lines if line.strip())


# --- Aider's messages as the items that memory keeps. The client stores no output of a command, and names no calls.

# With these a person talks to the model; all other commands steer the client.
_SPOKEN = frozenset({"ask", "architect", "chat-mode", "code", "context"})
_SHELLS = frozenset({"run", "test", "git"})
_COMMAND = re.compile(r"(?:/([a-z][a-z-]{0,30})|(!))(?:\s+|(?<=!)|\Z)(.*)", re.DOTALL)
_CONFIRMED = re.compile(r".{0,2000}\(Y\)es/\(N\)o.{0,80}\]: ?[\w']{0,20}", re.DOTALL)
_DONE = re.compile(r"(Applied edit to|Commit|Running|Removed:) (.+)", re.DOTALL)
_VERSION = re.compile(r"Aider v(\S{1,40})")
_SCRIPTED = re.compile(r"\s(?:--message|--msg|-m|--message-file|-f)[\s=]")
_NOT_STORED = "(the client stores no output)"
_THINKING = r"thinking-content-[0-9a-f]{1,64}|think"


class _Message(msgspec.Struct):
    kind: Kind
    text: str


_message = msgspec.json.Decoder(_Message)


class Records(LineDecoder):
    """Decodes the lines that `blocks.lines` makes of a chat, which began at `started_ms`; `inputs` were typed in it."""

    def __init__(
        self, stats: ReadStats, *, started_ms: int | None, cwd: str, inputs: Inputs, reading: Reading = READING
    ) -> None:
        super().__init__(stats, reading=reading)
        self._at = started_ms
        self._cwd = cwd
        self.inputs = inputs
        self._sent = ""  # what the client may send by itself next, without blanks
        self._number = 0
        #: What the client says of itself ahead of the talk.
        self.version: str | None = None
        self.scripted = False

    def made(self, line: bytes) -> tuple[int | None, Iterable[NormalizedItem]]:
        """The items of a message."""
        read = _message.decode(line)
        self._number += 1
        made = list(self._made(read.kind, read.text.strip()))
        return self._at, made

    def _made(self, kind: Kind, text: str) -> Iterator[NormalizedItem]:
        if kind == "user":
            yield from self._prompt(text)
        elif kind == "client":
            yield from self._told(text)
        elif answer := without_blocks(text, _THINKING).strip():
            self._sent = _squeezed(answer)
            yield said_by_assistant(answer)

    def _prompt(self, text: str) -> Iterator[NormalizedItem]:
        if text == "<blank>" or _CONFIRMED.fullmatch(text):
            self.stats.drop("written by the client")
            return
        sent, self._sent = self._sent, ""
        typed = self.inputs.typed_at(text)
        if (self.inputs and typed is None) or _squeezed(text) == sent:
            self.stats.drop("sent by the client")
            return
        self._at = typed or self._at
        command = _COMMAND.fullmatch(text)
        name, words = (command[1] or "run", command[3].strip()) if command else ("", text)
        if name in _SHELLS and words:
            yield run_by_user(f"git {words}" if name == "git" else words, _NOT_STORED)
        elif words and (not name or name in _SPOKEN):
            self._sent = _squeezed(words) if name else ""
            yield said_by_user(words)
        else:
            self.stats.drop("command of the client")

    def _told(self, text: str) -> Iterator[NormalizedItem]:
        if self._number == 1:
            # The command line, which may hold a key.
            self.scripted = _SCRIPTED.search(text) is not None
        elif (done := _DONE.fullmatch(text)) is not None:
            yield from self._done(done[1], done[2])
            return
        elif version := _VERSION.fullmatch(text):
            self.version = version[1]
        self.stats.drop("written by the client")

    def _done(self, what: str, of: str) -> Iterator[NormalizedItem]:
        """What the client did, as the calls that it was: to all of them its word is the only witness."""
        call_id = str(self._number)
        match what:
            case "Applied edit to":
                call = patch_call(update_patch(of, [], cwd=self._cwd), call_id)
                yield call
                yield output(call, call_id, "", ok=True)
            case "Commit":
                call = function_call("commit", msgspec.json.encode({"message": of.partition(" ")[2]}), call_id)
                yield call
                yield output(call, call_id, of, ok=True)
            case "Running":
                call = function_call("shell", msgspec.json.encode({"command": of}), call_id)
                yield call
                yield output(call, call_id, _NOT_STORED, ok=None)
            case _:
                yield run_by_user("/undo", f"{what} {of}")


def _squeezed(text: str) -> str:
    return "".join(text.split())


# --- Sessions

AGENT = "aider"
COPIES = False
_NAME = ".aider.chat.history.md"


def discover(
    root: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every chat of the history that `root` is, or of those in it."""
    root = root.absolute()
    before: dict[Path, list[Chat]] = {}
    for parsed in filter(None, map(parse_path, known)):
        before.setdefault(parsed[0], []).append(parsed[1])
    for path in _files(root):
        chats = sorted(before.get(path, ()))
        try:
            yield from _history(path, chats, known, max_line_bytes, reading)
        except (OSError, RolloutError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            yield Broken(str(path), f"`{path}` can't be read: {reason}")
            yield from (Unchanged(chat.path(path)) for chat in chats)


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a chat. Raises `RolloutError` if it can't be opened, or is no more in its file."""
    parsed = parse_path(str(path))
    if parsed is None:
        raise RolloutError(f"`{path}` names no chat")
    history, chat = parsed
    try:
        file = open_stored(history, reading=reading)
    except OSError as error:
        raise RolloutError(f"`{path}` can't be opened: {error.strerror}") from error
    try:
        found = find(file, chat)
    except OSError as error:
        file.close()
        raise RolloutError(f"`{path}` can't be read: {error.strerror}") from error
    if not found:
        file.close()
        raise RolloutError(f"`{path}` can't be opened: the chat is gone")
    started = parse_local_time(chat.started)
    inputs = inputs_since(history, started or 0)
    return stream_chunks(
        lines(file),
        path,
        Records(ReadStats(), started_ms=started, cwd=_cwd(history), inputs=inputs, reading=reading),
        max_line_bytes=max_line_bytes,
        stop_after_bytes=stop_after_bytes,
        reading=reading,
    )


def _files(root: Path) -> list[Path]:
    """A folder is never searched for more than this: it may be a whole disk."""
    return sorted([*root.glob(_NAME), *root.glob(f"*/{_NAME}")]) if root.is_dir() else [root]


def _history(
    path: Path, chats: list[Chat], known: Mapping[str, FileStamp], max_line_bytes: int, reading: Reading
) -> Iterator[Discovery]:
    """The chats of a file. What was known of it is not read again, but for the last chat, which may have grown."""
    try:
        status = path.stat()
    except OSError:  # gone since it was listed, or not there yet
        return
    if not S_ISREG(status.st_mode):
        return
    file = File(status.st_mtime_ns, status.st_size, path)
    last = known[chats[-1].path(path)] if chats else None
    if last is not None and (last.offset + last.size, last.mtime_ns) == (file.size, file.mtime_ns):
        yield from (Unchanged(chat.path(path)) for chat in chats)
        return
    found = 0
    with open_stored(path, reading=reading) as stored:
        first = chats[-1] if last is not None and last.offset + last.size <= file.size else None
        if first is not None and stands(stored, first):
            yield from (Unchanged(chat.path(path)) for chat in chats[:-1])
        else:
            first = None
            stored.seek(0)
        for section in sections(stored, first):
            found += 1
            yield _look(file, section, known, max_line_bytes, reading)
    if not found and file.size:
        raise RolloutError("it holds no chat")


def _look(
    file: File, section: Section, known: Mapping[str, FileStamp], max_line_bytes: int, reading: Reading
) -> Discovery:
    chat = section.chat
    rollout = chat.path(file.path)
    stamp = known.get(rollout)
    if stamp is not None and stamp.size == section.size:
        return Unchanged(rollout)
    with open_items(
        Path(rollout), max_line_bytes=max_line_bytes, stop_after_bytes=reading.long_head_bytes, reading=reading
    ) as items:
        preview = preview_of(items, reading=reading)
        records = items.decoder
    modified = file.mtime_ns // 1_000_000
    created = parse_local_time(chat.started) or modified
    thread = Thread(
        thread_id=chat.thread_id(file.path),
        agent=AGENT,
        rollout_path=rollout,
        source="exec" if records.scripted else "cli",
        cwd=_cwd(file.path),
        created_at_ms=created,
        updated_at_ms=max(_ended_ms(section, stamp, records.inputs) or modified, created),
        preview=preview,
        cli_version=records.version,
    )
    return Found(thread, FileStamp(size=section.size, mtime_ns=file.mtime_ns, offset=chat.offset))


def _ended_ms(section: Section, stamp: FileStamp | None, inputs: Inputs) -> int | None:
    """The time of the last prompt, or of the beginning; None: of the last chat the file tells it.

    A chat that went on since the last look did so before the next one began.
    """
    if section.next_started is None:
        return None
    following = parse_local_time(section.next_started)
    if stamp is not None or following is None:
        return following
    return inputs.last_before(following) or parse_local_time(section.chat.started)


def _cwd(path: Path) -> str:
    """By default the history lies at the root of its repository; elsewhere it tells of no folder."""
    return str(path.parent) if path.name == _NAME else ""
