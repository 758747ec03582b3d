"""Fields that a client's records are known to have, by agent, in the `.txt` files beside this one.

A line names a level and the fields that may stand there: those that the reader reads, and those that it passes over on
purpose. A level is the kind of a record (`assistant`; `record` where records have none), then the field that leads
inside (`assistant.message`), and the kind of what stands there, if it has one (`assistant.message.content:tool_use`).
What has no line is not looked into: kinds that are passed over as a whole, a tool's arguments, maps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from stillroom.rollouts.item import UNREADABLE
from stillroom.rollouts.redact import redact
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.stream import Decoder, ItemStream

#: Lines looked at where a session begins, as most kinds come there; then one of every so many batches of lines.
_FIRST_LINES = 16
_BATCHES = 4
#: Records of the same kind with the same fields that are looked into: what they hold differs, but not for ever.
_LOOKS_INSIDE = 3
_MOST_SHAPES = 200
#: A longer line holds an output or a blob, and to find its fields takes as long as to read it.
_MAX_LINE_BYTES = 8 * 1024
#: Elements looked at of a list, and unknown fields told of one record: each is looked at for a secret.
_MAX_ELEMENTS = 8
_MAX_UNKNOWN = 20
#: What names the kind of a record, and of what stands in one; the first that is there.
_RECORD_KINDS = ("type", "kind", "role", "source")
_KINDS = ("type", "kind")
_NO_KIND = "record"
_NAME = re.compile(r"[A-Za-z_$@][\w$@:./-]{0,47}", re.ASCII)
_NO_NAME = "?"
#: A rollout of Stillroom's own is one of Codex's.
_SAME = {"stillroom": "codex"}

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode

_Fields = dict[str, msgspec.Raw]
D = TypeVar("D", bound=Decoder)


class Level(NamedTuple):
    """What may stand at one level."""

    names: frozenset[str]
    #: The fields among them that lead to levels, and where each leads.
    doors: dict[str, str]


class Known(NamedTuple):
    """The fields of one agent's records."""

    levels: dict[str, Level]


@cache
def known_fields(agent: str) -> Known:
    """What the file of an agent says; nothing of one without a file."""
    try:
        return known_of(Path(__file__).with_name(f"{_SAME.get(agent, agent)}.txt").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return known_of("")


def known_of(text: str) -> Known:
    """The same of the text of such a file. A level may have several lines."""
    names: dict[str, list[str]] = {}
    for line in text.splitlines():
        level, _, listed = line.partition(": ")
        names.setdefault(level, []).extend(listed.split())
    doors = {door for level in names for door in (level, level.rpartition(":")[0])}
    return Known({level: _level(level, listed, doors) for level, listed in names.items()})


def _level(level: str, names: list[str], doors: set[str]) -> Level:
    return Level(frozenset(names), {name: door for name in names if (door := f"{level}.{name}") in doors})


def unknown_fields(line: bytes, known: Known) -> list[str]:
    """The fields of a record that are not known, each as `LEVEL.FIELD`. Nothing that a line holds raises."""
    try:
        return _unknown(_fields(line), "", known)
    except UNREADABLE:
        return []


def watch_fields(items: ItemStream[D], agent: str) -> ItemStream[D]:
    """The same items, of which the unknown fields are counted while they are read: in a sample of the records."""
    return items.heard(FieldWatch(agent, items.stats).look)


class FieldWatch:
    """Hears the lines of a session, and counts the unknown fields in a sample of them into `stats`."""

    def __init__(self, agent: str, stats: ReadStats) -> None:
        self._known = known_fields(agent)
        self._stats = stats
        self._shapes: dict[tuple[str, ...], int] = {}
        self._first = _FIRST_LINES
        self._batches = 0

    def look(self, lines: list[bytes]) -> None:
        """Look at a few of the next lines, which are some."""
        if self._first:
            for line in lines[: self._first]:
                self._look(line)
            self._first = max(self._first - len(lines), 0)
        elif self._batches % _BATCHES == 0:
            # Never at the same place: what a client writes in turns would not be met.
            self._look(lines[self._batches * 7919 % len(lines)])
        self._batches += 1

    def _look(self, line: bytes) -> None:
        if len(line) > _MAX_LINE_BYTES:
            return
        try:
            fields = _fields(line)
            shape = (_kind(fields, _RECORD_KINDS), *fields)
            looks = self._shapes.get(shape, 0)
            if looks < _LOOKS_INSIDE and (looks or len(self._shapes) < _MOST_SHAPES):
                self._shapes[shape] = looks + 1
                for name in _unknown(fields, "", self._known):
                    self._stats.count_unknown_field(name)
        except UNREADABLE:
            return


def _unknown(fields: _Fields, door: str, known: Known) -> list[str]:
    """Those among the fields behind a door, and among those inside."""
    kind = _kind(fields, _KINDS if door else _RECORD_KINDS)
    name = (f"{door}:{kind}" if kind else door) if door else kind or _NO_KIND
    level = known.levels.get(name)
    if level is None:
        return []
    found: list[str] = []
    if not fields.keys() <= level.names:
        unknown = islice((field for field in fields if field not in level.names), _MAX_UNKNOWN)
        found = [f"{name}.{_shown(field)}" for field in unknown]
    for field, inside in level.doors.items():
        if field in fields:
            for each in _objects(bytes(fields[field])):
                found += _unknown(_fields(each), inside, known)
    return found


def _kind(fields: _Fields, names: Iterable[str]) -> str:
    """What the first of the names that is there says."""
    for name in names:
        if name in fields:
            value = bytes(fields[name])
            return value[1:-1].decode("utf-8", "replace") if value[:1] == b'"' else ""
    return ""


def _objects(value: bytes) -> Iterable[bytes | msgspec.Raw]:
    if value[:1] == b"{":
        return (value,)
    if value[:1] == b"[":
        return [each for each in _elements(value)[:_MAX_ELEMENTS] if bytes(each)[:1] == b"{"]
    return ()


def _shown(name: str) -> str:
    """A file may name a field anything: a secret, a text, what a terminal would obey."""
    return name if _NAME.fullmatch(name) and redact(name) == name else _NO_NAME
