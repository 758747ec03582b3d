"""The messages of a sample of an evaluation as the items that memory keeps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.agents.chat_parts import ChatDecoder, Message, role_of
from stillroom.rollouts.agents.decoder import text_of
from stillroom.rollouts.agents.made import Made, said_by_agent
from stillroom.rollouts.item import UNREADABLE
from stillroom.rollouts.stats import ReadStats

#: Who typed a message that is the user's: a person who watched the evaluation.
_OPERATOR = "operator"
_REFERENCE = re.compile(rb"attachment://([0-9a-f]{8,64})")
_LEFT_OUT = b"[attachment left out]"
# Of what the attachments of one message may add to it.
_MAX_ATTACHED_BYTES = 4 * 1024 * 1024
_GRADES = {"C": "C (correct)", "I": "I (incorrect)", "P": "P (partially correct)", "N": "N (no answer)"}
_EXPLANATION_CHARS = 500


class _Error(msgspec.Struct):
    message: Any = None


class _Sent(Message):
    source: Any = None
    error: _Error | None = None
    #: Ours: what the sample was worth, put behind its messages.
    outcome: Any = None


class Score(msgspec.Struct):
    """What a scorer gave."""

    value: Any = None
    explanation: Any = None


class Outcome(msgspec.Struct):
    """The fields of a sample that tell how it ended."""

    scores: dict[str, Score] | None = None
    error: _Error | None = None


_sent = msgspec.json.Decoder(_Sent)
_outcome = msgspec.json.Decoder(Outcome)


class Records(ChatDecoder):
    """Decodes messages, one a line. `load` is asked for the sample's attachments when one is first met."""

    def __init__(
        self, stats: ReadStats, *, load: Callable[[], Mapping[bytes, bytes]], reading: Reading = READING
    ) -> None:
        super().__init__(stats, of_agent=True, reading=reading)
        self._load = load

    def made(self, line: bytes) -> tuple[int | None, Iterable[Made]]:
        """The items of a message."""
        sent = _sent.decode(self._with_attachments(line) if b"attachment://" in line else line)
        return None, self._made(sent)

    def _made(self, sent: _Sent) -> Iterator[Made]:
        role = role_of(sent)
        if sent.outcome is not None:
            yield said_by_agent(text_of(sent.outcome))
        elif role == "user":
            yield from self.prompt(*self.texts(sent), of_agent=sent.source != _OPERATOR)
        elif role == "tool":
            error = text_of(sent.error.message) if sent.error is not None else ""
            text = "\n".join(filter(None, [*self.texts(sent), error]))
            # A command that failed is no error to the harness.
            yield from self.result(text_of(sent.tool_call_id), text, failed=True if sent.error is not None else None)
        else:
            yield from self.message(sent)

    def _with_attachments(self, line: bytes) -> bytes:
        """Attachments are named inside of texts, and their own texts are JSON as the message is."""
        room = _MAX_ATTACHED_BYTES

        def attached(reference: re.Match[bytes]) -> bytes:
            nonlocal room
            text = self._attachments.get(reference[1])
            if text is None or len(text) > room:
                self.stats.drop("attachment left out")
                return _LEFT_OUT
            room -= len(text)
            return text

        return _REFERENCE.sub(attached, line)

    @cached_property
    def _attachments(self) -> Mapping[bytes, bytes]:
        return self._load()


def outcome_of(fields: Mapping[str, msgspec.Raw]) -> str:
    """What a sample was worth, in words; "" if nothing tells."""
    told: list[str] = []
    for name, raw in fields.items():
        try:
            outcome = _outcome.decode(b'{"%s":%s}' % (name.encode(), bytes(raw)))
        except UNREADABLE:
            continue
        told += [_scored(scorer, score) for scorer, score in (outcome.scores or {}).items()]
        if outcome.error is not None:
            told.append(f"The run of this sample broke off: {text_of(outcome.error.message)[:_EXPLANATION_CHARS]}")
    return "\n".join(told)


def _scored(scorer: str, score: Score) -> str:
    value = _GRADES.get(score.value, score.value) if isinstance(score.value, str) else score.value
    why = text_of(score.explanation).strip()
    return f"The scorer `{scorer}` gave {value}." + (f" {why[:_EXPLANATION_CHARS]}" if why else "")
