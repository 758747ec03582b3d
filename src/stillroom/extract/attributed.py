"""A model's draft with what each of its lines rests on, and a mark at those that are held back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from stillroom.lanes import Lane
from stillroom.sessions.attribution import Attributor
from stillroom.sessions.events import Ran, Said
from stillroom.store.records import LineSource, Stage1Draft

_SPEAKERS: dict[Lane, Literal["user", "assistant", "tool"]] = {
    "user": "user",
    "agent": "assistant",
    "file": "tool",
    "tool": "tool",
    "web": "tool",
}


def attributed(draft: Stage1Draft, events: Callable[[], Sequence[Said | Ran]]) -> Stage1Draft:
    """`events` are those of the session, redacted, with the numbers of their lines; called once."""
    attributor = Attributor(events)
    found = attributor.sources(draft.raw_memory, draft.rollout_summary)
    return Stage1Draft(
        raw_memory=attributor.marked(draft.raw_memory),
        rollout_summary=attributor.marked(draft.rollout_summary),
        rollout_slug=attributor.slug(draft.rollout_slug),
        sources=tuple(
            LineSource(
                line=each.line,
                speaker=_SPEAKERS[each.found.lane],
                line_no=each.found.line_no,
                quote=each.found.quote,
            )
            for each in found
        ),
    )
