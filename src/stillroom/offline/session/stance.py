"""What a message as a whole says to what stands before it: no, not so, or take it back."""

from __future__ import annotations

from stillroom.offline import cues
from stillroom.offline.session import kinds
from stillroom.offline.session.turns import Turn
from stillroom.offline.text import words


def rejects(turn: Turn) -> bool:
    return bool(turn.sentences) and cues.opens("rejection", turn.sentences[0], turn.spoken) > 0


def denies(turn: Turn, before: Turn) -> bool:
    """Whether the user says that what was believed is not so, or says no to a guess that nothing was done about."""
    if not turn.sentences:
        return False
    guessed = not before.edited and cues.has("hypothesis", before.last_reply[-1200:], before.spoken)
    return cues.has("disproved", turn.sentences[0], turn.spoken) or (guessed and rejects(turn))


def takes_back(turn: Turn) -> bool:
    """Whether what the user says first to the work before is that they want it back as it was."""
    return bool(turn.messages) and any(
        cues.has("takeback", s, turn.spoken)
        and not kinds.is_passing(s, turn.spoken)
        and not cues.has("perishable", s, turn.spoken)
        and not s.endswith(("?", "？"))
        and not cues.opens("trial", cues.without_opener(s, turn.spoken), turn.spoken)
        and words.weight(words.content(s)) <= 12
        for s in turn.messages[0][:3]
    )


def complains_only(turn: Turn) -> bool:
    """Whether the user says that it still fails: what is taken out then is the assistant's own guess."""
    return cues.has("broken", turn.text[:300], turn.spoken) and not takes_back(turn)
