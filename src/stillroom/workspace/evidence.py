"""What a model wrote into the memory folder that nothing it was given supports, by words alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from stillroom.config import StageTwo
from stillroom.lanes import Quarantined, Restated
from stillroom.rollouts.directives import is_directive
from stillroom.rollouts.terms import terms_of
from stillroom.workspace.finding import Finding
from stillroom.workspace.history import gather
from stillroom.workspace.layout import may_publish
from stillroom.workspace.scanning import Memory
from stillroom.workspace.tree import Entry, shown

#: So many of an order's telling words must stand in what it was made from.
_SUPPORTED_SHARE = 0.6
#: Bullets that only point somewhere: the validators follow them.
_POINTERS = ("rollout_summaries/", "skills/", "desc:", "learnings:")


class _Line(msgspec.Struct, frozen=True):
    path: str
    number: int
    text: str


def check_evidence(
    folder: Path,
    *,
    shown_files: Mapping[str, bytes],
    seen: Mapping[str, Entry],
    withheld: Sequence[Quarantined],
    limits: StageTwo,
    memory: Memory | None = None,
) -> list[Finding]:
    """Lines that are new in what a model wrote: those that say again what is withheld (fatal), those that nothing
    supports, and orders that nobody trusted gave. `shown_files` is what it was made from."""
    found: list[Finding] = []
    restated = Restated(withheld)
    new = list(_new_lines(folder, shown_files, seen, limits, memory))
    for line in new:
        if other := restated.by(line.text):
            said = " ".join(line.text.split())[:_SHOWN_CHARS]
            message = f"{_SOURCES[other.lane]} ({other.line_id}): take it out, also where else it stands: {said}"
            found.append(Finding("quarantine", shown(line.path), line.number, message))
    if not new:
        return found
    # What is withheld is not in it: whatever it says, somebody trusted says.
    known = {word for data in shown_files.values() for word in terms_of(data.decode("utf-8", "replace")).all}
    for line in new:
        if not line.text.lstrip().startswith(("- ", "* ")) or any(pointer in line.text for pointer in _POINTERS):
            continue
        terms = terms_of(line.text)
        if terms.names and not terms.names & known:
            found.append(Finding("evidence", shown(line.path), line.number, "no session says this", fatal=False))
        keys = terms.names if len(terms.names) >= 2 else terms.words
        if is_directive(line.text) and keys and len(keys & known) < _SUPPORTED_SHARE * len(keys):
            message = "an instruction that neither a person nor the assistant gave"
            found.append(Finding("instruction", shown(line.path), line.number, message, fatal=False))
    return found


_SOURCES = {
    "file": "an instruction that only a file gave",
    "tool": "an instruction that only a tool gave",
    "web": "an instruction that only a page gave",
    "none": "an instruction that nobody in the session is known to have given",
}
_SHOWN_CHARS = 160


def _new_lines(
    folder: Path,
    shown_files: Mapping[str, bytes],
    seen: Mapping[str, Entry],
    limits: StageTwo,
    memory: Memory | None,
) -> Iterator[_Line]:
    contents, _ = gather(folder, seen, limits=limits, memory=memory)
    for path, content in contents.items():
        if not may_publish(path):
            continue
        old = set(shown_files.get(path, b"").decode("utf-8", "replace").splitlines())
        for number, text in enumerate(content.data.decode("utf-8", "replace").splitlines(), 1):
            if text.strip() and text not in old:
                yield _Line(path, number, text)
