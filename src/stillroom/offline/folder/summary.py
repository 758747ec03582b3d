"""`memory_summary.md`, in the shape of spec §1.15: what a session is given before it asks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from stillroom.offline.folder.handbook import Wanted
from stillroom.offline.folder.languages import languages
from stillroom.offline.folder.merge import Block, Line, said
from stillroom.offline.folder.notes import Note
from stillroom.offline.folder.pointing import means_all, points, says_everywhere
from stillroom.offline.text import conflict
from stillroom.offline.text.words import shorten
from stillroom.pattern import late

VERSION = "v1"
#: Where a line holds that ends with it in `(in …)`, as others end with names of projects.
EVERYWHERE = "every project"
_RECENT_DAYS = 3
#: Two projects may share a habit; a preference that came up in three, and points at none, is the person's.
_EVERYWHERE_FROM = 3
#: "Sie, everywhere": in all texts of one project, unless another project has it too.
_SAID_EVERYWHERE_FROM = 2
_LEARNINGS = 2
_LEARNING_CHARS = 160
_NAME_CHARS = 120
#: What failed in the old form, and nothing is known to have helped.
_UNSOLVED = late(r"^`[^`]+` failed\b(?!.*(?:\| (?:fixed|then|what worked|check)|passed))")


@dataclass(frozen=True, slots=True)
class Room:
    """How much of everything may be said. A longer line is left to `MEMORY.md`: nothing is cut."""

    preferences: int = 60
    tips: int = 30
    topics: int = 400
    line_chars: int = 600
    with_details: bool = True


ROOMS = (
    Room(),
    Room(preferences=40, tips=16, topics=120),
    Room(preferences=30, tips=12, topics=60),
    Room(preferences=24, tips=8, topics=40, line_chars=400),
    Room(preferences=16, tips=6, topics=25, line_chars=300),
    Room(preferences=10, tips=4, topics=25, line_chars=300, with_details=False),
    Room(preferences=5, tips=2, topics=10, line_chars=300, with_details=False),
    Room(preferences=2, tips=0, topics=3, line_chars=200, with_details=False),
    Room(preferences=0, tips=0, topics=0, with_details=False),
)
"""From roomy to bare: the first that fits is taken."""


def summary(blocks: Sequence[Block], notes: Sequence[Note], room: Room, wanted: Wanted) -> list[str]:
    """The lines of `memory_summary.md`."""
    lines = [VERSION]
    if spoken := languages(said(line.text) for block in blocks for line in block.of("preference")):
        lines += ["", "## User Profile", "", f"- Writes: {', '.join(spoken)}"]
    preferences = [f"- {note.render()}" for note in notes if note.has_place] + _preferences(blocks)
    lines += _section("## User preferences", preferences, room.preferences, room, wanted, "none known yet")
    lines += _section("## General Tips", _tips(blocks), room.tips, room, wanted, "none yet")
    lines += ["", "## What's in Memory", *_index(blocks, room, wanted)]
    return lines


def _preferences(blocks: Sequence[Block]) -> list[str]:
    """Preferences of several repositories first, once; then of each in turn, as there may not be room for all.

    Each ends with the repositories where it holds: a session elsewhere is not given it. It holds everywhere if its
    words name all projects or three repositories have it (two, if it says "everywhere"), unless its words point at a
    project or another preference contradicts.
    """
    shown: list[_Shown] = []
    for block in blocks:
        rank = 0
        for line in block.of("preference"):
            known = next((s for s in shown if conflict.same(s.line.claim, line.claim)), None)
            if known is None:
                known = _Shown(line=line, rank=rank)
                shown.append(known)
                rank += 1
            known.texts.append(line.claim.text)
            known.titles.setdefault(block.group.title)
            known.names.update(dict.fromkeys(PurePath(cwd).name for cwd in block.group.cwds))
    everywhere = {id(each): _holds_everywhere(each, shown) for each in shown}
    shown.sort(key=lambda each: (not everywhere[id(each)], -len(each.titles) if len(each.titles) > 1 else 0, each.rank))
    found = []
    for each in shown:
        text = _unscoped(each.line.render(with_history=False), (*each.titles, *each.names))
        found.append(f"- {text} (in {EVERYWHERE if everywhere[id(each)] else ', '.join(each.titles)})")
    return found


def _holds_everywhere(one: _Shown, shown: Sequence[_Shown]) -> bool:
    if any(points(text) for text in one.texts):
        return False
    asked = _EVERYWHERE_FROM
    if any(says_everywhere(text) for text in one.texts):
        asked = _SAID_EVERYWHERE_FROM
    if len(one.titles) < asked and not any(means_all(text) for text in one.texts):
        return False
    return not any(
        conflict.supersedes(other.line.claim, one.line.claim) or conflict.supersedes(one.line.claim, other.line.claim)
        for other in shown
        if other is not one
    )


@dataclass(slots=True)
class _Shown:
    """A preference, and where it holds."""

    line: Line
    #: Of how many of its first repository it comes behind.
    rank: int
    #: In the words of each repository.
    texts: list[str] = field(default_factory=list)
    #: Dictionaries without values: sets that keep their order.
    titles: dict[str, None] = field(default_factory=dict)
    names: dict[str, None] = field(default_factory=dict)


def _unscoped(text: str, names: Sequence[str]) -> str:
    """A preference without the repository in what follows from it: the line ends with where it holds."""
    before, arrow, implied = text.rpartition(" -> ")
    for name in filter(None, names):
        implied = re.sub(rf" in {re.escape(name)}(?![\w-])", "", implied, count=1)
    return f"{before}{arrow}{implied}"


def _tips(blocks: Sequence[Block]) -> list[str]:
    """What helped when something failed, a few of every group. What nothing is known to have helped is no tip."""
    found = []
    for rank in range(8):
        for block in blocks:
            cures = [line for line in block.of("failure") if not _UNSOLVED.match(line.text)]
            if rank < len(cures):
                found.append(f"- {cures[rank].render()} (in {block.group.title})")
    return found


def _index(blocks: Sequence[Block], room: Room, wanted: Wanted) -> list[str]:
    days = sorted({block.group.day for block in blocks}, reverse=True)[:_RECENT_DAYS]
    recent = [block for block in blocks if block.group.day in days]
    older = [block for block in blocks if block.group.day not in days]
    lines: list[str] = []
    left = room.topics
    for block in recent:
        if left <= 0:
            break
        topics = _topics(block, room, wanted)[: max(1, left // 2)]
        left -= len(topics)
        lines += [
            "",
            f"### {block.group.title}",
            "",
            f"#### {block.group.day}",
            "",
            *(line for t in topics for line in t),
        ]
    if older and left > 0:
        lines += ["", "### Older Memory Topics"]
        for block in older[:left]:
            topics = _topics(block, room, wanted)[:2]
            lines += ["", f"#### {block.group.title}", "", *(line for t in topics for line in t[:2])]
    return lines


def _topics(block: Block, room: Room, wanted: Wanted) -> list[list[str]]:
    topics = []
    where = ", ".join(block.group.cwds[:2])
    for entry in block.tasks:
        head = f"- {shorten(entry.name, _NAME_CHARS)}: {', '.join(entry.keywords[:6])}"
        if not wanted(head):
            continue
        topic = [head]
        if room.with_details:
            day = max(session.day for session in entry.sessions)
            topic.append(
                f"  - desc: {entry.outcome}, {day}; MEMORY.md, {block.group.title}, Task {entry.number}; cwd={where}"
            )
            own = [line for line in block.lines if entry.number in line.tasks and line.kind == "knowledge"]
            learned = [said(line.text) for line in own if len(line.text) <= _LEARNING_CHARS][:_LEARNINGS]
            if learned:
                topic.append(f"  - learnings: {'; '.join(learned)}")
        topics.append(topic)
    return topics


def _section(title: str, bullets: Sequence[str], most: int, room: Room, wanted: Wanted, otherwise: str) -> list[str]:
    """The first of the bullets that are wanted and short enough."""
    kept = [bullet for bullet in bullets if len(bullet) <= room.line_chars and wanted(bullet)][:most]
    return ["", title, "", *(kept or [f"- {otherwise}"])]
