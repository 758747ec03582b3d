"""What a version of the memory folder says of how it was made: `Name: value` lines at the end of its message."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stillroom.pattern import late

RUN = "Stillroom-Run"
ENGINE = "Stillroom-Engine"
"""`offline`, or the model's `provider:name`."""
PROMPT = "Stillroom-Prompt"
"""Which words the model was sent: a hash of all prompts of phase 2."""
FALLBACK = "Stillroom-Fallback"
"""The model whose place the offline engine took in this run, because it failed."""
RELEASE = "Stillroom-Release"
"""The release of Stillroom, which is that of the offline engine too."""

LEFT = "Left: "
"""Begins a line about what the memory does not rest on any more."""

UNDOES = "Stillroom-Undoes"
"""The run that an undo took back, with everything after it."""

EDITS = "Edits since the last consolidation"
"""The subject of a version that holds what was edited by hand."""
REVIEWED = "Reviewed by a person"
"""Stands in the message of a result that waited for one, who may have edited it."""

_LINE = late(r"^(Stillroom-[A-Za-z]+): (\S.*)$", re.MULTILINE)


def with_trailers(message: str, trailers: Mapping[str, str]) -> str:
    """The message with these lines at its end; those that it ends with already stay in one block with them."""
    lines = [f"{name}: {' '.join(value.split())}" for name, value in trailers.items() if value.strip()]
    if not lines:
        return message
    body = message.rstrip("\n")
    gap = "\n" if _LINE.fullmatch(body.rpartition("\n")[2]) else "\n\n"
    return body + gap + "\n".join(lines) + "\n"


def trailers_of(message: str) -> dict[str, str]:
    """All of them, by name; of two of one name the last."""
    return dict(_LINE.findall(message))
