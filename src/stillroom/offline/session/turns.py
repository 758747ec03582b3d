"""A session as turns: what the user typed, and everything until they typed again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from stillroom.offline import cues
from stillroom.offline.sizes import MAX_MESSAGE_CHARS, MAX_TURNS
from stillroom.offline.text import handed, sentences
from stillroom.offline.text.words import shorten
from stillroom.rollouts.events import Ran, Said

_PASTED_CHARS = 120
"""Of a pasted log, the first line up to this is a name for the task."""
_INJECTED = ("# AGENTS.md instructions", "<user_instructions>", "<environment_context>", "<skill>", "<turn_aborted>")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the user and what followed it."""

    number: int
    text: str  #: typed by the user, pastes removed
    messages: tuple[tuple[str, ...], ...]  #: sentences, message by message
    spoken: tuple[str, ...]  #: languages whose cues apply
    steps: tuple[Said | Ran, ...]
    pasted: str = ""  #: the first line of a message that was nothing but a paste

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(sentence for message in self.messages for sentence in message)

    @property
    def runs(self) -> list[Ran]:
        return [step for step in self.steps if isinstance(step, Ran)]

    @property
    def replies(self) -> list[Said]:
        """What the assistant itself said; other agents and the harness are left out."""
        return [step for step in self.steps if isinstance(step, Said) and step.who == "assistant"]

    @property
    def last_reply(self) -> str:
        replies = self.replies
        finals = [reply for reply in replies if reply.final]
        return (finals or replies)[-1].text if replies else ""

    @property
    def edited(self) -> list[str]:
        return [edit.path for run in self.runs if run.ok is not False for edit in run.edits]


def turns_of(events: Sequence[Said | Ran]) -> list[Turn]:
    """The turns of a session. What stands before the first message of the user belongs to no turn and is dropped.

    A session in which nobody but agents spoke, as in an evaluation, is one turn without words: nothing in it is a wish.
    """
    groups: list[_Group] = []
    for event in events:
        if isinstance(event, Said) and event.who == "user":
            if not event.text.strip() or event.text.lstrip().startswith(_INJECTED):
                continue
            # Two messages in a row are one: nobody acted between them.
            if not groups or groups[-1].steps:
                groups.append(_Group())
            if typed := _typed(event.text):
                groups[-1].typed.append(typed)
            else:
                # A log without a word of the user's own is a message too: what follows answers it.
                groups[-1].pasted = event.text.strip().split("\n", 1)[0]
        elif groups:
            groups[-1].steps.append(event)
    if not groups and any(isinstance(event, Said) and event.who == "agent" for event in events):
        groups = [_Group(steps=list(events))]
    if len(groups) > MAX_TURNS:
        groups = groups[: MAX_TURNS // 2] + groups[-MAX_TURNS // 2 :]
    replies = (step.text[:400] for group in groups[:10] for step in group.steps if isinstance(step, Said))
    session = cues.detect(
        "\n".join(text[:400] for group in groups[:40] for text in group.typed), cues.detect("\n".join(replies))
    )
    return [
        Turn(
            number=number,
            text="\n\n".join(group.typed),
            messages=tuple(tuple(sentences.split(text)) for text in group.typed),
            spoken=cues.spoken_in("\n".join(group.typed), session),
            steps=tuple(group.steps),
            pasted="" if group.typed else shorten(group.pasted, _PASTED_CHARS),
        )
        for number, group in enumerate(groups)
    ]


@dataclass(slots=True)
class _Group:
    """A turn in the making."""

    typed: list[str] = field(default_factory=list)
    steps: list[Said | Ran] = field(default_factory=list)
    pasted: str = ""


def _typed(text: str) -> str:
    text = text[:MAX_MESSAGE_CHARS].replace("\r\n", "\n")
    if "\n" in text.strip():
        text = handed.without_handed_on(text, cues.spoken_in(text))
    return sentences.without_pastes(text).strip()
