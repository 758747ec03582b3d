"""What one session used of memory: the messages that cite it, and the commands that read it."""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from stillroom.config import StageOne
from stillroom.recall.usage.citations import MemoryCitation, parse_memory_citation
from stillroom.recall.usage.usage_kinds import UsageKind, memories_usage_kinds_from_command, usage_kind_of_path
from stillroom.sessions.calls import Asked, Call, Output, read_call, read_output
from stillroom.sessions.item import UNREADABLE, Item
from stillroom.sessions.readers import open_thread
from stillroom.sessions.speech import said_in
from stillroom.thread import Thread

_BLOCK = b"oai-mem-citation"
_FOLDER = "memories"
_NAMES = (b"MEMORY.md", b"memory_summary.md", b"raw_memories.md", b"rollout_summaries", b"skills")
#: Calls whose output may still come; a client has a handful at a time.
_PENDING_CALLS = 100

#: Tools beside the shell that read files, by the names that the agents give them, and the argument that says where.
_FILE_TOOLS = {
    "Read": ("file_path", "path"),
    "Grep": ("path",),  # Claude Code, Kimi Code, Cursor, Letta Code
    "read": ("filePath", "path"),
    "grep": ("path",),  # OpenCode, pi
    "read_file": ("file_path", "absolute_path"),
    "search_file_content": ("dir_path", "path"),  # Gemini CLI
    "grep_search": ("path",),  # Qwen Code
    "view": ("path",),  # Copilot CLI
}

_arguments = msgspec.json.Decoder(dict[str, msgspec.Raw])
_call = msgspec.json.Decoder(Call)
_output = msgspec.json.Decoder(Output)


class Cited(NamedTuple):
    """A message that cites memory."""

    citation: MemoryCitation
    digest: bytes
    #: Of the messages of this session that cite the same, from 1; None: one more.
    nth: int | None
    at: int  #: seconds
    #: The digest that the same citation has where the agent hands it in; of one that is handed in, the message's.
    twin: bytes

    @property
    def key(self) -> tuple[bytes, int | None]:
        return self.digest, self.nth


class Looked(msgspec.Struct):
    """A command that reads memory."""

    tool: str
    kinds: tuple[UsageKind, ...]
    digest: bytes
    nth: int
    at: int  #: seconds
    #: None: the record does not tell.
    success: bool | None = None

    @property
    def key(self) -> tuple[bytes, int | None]:
        return self.digest, self.nth


class ThreadUses(msgspec.Struct):
    """What one session used."""

    cited: list[Cited] = []
    looked: list[Looked] = []
    #: The thread that it was forked from: it begins with that one's lines.
    origin: str | None = None
    read_bytes: int = 0

    @property
    def keys(self) -> set[tuple[bytes, int | None]]:
        """By which they are known in the session."""
        return {use.key for use in self.cited} | {use.key for use in self.looked}


class Folder(NamedTuple):
    """How commands may name the memory folder."""

    root: str
    variables: Mapping[str, str]


def read_uses(thread: Thread, folder: Folder, *, stage: StageOne, now: int, quick: bool = False) -> ThreadUses:
    """Search a session. Lines that can't hold a use are not decoded. Raises `RolloutError`.

    A quick search may also find what the session took over from another one.
    """
    search = _Search(thread, folder, now)
    whole = sys.maxsize if quick else None
    with open_thread(thread, max_line_bytes=stage.max_line_bytes, stop_after_bytes=whole) as items:
        for item in items.only(search.wants):
            try:
                search.read(item)
            except UNREADABLE:
                continue
        if items.stats.copied_from != thread.thread_id:
            search.uses.origin = items.stats.copied_from
        search.uses.read_bytes = items.stats.bytes
    return search.uses


def handed_in(citation: MemoryCitation, *, at: int) -> Cited:
    """A citation that the agent handed in, beside its messages."""
    message, handed = _digests(citation)
    return Cited(citation, handed, None, at, twin=message)


class _Search:
    def __init__(self, thread: Thread, folder: Folder, now: int) -> None:
        self.uses = ThreadUses()
        self._now = now
        self._thread = thread
        self._folder = folder
        self._nth: Counter[bytes] = Counter()
        self._pending: dict[str, Looked] = {}
        self.wants = _filter(folder, self._pending)

    def read(self, item: Item) -> None:
        if item.type == "message":
            if item.role == "assistant" and _BLOCK in item.raw:
                self._said(item)
        elif item.type.endswith("_output"):
            self._ended(item)
        elif item.type.endswith("_call"):
            self._asked(item)

    def _said(self, item: Item) -> None:
        text = "\n".join(text for _, text in said_in(item) or ())
        citation = parse_memory_citation(text)
        if citation is not None:
            message, handed = _digests(citation)
            self.uses.cited.append(Cited(citation, message, self._count(message), self._time(item), twin=handed))

    def _asked(self, item: Item) -> None:
        call = _call.decode(item.raw)
        asked = read_call(call)
        kinds = self._kinds(asked)
        if not kinds:
            return
        digest = _digest(asked.tool, asked.workdir or "", asked.arguments)
        looked = Looked(asked.tool, kinds, digest, self._count(digest), self._time(item))
        self.uses.looked.append(looked)
        if call.call_id and len(self._pending) < _PENDING_CALLS:
            self._pending[call.call_id] = looked

    def _kinds(self, asked: Asked) -> tuple[UsageKind, ...]:
        root, variables = self._folder
        if asked.command is not None:
            cwd = asked.workdir or self._thread.cwd
            return memories_usage_kinds_from_command(asked.command, cwd=cwd, root=root, variables=variables)
        if (names := _FILE_TOOLS.get(asked.tool)) is None:
            return ()
        arguments = _arguments.decode(asked.arguments)
        given = next((arguments[name] for name in names if name in arguments), None)
        path = msgspec.json.decode(given, type=str) if given is not None else ""
        kind = usage_kind_of_path(path, root=root, variables=variables)
        return (kind,) if kind is not None else ()

    def _ended(self, item: Item) -> None:
        output = _output.decode(item.raw)
        looked = self._pending.pop(output.call_id or "", None)
        if looked is not None:
            looked.success = read_output(output).ok

    def _count(self, digest: bytes) -> int:
        self._nth[digest] += 1
        return self._nth[digest]

    def _time(self, item: Item) -> int:
        # A clock that ran ahead must not make a memory the most recent one for years.
        return min((item.timestamp_ms or self._thread.updated_at_ms) // 1000, self._now)


def _filter(folder: Folder, pending: Mapping[str, object]) -> Callable[[bytes], bool]:
    """Whether a line may hold a use, or the output of a command that was one."""
    name = folder.root.rstrip("/").rpartition("/")[2]
    # A command that reads memory names its folder. Where that may be called anything, the names in it are looked for.
    needles = (_FOLDER.encode(),) if name == _FOLDER else _NAMES

    def wants(line: bytes) -> bool:
        if _BLOCK in line:
            return True
        for needle in needles:
            if needle in line:
                return True
        return bool(pending) and any(call_id.encode("utf-8", "replace") in line for call_id in pending)

    return wants


def _digests(citation: MemoryCitation) -> tuple[bytes, bytes]:
    """Equal for citations that say the same: in a message, and handed in."""
    entries = [(entry.path, entry.line_start, entry.line_end, entry.note) for entry in citation.entries]
    said = repr((entries, citation.rollout_ids))
    return _digest("message", said), _digest("handed in", said)


def _digest(*parts: str) -> bytes:
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).digest()
