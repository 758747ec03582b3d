"""`memory_summary.md`, in the shape of spec §1.15: what a session is given before it asks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from stillroom.offline.folder.handbook import Wanted
from stillroom.offline.folder.merge import Block, Line, said
from stillroom.offline.folder.notes import Note
from stillroom.offline.text import conflict
from stillroom.offline.text.words import shorten
from stillroom.pattern import late

VERSION = "v1"
#: Where a line holds that ends with it in `(in …)`, as others end with names of projects.
EVERYWHERE = "every project"
_RECENT_DAYS = 3
_PROFILE_PROJECTS = 8
#: As `stillroom note --cwd` begins one.
_FOR_A_PROJECT = late(r"in [^:]{1,255} \(/[^:]{1,400}\): ")
_LEAST_NOTE_CHARS = 40
#: Two projects may share a habit; a wish that came up in three is the person's.
_EVERYWHERE_FROM = 3


@dataclass(frozen=True, slots=True)
class Room:
    """How much of everything may be said."""

    preferences: int = 40
    tips: int = 16
    topics: int = 400
    line_chars: int = 320
    with_details: bool = True


ROOMS = (
    Room(),
    Room(preferences=30, tips=12, topics=120, line_chars=240),
    Room(preferences=24, tips=8, topics=60, line_chars=200),
    Room(preferences=16, tips=6, topics=40, line_chars=160),
    Room(preferences=10, tips=4, topics=25, line_chars=120, with_details=False),
    Room(preferences=5, tips=2, topics=10, line_chars=100, with_details=False),
    Room(preferences=0, tips=0, topics=3, line_chars=80, with_details=False),
    Room(preferences=0, tips=0, topics=0, line_chars=80, with_details=False),
)
"""From roomy to bare: the first that fits is taken."""


def summary(blocks: Sequence[Block], notes: Sequence[Note], room: Room, wanted: Wanted) -> list[str]:
    """The lines of `memory_summary.md`."""
    lines = [VERSION, "", "## User Profile", "", *_profile(blocks)]
    preferences = [f"- {_cut(note.text, room)} [ad-hoc note]" for note in notes] + _preferences(blocks, room)
    lines += _section(
        "## User preferences", [p for p in preferences if wanted(p)][: room.preferences], "none known yet"
    )
    tips = [t for t in _tips(blocks, room) if wanted(t)]
    lines += _section("## General Tips", tips[: room.tips], "none yet")
    lines += ["", "## What's in Memory", *_index(blocks, room, wanted)]
    return lines


def _cut(note: str, room: Room) -> str:
    """A note, never cut in the name of the project that it is for: it would be told everywhere."""
    label = _FOR_A_PROJECT.match(note)
    return shorten(note, max(room.line_chars, label.end() + _LEAST_NOTE_CHARS if label else 0))


def _profile(blocks: Sequence[Block]) -> list[str]:
    if not blocks:
        return ["Nothing is known of the user yet."]
    counts = [(block.group.title, len(block.group.sessions)) for block in blocks[:_PROFILE_PROJECTS]]
    return [
        f"- {count} {'sessions are' if count > 1 else 'session is'} remembered (in {name})" for name, count in counts
    ]


def _preferences(blocks: Sequence[Block], room: Room) -> list[str]:
    """Wishes of several repositories first, once; then of each in turn, as there may not be room for all. Each ends
    with the repositories where it holds: a session elsewhere is not told of it. What was wished in several, and nowhere
    the opposite, holds everywhere."""
    shown: list[_Shown] = []
    for block in blocks:
        rank = 0
        for line in block.of("preference"):
            known = next((s for s in shown if conflict.same(s.line.claim, line.claim)), None)
            if known is None:
                known = _Shown(line=line, rank=rank)
                shown.append(known)
                rank += 1
            known.titles.setdefault(block.group.title)
            known.names.update(dict.fromkeys(PurePath(cwd).name for cwd in block.group.cwds))
    shown.sort(key=lambda wish: (-len(wish.titles) if len(wish.titles) > 1 else 0, wish.rank))
    found = []
    for wish in shown:
        names = (*wish.titles, *wish.names)
        text = shorten(_unscoped(wish.line.render(with_history=False), names), room.line_chars)
        general = len(wish.titles) >= _EVERYWHERE_FROM and not any(
            conflict.supersedes(other.line.claim, wish.line.claim)
            or conflict.supersedes(wish.line.claim, other.line.claim)
            for other in shown
            if other is not wish
        )
        found.append(f"- {text} (in {EVERYWHERE if general else ', '.join(wish.titles)})")
    return found


@dataclass(slots=True)
class _Shown:
    """A wish, and where it holds."""

    line: Line
    #: Of how many of its first repository it comes behind.
    rank: int
    #: Dictionaries without values: sets that keep their order.
    titles: dict[str, None] = field(default_factory=dict)
    names: dict[str, None] = field(default_factory=dict)


def _unscoped(text: str, names: Sequence[str]) -> str:
    """A wish without the repository in what follows from it: the line ends with where it holds."""
    before, arrow, implied = text.rpartition(" -> ")
    for name in filter(None, names):
        implied = re.sub(rf" in {re.escape(name)}(?![\w-])", "", implied, count=1)
    return f"{before}{arrow}{implied}"


def _tips(blocks: Sequence[Block], room: Room) -> list[str]:
    """What failed and what then worked, a few of every group."""
    found = []
    for rank in range(4):
        for block in blocks:
            failures = block.of("failure")
            if rank < len(failures):
                found.append(f"- {shorten(failures[rank].render(), room.line_chars)} (in {block.group.title})")
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
        head = f"- {shorten(entry.name, room.line_chars)}: {', '.join(entry.keywords[:6])}"
        if not wanted(head):
            continue
        topic = [head]
        if room.with_details:
            day = max(session.day for session in entry.sessions)
            topic.append(
                f"  - desc: {entry.outcome}, {day}; MEMORY.md, {block.group.title}, Task {entry.number}; cwd={where}"
            )
            own = [line for line in block.lines if entry.number in line.tasks and line.kind != "reference"]
            learned = "; ".join(shorten(said(line.text), 90) for line in own[:3])
            if learned:
                topic.append(f"  - learnings: {shorten(learned, room.line_chars)}")
        topics.append(topic)
    return topics


def _section(title: str, bullets: Sequence[str], otherwise: str) -> list[str]:
    return ["", title, "", *(bullets or [f"- {otherwise}"])]
