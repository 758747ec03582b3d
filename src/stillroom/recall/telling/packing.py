"""Chooses which lines of a summary a session is given: whole ones, its own project first. Imports nothing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal

    Tier = Literal["own", "global", "other"]
    #: Of a line that the summary does not have: of the session's own project, or nobody's.
    Extra = Literal["more", "unsaid"]

HEADING, ITEM, MORE = "heading", "item", "more"
_CUT = " … [cut]"
#: What the last line of a topic begins with (spec §1.15): mostly wishes and tips that stand above, in the same words.
_LEARNINGS = "- learnings: "
#: Fewer characters stand anywhere.
_LEAST_CHARS = 12


class Line:
    """One line of a summary; a fenced block counts as one."""

    __slots__ = ("extra", "kind", "note", "paths", "scope", "size", "text", "up")

    def __init__(
        self,
        text: str,
        *,
        kind: str,
        up: int,
        scope: int,
        note: str = "",
        paths: Sequence[str] = (),
        extra: int = 0,
    ) -> None:
        self.text = text
        #: `heading`, `item` (a bullet, the start of a paragraph), or `more` of the item before it.
        self.kind = kind
        #: The heading or item that this makes no sense without; -1: none.
        self.up = up
        #: Which of the scopes it is for; -1: for every project.
        self.scope = scope
        #: Files that it names, and that were there at the last pass.
        self.paths = paths
        #: Not of the summary but of the handbook: for so many wishes it stands, itself and those that are not here.
        self.extra = extra
        self.annotate(note)

    def annotate(self, note: str) -> None:
        """Have `note` said at its end."""
        self.note = note
        #: Bytes in the output, with line ends; a blank line stands above headings and paragraphs.
        self.size = len(self.told.encode()) + (
            2 if self.kind == HEADING or (self.kind == ITEM and not is_bullet(self.text)) else 1
        )

    @property
    def told(self) -> str:
        """As a session reads it."""
        return self.text + self.note


class LeftOut:
    """What a session is not given. Headings are not counted."""

    __slots__ = ("bytes", "no_room", "other_lines", "other_projects", "wishes")

    def __init__(self) -> None:
        self.other_lines = 0
        self.other_projects = 0
        #: Lines that would have been given if there were room.
        self.no_room = 0
        #: Wishes of the session's own project that the handbook has and it is not told.
        self.wishes = 0
        self.bytes = 0

    def __bool__(self) -> bool:
        return bool(self.bytes or self.wishes)


def is_bullet(text: str) -> bool:
    """Whether a line is an entry of a list."""
    return text.startswith(("- ", "* ", "+ ")) or text.partition(". ")[0].isdigit()


def pack(
    lines: Sequence[Line], tier_of: Callable[[int], Tier], *, limit_bytes: int, others_too: bool
) -> tuple[str, LeftOut]:
    """At most `limit_bytes` of the lines, in their order, each whole or not at all.

    First what is the session's own, then what holds everywhere, then, if wanted, the rest; in each of the three the
    summary's own order is the order of worth. A line that alone is over the limit is cut, and says so. What room is
    left then is for what the handbook has of the session's own project. Learnings of a topic that are told already are
    not told again.
    """
    tiers = {scope: tier_of(scope) for scope in {line.scope for line in lines} - {-1}}
    tiers[-1] = "global"
    wanted: tuple[Tier, ...] = ("own", "global", "other") if others_too else ("own", "global")
    order: tuple[Tier | Extra, ...] = (*wanted, "more")
    numbers: dict[Tier | Extra, list[int]] = {"own": [], "global": [], "other": [], "more": [], "unsaid": []}
    for number, line in enumerate(lines):
        tier = tiers[line.scope]
        numbers[tier if not line.extra else "more" if tier == "own" else "unsaid"].append(number)
    refused = {number for each in numbers.keys() - set(order) for number in numbers[each]}
    chosen: dict[int, str] = {}
    left = LeftOut()
    room = limit_bytes
    said: set[str] = set()
    for each in order:
        for number in numbers[each]:
            line = lines[number]
            if line.kind == HEADING or number in chosen:
                continue
            if each == "more":
                left.wishes += line.extra - 1
                if line.text in said:  # of another checkout
                    continue
                said.add(line.text)
            chain = _chain(lines, number, chosen, refused)
            size = sum(lines[index].size for index in chain)
            told = line.told
            if line.kind == MORE and chain and _LEARNINGS in told:
                told = _fresh(told, "\n".join(chosen.values()))
                if not told:
                    continue
                size += len(told.encode()) - len(line.told.encode())
            cut = ""
            if chain and size > room and line.size > limit_bytes:
                cut = _cut(line, room - size + line.size)
            if chain and (size <= room or cut):
                chosen.update((index, lines[index].told) for index in chain)
                chosen[number] = told
                room -= size
            if cut:
                chosen[number] = cut
                room = 0
            if number not in chosen or cut:
                refused.add(number)
                left.bytes += line.size
                if each == "more":
                    left.wishes += 1
                else:
                    left.no_room += 1
    others = [] if others_too else [lines[number] for number in numbers["other"] if lines[number].kind != HEADING]
    left.other_lines = len(others)
    left.other_projects = len({line.scope for line in others})
    left.bytes += sum(line.size for line in others)
    return _render(lines, chosen), left


def _fresh(told: str, said: str) -> str:
    """A topic's learnings without those that are told already; "" if all are."""
    before, mark, rest = told.partition(_LEARNINGS)
    parts = [part for part in rest.split("; ") if not _is_said(part, said)]
    return f"{before}{mark}{'; '.join(parts)}" if parts else ""


def _is_said(part: str, said: str) -> bool:
    words = part.rstrip("… ")
    return len(words) >= _LEAST_CHARS and words in said


def _chain(lines: Sequence[Line], number: int, chosen: dict[int, str], refused: set[int]) -> list[int]:
    """The line and what above it is not chosen yet, top down. Empty if it continues an item that may not be chosen."""
    chain = [number]
    line = lines[number]
    while line.up >= 0 and line.up not in chosen:
        if line.kind == MORE and line.up in refused:
            return []
        chain.append(line.up)
        line = lines[line.up]
    return chain[::-1]


def _cut(line: Line, room: int) -> str:
    """As much of the line as fits with the mark; "" if that is next to nothing."""
    keep = room - 2 - len(_CUT.encode())
    text = line.text.partition("\n")[0].encode()[: max(keep, 0)].decode("utf-8", "ignore").rstrip()
    return f"{text}{_CUT}" if len(text) > len(_CUT) else ""


def _render(lines: Sequence[Line], chosen: dict[int, str]) -> str:
    out: list[str] = []
    for number in sorted(chosen):
        line = lines[number]
        if out and (line.kind == HEADING or (line.kind == ITEM and not is_bullet(line.text))):
            out.append("")
        out.append(chosen[number])
    return "\n".join(out)


__all__ = ["HEADING", "ITEM", "MORE", "LeftOut", "Line", "is_bullet", "pack"]
