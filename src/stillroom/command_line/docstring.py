"""What a docstring tells of a command: a summary, more about it, and what each parameter means. All in Markdown."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field

_PARAMETERS = re.compile(r"^Parameters\n-+\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Docstring:
    """The parts of a docstring, without line breaks inside of paragraphs."""

    summary: str
    #: Paragraphs and examples.
    more: str = ""
    meanings: dict[str, str] = field(default_factory=dict)


def read_docstring(text: str) -> Docstring:
    """The parts. Meanings stand under `Parameters`, each indented below the name of its parameter."""
    about, *listed = _PARAMETERS.split(inspect.cleandoc(text), maxsplit=1)
    summary, _, more = about.strip().partition("\n\n")
    lines: dict[str, list[str]] = {}
    name = ""
    for line in listed[0].splitlines() if listed else ():
        if line and not line.startswith(" "):
            name = line
        elif line:
            lines.setdefault(name, []).append(line.strip())
    meanings = {name: " ".join(each) for name, each in lines.items()}
    return Docstring(" ".join(summary.split()), more, meanings)
