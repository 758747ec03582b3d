"""The lines of a Claude Code session as the items that memory keeps, each message once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.agents.claude_code.calls import Form, read_call, read_result, size_note
from stillroom.rollouts.agents.claude_code.record import (
    ATTACHMENTS,
    BOOKKEEPING,
    QUEUED,
    SYSTEM,
    Block,
    Record,
    is_passed_over,
    parse_record,
    text_of,
)
from stillroom.rollouts.agents.claude_code.speech import Words, is_typed, read_words
from stillroom.rollouts.agents.made import Made, said_by_agent, said_by_user, superseded_text
from stillroom.rollouts.agents.talk import NOTHING, Past
from stillroom.rollouts.fragments import clean, is_marked
from stillroom.rollouts.item import MESSAGES, Item, valid_utf8
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.timestamps import parse_timestamp

# Calls whose result may still come; a client has a handful at a time.
_PENDING_CALLS = 1000
# Prompts typed while the assistant worked, of which the client may write a second record.
_QUEUED_PROMPTS = 8
# Blocks that are known and hold nothing for memory.
_PASSED_OVER = frozenset(
    {"thinking", "redacted_thinking", "web_search_tool_result", "web_fetch_tool_result", "fallback"}
)
_CALLS = frozenset({"tool_use", "server_tool_use"})
_DATA = frozenset({"image", "document"})
_SAID_BY_ASSISTANT = b'{"type":"message","role":"assistant","content":[{"type":"output_text","text":%b}]}'
_encode = msgspec.json.Encoder().encode


class Records:
    """Decodes the lines of one file, in their order, and counts into `stats`. Nothing that a line holds raises.

    Prompts that were taken back and records that an earlier session holds are known by their ids. In the file
    `of_agent` the prompts are another agent's.
    """

    def __init__(
        self,
        stats: ReadStats,
        *,
        of_agent: bool = False,
        past: Past = NOTHING,
        reading: Reading = READING,
    ) -> None:
        self.stats = stats
        self._of_agent = of_agent
        self._superseded = past.superseded
        self._seen = set(past.inherited)
        self._max_seen = len(past.inherited) + reading.remembered_records
        self._forms: dict[str, Form] = {}
        self._queued: deque[str] = deque(maxlen=_QUEUED_PROMPTS)

    def items(self, lines: list[bytes], line_no: int) -> Iterator[Item]:
        """The items of `lines`, of which the first has the number `line_no`."""
        made: list[Made] = []
        places: list[tuple[Any, int]] = []
        for number, line in enumerate(lines, line_no):
            if (record := self._record(line)) is not None and (read := self._read(record)):
                made += read
                places += [(record.timestamp, number)] * len(read)
        for item, (time, number) in zip(self._finished(made), places, strict=True):
            if item is not None:
                at = parse_timestamp(time.encode()) if isinstance(time, str) else None
                yield Item(item.type, item.role, item.raw, at, number)

    def joined(self, lines: list[bytes]) -> bytes:
        """The same items, but only their `raw`, with commas between."""
        made: list[Made] = []
        for line in lines:
            if (record := self._record(line)) is not None:
                made += self._read(record)
        return b",".join([item.raw for item in self._finished(made) if item is not None])

    def may_matter(self, beginning: bytes) -> bool:
        """False only if the first bytes of a line say that it holds nothing for memory."""
        return not is_passed_over(beginning)

    def _record(self, line: bytes) -> Record | None:
        """The record that a line holds, if memory may keep something of it and it was not here before."""
        if is_passed_over(line):
            if line[-2:] != b"}\n" and not line.rstrip().endswith(b"}"):
                self._count_bad()
            return None
        if not line or line.isspace():
            return None
        record = parse_record(line)
        if record is None:
            self._count_bad()
        elif isinstance(record.uuid, str) and not self._is_new(record.uuid):
            self.stats.drop("seen before")
            return None
        return record

    def _read(self, record: Record) -> list[Made]:
        """What is said and done in a record."""
        try:
            match record.type:
                case "assistant" | "user" if record.is_sidechain and not self._of_agent:
                    # Older clients write the talk with a sub-agent into the session's own file.
                    self.stats.drop("sub-agent")
                case "assistant":
                    return self._answer(record)
                case "user":
                    return self._user(record)
                case "attachment":
                    return self._attached(record)
                case "system":
                    if record.subtype not in SYSTEM:
                        self.stats.count_unknown(f"system/{record.subtype}")
                case kind:
                    if kind not in BOOKKEEPING:
                        self.stats.count_unknown(str(kind))
        except TypeError:  # a list where a name should be: it has no hash
            self._count_bad()
        return []

    # --- assistant

    def _answer(self, record: Record) -> list[Made]:
        message = record.message
        if message is None or record.is_api_error_message or message.model == "<synthetic>":
            self.stats.drop("written by the client")
            return []
        if isinstance(message.content, str):
            return [_said_by_assistant(_encode(message.content))] if message.content.strip() else []
        made: list[Made] = []
        for block in message.content:
            if block.type == "text":
                raw = bytes(block.text)
                if raw.startswith(b'"') and (len(raw) > 100 or text_of(block.text).strip()):
                    made.append(_said_by_assistant(raw))
            elif block.type in _CALLS:
                if (call := self._call(block, record)) is not None:
                    made.append(call)
            elif block.type not in _PASSED_OVER:
                self.stats.count_unknown(f"assistant/{block.type}")
        return made

    def _call(self, block: Block, record: Record) -> Made | None:
        if not isinstance(block.id, str) or not self._is_new(f"call {block.id}"):
            self.stats.drop("seen before")
            return None
        called = read_call(block, record)
        self._forms[block.id] = called.form
        if len(self._forms) > _PENDING_CALLS:
            del self._forms[next(iter(self._forms))]
        return called.item

    # --- user

    def _user(self, record: Record) -> list[Made]:
        content = record.message.content if record.message is not None else ""
        if isinstance(content, list) and "tool_result" in [block.type for block in content]:
            made: list[Made] = []
            for block in content:
                if block.type == "tool_result":
                    made += self._result(block, record)
                else:
                    self.stats.drop("beside a result")
            return made
        if record.is_compact_summary:
            self.stats.drop("compaction summary")
        elif record.is_meta:
            self.stats.drop("written by the client")
        else:
            return self._prompt(record, content)
        return []

    def _prompt(self, record: Record, content: list[Block] | str) -> list[Made]:
        said = list(spoken(content))
        parts = [words.text for words in said if self._is_kept(words, record)]
        made = [said_by_agent(words.text) for words in said if self._is_of_agent(words)]
        if not parts:
            if not made:
                self.stats.drop("nothing said")
            return made
        if parts[0] in self._queued:
            self._queued.remove(parts[0])
            self.stats.drop("seen before")
            return made
        if hash(record.uuid) in self._superseded:
            parts = [superseded_text(*parts)]
            self.stats.superseded += 1
        images = [] if isinstance(content, str) else [block for block in content if block.type in _DATA]
        self.stats.images += len(images)
        return [*made, said_by_user(*parts, *(size_note(block) for block in images))]

    def _result(self, block: Block, record: Record) -> list[Made]:
        called = block.tool_use_id
        if not isinstance(called, str) or not self._is_new(f"result {called}"):
            self.stats.drop("seen before")
            return []
        result = read_result(block, record, self._forms.pop(called, None))
        made = [result.item]
        if result.refusal:
            made.append(said_by_agent(result.refusal) if self._of_agent else said_by_user(result.refusal))
        return made

    def _attached(self, record: Record) -> list[Made]:
        """A prompt that was typed while the assistant worked is kept beside the talk."""
        attachment = record.attachment
        kind = attachment.type if attachment is not None else None
        made: list[Made] = []
        if attachment is None or kind != QUEUED:
            if kind not in ATTACHMENTS:
                self.stats.count_unknown(f"attachment/{kind}")
        elif record.is_sidechain and not self._of_agent:
            self.stats.drop("sub-agent")
        else:
            for words in spoken(attachment.prompt):
                if self._is_of_agent(words):
                    made.append(said_by_agent(words.text))
                elif self._is_kept(words, record):
                    self._queued.append(words.text)
                    made.append(said_by_user(words.text))
        return made

    # --- both

    def _is_of_agent(self, words: Words) -> bool:
        """In a sub-agent's file what would be a person's words is the task that another agent gave."""
        return words.who == "agent" or (words.who == "user" and self._of_agent)

    def _is_kept(self, words: Words, record: Record) -> bool:
        return not self._is_of_agent(words) and (words.who == "harness" or is_typed(record))

    def _finished(self, made: list[Made]) -> Sequence[Made | None]:
        """In valid UTF-8, without the memory that was shown to the session, and without inline images; None where
        nothing is left."""
        finished: list[Made | None] = [*made]
        joined = b",".join([item.raw for item in made])  # what is rare is looked for in all of them at once
        if is_marked(joined) or valid_utf8(joined) is not joined:
            finished = [self._cleaned(item) for item in made]
        kinds = [item.type for item in finished if item is not None]
        self.stats.kept += len(kinds)
        self.stats.messages += sum(map(kinds.count, MESSAGES))
        return finished

    def _cleaned(self, item: Made) -> Made | None:
        raw = valid_utf8(item.raw)
        if not is_marked(raw):
            return Made(item.type, item.role, raw)
        try:
            cleaned, images = clean(raw, user=item.role == "user")
        except (msgspec.DecodeError, RecursionError):
            self._count_bad()
            return None
        self.stats.images += images
        return Made(item.type, item.role, cleaned) if cleaned is not None else None

    def _is_new(self, key: str) -> bool:
        number = hash(key)
        seen = self._seen
        if number in seen:
            return False
        if len(seen) < self._max_seen:
            seen.add(number)
        return True

    def _count_bad(self) -> None:
        if not self.stats.torn:
            self.stats.bad_lines += 1


def spoken(content: list[Block] | str) -> Iterator[Words]:
    """What is said in the content of a prompt, and by whom."""
    for text in [content] if isinstance(content, str) else [text_of(block.text) for block in content]:
        if text and (words := read_words(text)) is not None:
            yield words


def _said_by_assistant(text: bytes) -> Made:
    return Made("message", "assistant", _SAID_BY_ASSISTANT % text)
