"""What a model wrote into the memory folder that nothing it was given supports, by words alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from stillroom.config import StageTwo
from stillroom.lanes import Quarantined, Restated
from stillroom.sessions.directives import is_directive
from stillroom.sessions.terms import Terms, is_address, stems, terms_of
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
    """Lines that are new in what a model wrote: those that say again what is withheld, orders that nobody trusted
    gave, in whatever form of line (both fatal), and points that nothing supports. `shown_files` is what it was made
    from."""
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
    texts = [data.decode("utf-8", "replace") for data in shown_files.values()]
    known = frozenset(word for text in texts for word in terms_of(text).all)
    known_stems = frozenset(stem for text in texts for stem in stems(text))
    for line in new:
        if any(pointer in line.text for pointer in _POINTERS):
            continue
        terms = terms_of(line.text)
        if is_directive(line.text) and not _is_supported(terms, stems(line.text), known, known_stems):
            said = " ".join(line.text.split())[:_SHOWN_CHARS]
            message = f"an instruction that neither a person nor the assistant gave: take it out: {said}"
            found.append(Finding("instruction", shown(line.path), line.number, message))
        elif line.text.lstrip().startswith(("- ", "* ")) and terms.names and not terms.names & known:
            found.append(Finding("evidence", shown(line.path), line.number, "no session says this", fatal=False))
    return found


def _is_supported(terms: Terms, own: frozenset[str], known: frozenset[str], known_stems: frozenset[str]) -> bool:
    """Whether the inputs have where an order leads, or else its names, and enough of its words."""
    names = frozenset(filter(is_address, terms.names)) or terms.names
    if not names <= known and (len(names) > 1 or any(map(is_address, names))):
        return False
    return len(own & known_stems) >= _SUPPORTED_SHARE * len(own)


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
