"""A session as turns: what the user typed, and everything until they typed again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stillroom.offline import cues
from stillroom.offline.sizes import MAX_MESSAGE_CHARS, MAX_TURNS
from stillroom.offline.text import handed, sentences
from stillroom.rollouts.events import Ran, Said

_INJECTED = ("# AGENTS.md instructions", "<user_instructions>", "<environment_context>", "<skill>", "<turn_aborted>")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the user and what followed it."""

    number: int
    text: str  #: typed by the user, pastes removed
    messages: tuple[tuple[str, ...], ...]  #: sentences, message by message
    spoken: tuple[str, ...]  #: languages whose cues apply
    steps: tuple[Said | Ran, ...]

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
    groups: list[tuple[list[str], list[Said | Ran]]] = []
    for event in events:
        if isinstance(event, Said) and event.who == "user":
            typed = _typed(event.text)
            if not typed:
                continue
            # Two messages in a row are one: nobody acted between them.
            if groups and not groups[-1][1]:
                groups[-1][0].append(typed)
            else:
                groups.append(([typed], []))
        elif groups:
            groups[-1][1].append(event)
    if not groups and any(isinstance(event, Said) and event.who == "agent" for event in events):
        groups = [([], list(events))]
    if len(groups) > MAX_TURNS:
        groups = groups[: MAX_TURNS // 2] + groups[-MAX_TURNS // 2 :]
    replies = (step.text[:400] for _, steps in groups[:10] for step in steps if isinstance(step, Said))
    session = cues.detect(
        "\n".join(text[:400] for texts, _ in groups[:40] for text in texts), cues.detect("\n".join(replies))
    )
    return [
        Turn(
            number=number,
            text="\n\n".join(texts),
            messages=tuple(tuple(sentences.split(text)) for text in texts),
            spoken=cues.spoken_in("\n".join(texts), session),
            steps=tuple(steps),
        )
        for number, (texts, steps) in enumerate(groups)
    ]


def _typed(text: str) -> str:
    if text.lstrip().startswith(_INJECTED[:1]):
        return ""
    text = text[:MAX_MESSAGE_CHARS].replace("\r\n", "\n")
    if "\n" in text.strip():
        text = handed.without_handed_on(text, cues.spoken_in(text))
    return sentences.without_pastes(text).strip()
