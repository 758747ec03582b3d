"""How a task ended: what the user said of it, what the last check said, what the assistant left open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from stillroom.offline import cues
from stillroom.offline.session import checks
from stillroom.offline.session.findings import Found
from stillroom.offline.session.turns import Turn

Outcome = Literal["success", "partial", "fail", "uncertain"]


def of(turns: Sequence[Turn], after: Turn | None, found: Found) -> Outcome:
    """The outcome of a task. `after`: the user's message that follows it, if any."""
    numbers = {turn.number for turn in turns}
    verdicts = [
        checks.verdict(run) for turn in turns for run in turn.runs if run.command and not checks.looks_only(run)
    ]
    edited = any(turn.edited for turn in turns)
    open_points = [o for o in found.open if o.turn in numbers and o.turn == turns[-1].number]
    words_of_user = [turn.text[:200] for turn in (*turns[1:], *([after] if after else []))]
    spoken = turns[-1].spoken
    last_word = words_of_user[-1] if words_of_user else ""
    if last_word and cues.has("broken", last_word, spoken):
        if not turns[-1].runs and after is None:
            return "fail"
        return "success" if verdicts and verdicts[-1] == "passed" and edited else "partial"
    if verdicts and verdicts[-1] == "failed":
        return "partial" if edited or "passed" in verdicts else "fail"
    if open_points:
        return "partial"
    praised = bool(last_word) and cues.has("works", last_word, spoken)
    if praised or (verdicts and verdicts[-1] == "passed"):
        return "success"
    if after is not None and edited:
        return "success"
    return "partial" if edited else "uncertain"
