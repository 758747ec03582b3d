"""Takes the memory out of a session again, so that it never becomes evidence for itself.

What goes: calls of our own tools with their results, commands that look into a memory folder (ours or Codex's) or ask
`stillroom` for it, citations, and sentences of the assistant that the session was told shortly before. What a person
says stays, whatever they were told: it is their word now.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from stillroom.pattern import late
from stillroom.sessions.fragments import MEMORY_TAG, holds_memory_tag
from stillroom.sessions.item import MESSAGES, UNREADABLE, Item
from stillroom.sessions.prefilter import holder

# --- What a session was told out of the memory, and whether a sentence only says it again.

#: Of one session; what it is told at its start has a few hundred lines, and what it reads rarely more.
_MAX_LINES = 4000
_MAX_LINE_CHARS = 2000
#: A shorter sentence says too little to be anybody's.
_MIN_WORDS = 4
#: So much of a sentence in one line of the memory, and it is that line in few other words.
_SHARE = 0.75
# Chinese, Japanese and Korean are written without spaces: every letter counts as a word.
_WORD = late(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_BLOCK = late(r"<stillroom-memory\b[^>]*>(.*?)(?:</stillroom-memory\s*>|\Z)", re.DOTALL)
_SENTENCE = late(r"(?<=[.!?])\s+|(?<=[。！？])|\n")


class Told:
    """Grows as the session is read; a line counts from when it was told."""

    def __init__(self) -> None:
        self._lines = 0
        self._seen: set[int] = set()
        #: For each word, the lines that hold it.
        self._holders: dict[str, list[int]] = {}

    def __bool__(self) -> bool:
        return self._lines > 0

    def add(self, text: str) -> None:
        """The session was shown this part of the memory. What is beyond the limits is forgotten."""
        for line in text.splitlines():
            words = frozenset(_words(line[:_MAX_LINE_CHARS]))
            if len(words) < _MIN_WORDS or self._lines >= _MAX_LINES or hash(words) in self._seen:
                continue
            self._seen.add(hash(words))
            for word in words:
                self._holders.setdefault(word, []).append(self._lines)
            self._lines += 1

    def add_line(self, line: bytes) -> None:
        """A line of a session file, of which the blocks of our tag are taken."""
        if MEMORY_TAG not in line:
            return
        try:
            value = msgspec.json.decode(line)
        except UNREADABLE:
            return
        for text in texts_of(value):
            for block in _BLOCK.findall(text):
                if "\n" in block:  # else somebody's words about the tag
                    self.add(block)

    def add_lines(self, lines: list[bytes]) -> None:
        """The same of many."""
        if holds_memory_tag(b"".join(lines)):  # rarely: asking of each line takes longer than joining all
            for line in lines:
                self.add_line(line)

    def says(self, sentence: str) -> bool:
        """Whether most of the sentence stands in one line that was told."""
        words = frozenset(_words(sentence[:_MAX_LINE_CHARS]))
        if len(words) < _MIN_WORDS or not self._lines:
            return False
        found: Counter[int] = Counter()
        for word in words:
            found.update(self._holders.get(word, ()))
        return bool(found) and max(found.values()) >= _SHARE * len(words)

    def without(self, text: str) -> str:
        """`text` without the sentences that were told; the same string when there are none."""
        if not self._lines:
            return text
        kept: list[str] = []
        start = 0
        for end in [*(match.end() for match in _SENTENCE.finditer(text)), len(text)]:
            if not self.says(text[start:end]):
                kept.append(text[start:end])
            start = end
        result = "".join(kept)
        return text if len(result) == len(text) else result


def texts_of(value: object) -> Iterator[str]:
    """Every string in a decoded value; JSON in a string is looked into as well."""
    if isinstance(value, str):
        yield from _texts_in(value)
    elif isinstance(value, list):
        for entry in value:
            yield from texts_of(entry)
    elif isinstance(value, dict):
        for entry in value.values():
            yield from texts_of(entry)


def _texts_in(text: str) -> Iterator[str]:
    if text.lstrip().startswith(("{", "[")):
        try:
            yield from texts_of(msgspec.json.decode(text))
            return
        except UNREADABLE:
            pass
    yield text


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


#: Calls whose output may still come; a client has a handful at a time.
_MAX_PENDING = 1000
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
#: How clients name a tool of our server: `mcp__stillroom__read`, `stillroom_read`, `stillroom-read`, namespace and all.
_OURS = re.compile(r"(?:^|[^a-z])stillroom(?:$|[^a-z])", re.IGNORECASE)
_ASKS = (
    r"(?<![\w.-])stillroom(?:\.exe)?\s+(?:recall|search|read|list|note|log|diff|undo|redo|explain|why|review|forget"
    r"|export)\b"
)
_END = r"(?![\w-])"  # nothing that only begins alike
_PLACES = (
    r"\.(?:stillroom|codex)[/\\]+memories" + _END,
    r"\$\{?(?:STILLROOM|CODEX)_HOME\}?[\"']?[/\\]+memories" + _END,
)
_CITATION = re.compile(r"<oai-mem-citation>.*?(?:</oai-mem-citation>|\Z)", re.DOTALL)
_holds_name = holder(b"tillroom", by=b"llroom")
_holds_folder = holder(b"memories")
_holds_citation = holder(b"oai-mem-citation", by=b"-mem-citation")


class _Head(msgspec.Struct):
    type: str = ""
    role: str | None = None
    name: str | None = None
    namespace: str | None = None
    call_id: str | None = None


_head = msgspec.json.Decoder(_Head)
_items = msgspec.json.Decoder(list[msgspec.Raw])


class FeedbackFilter:
    """Passes a session's items on without what came from the memory at `root`. One for each reading of a session."""

    def __init__(self, root: Path, *, user_home: Path | None = None) -> None:
        #: What the session was told; the reader of the file adds what it was told at its start.
        self.told = Told()
        self._hidden: dict[str, None] = {}
        home = user_home or os.path.expanduser("~")  # noqa: PTH111  # once a session: a `Path` takes five times as long
        self._place, self._holds_root = _named(str(root), str(home))

    def items(self, items: Iterable[Item]) -> Iterator[Item]:
        """Those that are evidence, rewritten where part of one is not."""
        for item in items:
            raw = self._kept(item.raw)
            if raw is not None:
                yield item if raw is item.raw else msgspec.structs.replace(item, raw=raw)

    def texts(self, texts: Iterable[bytes]) -> Iterator[bytes]:
        """The same of items as `ItemStream.texts` gives them: several at a time, joined by commas."""
        for text in texts:
            if not self._concerns(text):
                yield text
                continue
            try:
                several = [bytes(raw) for raw in _items.decode(b"[" + text + b"]")]
            except UNREADABLE:
                yield text
                continue
            kept = [raw for each in several if (raw := self._kept(each)) is not None]
            if kept:
                yield b",".join(kept)

    def _concerns(self, raw: bytes) -> bool:
        return bool(self.told or self._hidden) or self._names_memory(raw)

    def _names_memory(self, raw: bytes) -> bool:
        # Every byte of a session is looked at, and looking for four words takes less than for one expression.
        return (
            _holds_name(raw)
            or (_holds_folder(raw) and (b"/memories" in raw or b"\\memories" in raw))
            or _holds_citation(raw)
            or self._holds_root(raw)
        )

    def _kept(self, raw: bytes) -> bytes | None:
        if not self._concerns(raw):
            return raw
        try:
            head = _head.decode(raw)
            if head.type in _CALLS:
                return None if self._hides(head, raw) else raw
            if head.type.endswith("_output"):
                return self._of_output(head, raw)
            if head.role == "assistant" or head.type == "agent_message":
                return self._rewritten(raw, head, self._said)
        except UNREADABLE:
            pass
        return raw

    def _hides(self, head: _Head, raw: bytes) -> bool:
        ours = _OURS.search(head.name or "") or _OURS.search(head.namespace or "")
        if not ours and not any(map(self._place.search, _asked(raw))):
            return False
        if head.call_id:
            self._hidden[head.call_id] = None
            if len(self._hidden) > _MAX_PENDING:
                del self._hidden[next(iter(self._hidden))]
        return True

    def _of_output(self, head: _Head, raw: bytes) -> bytes | None:
        if head.call_id in self._hidden:
            del self._hidden[head.call_id]
            for text in texts_of(msgspec.json.decode(raw)):
                self.told.add(text)
            return None
        return self._rewritten(raw, head, self._printed) if self._names_memory(raw) else raw

    def _printed(self, text: str) -> str:
        """Without the lines that a search through many folders found in the memory's."""
        if not self._place.search(text):
            return text
        lines = text.split("\n")
        found = [line for line in lines if self._place.search(line)]
        self.told.add("\n".join(found))
        return "\n".join(line for line in lines if not self._place.search(line))

    def _said(self, text: str) -> str:
        return self.told.without(_CITATION.sub("", text) if "<oai-mem-citation>" in text else text)

    def _rewritten(self, raw: bytes, head: _Head, change: Callable[[str], str]) -> bytes | None:
        before = msgspec.json.decode(raw)
        after = _changed(before, change)
        if after == before:
            return raw
        if head.type in MESSAGES and not _says_anything(after.get("content")):
            return None
        return msgspec.json.encode(after)


def _changed(value: Any, change: Callable[[str], str]) -> Any:  # Any: decoded JSON
    """The value with its content changed; what it is called and where it belongs stays."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_changed(entry, change) for entry in value]
    if isinstance(value, dict):
        return {key: _changed(entry, change) if key in _SPOKEN else entry for key, entry in value.items()}
    return value


_SPOKEN = frozenset({"content", "text", "output", "tools"})


def _says_anything(content: object) -> bool:
    parts = content if isinstance(content, list) else [content]
    texts = (part.get("text", part) if isinstance(part, dict) else part for part in parts)
    return any(not isinstance(text, str) or text.strip() for text in texts)


def _asked(raw: bytes) -> Iterator[str]:
    """What a call asks for; of a patch which files it is about, not what it writes into them."""
    for text in texts_of(msgspec.json.decode(raw)):
        if "*** Begin Patch" in text:
            yield from (line for line in text.splitlines() if line.startswith("*** "))
        else:
            yield text


@cache
def _named(root: str, user_home: str) -> tuple[re.Pattern[str], Callable[[bytes], bool]]:
    """What finds the folder in a command, and what tells whether a text has the end of every way to name it."""
    folder, home = Path(root), Path(user_home)
    end = Path("/", folder.relative_to(home)) if _is_below(folder, home) else folder
    place = re.compile("|".join((*_PLACES, *_ways_to(folder, home), _ASKS)))
    return place, holder(str(end).encode("utf-8", "replace"))


def _ways_to(root: Path, user_home: Path) -> Iterator[str]:
    """Patterns of how a command names the folder."""
    yield re.escape(str(root)) + _END
    if _is_below(root, user_home):
        yield r"(?:~|\$HOME|\$\{HOME\})[\"']?/" + re.escape(str(root.relative_to(user_home))) + _END


def _is_below(folder: Path, other: Path) -> bool:
    return folder.is_relative_to(other) and folder != other
