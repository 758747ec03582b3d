"""What each line rests on that a consolidation worded anew: matched once, when the result is published."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from stillroom.lanes import line_key
from stillroom.store.records import Stage1Output

#: So near to a line of a session's memory, of 100, and a line says what that one says.
NEAR = 75.0
_BULLET = re.compile(r"^\s*(?:[-*]|\d+\.)\s+(.*\S)")
#: What begins with a command is about that command.
_CODE = re.compile(r"`[^`]+`")
_NEAR_OF_COMMAND = 50.0
_LEAST_CHARS = 20


def match_sources(texts: Iterable[str], outputs: Sequence[Stage1Output]) -> Mapping[str, str]:
    """For each statement in `texts` the line of the outputs that it was made of; statements that were copied, and those
    near to none, are left out.

    >>> match_sources(["- Deploys go out on Tuesdays, never on Fridays."], [])
    {}
    """
    from rapidfuzz import fuzz, process  # only a model's result needs it

    lines = {said: line_key(said) for output in outputs for said in statements(output.raw_memory)}
    known = set(lines.values())
    found: dict[str, str] = {}
    for said in dict.fromkeys(said for text in texts for said in statements(text)):
        if line_key(said) in known:
            continue
        code = _CODE.match(said)
        near = [line for line in lines if code is None or code[0] in line]
        best = process.extractOne(
            said, near, scorer=fuzz.token_set_ratio, score_cutoff=NEAR if code is None else _NEAR_OF_COMMAND
        )
        if best is not None:
            found[said] = best[0]
    return found


def statements(text: str) -> Iterator[str]:
    """The bullets of a text that are long enough to say something."""
    for line in text.splitlines():
        match = _BULLET.match(line)
        if match and len(match[1]) >= _LEAST_CHARS and "rollout_summaries/" not in line:
            yield match[1]
