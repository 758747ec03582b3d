"""Finds the lines that somebody asks about: by file and number, or by a phrase."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from stillroom.config import LOOKUP
from stillroom.errors import InvalidRequest, NotFound, PathRefused, RecallError
from stillroom.insight.why.claims import Claim, claim_of, claims_nothing, folded, levelled, words_of
from stillroom.pattern import late
from stillroom.recall.browse.paths import opened_path, quoted, read_text, readable
from stillroom.recall.browse.walk import Walk
from stillroom.workspace.layout import HANDBOOK, SKILLS, SUMMARY

_NUMBERED = late(r"(?P<path>.+):(?P<line>\d{1,9})")
#: A phrase is looked for in these; a session's own summary is asked for by file and line.
_SEARCHED = (HANDBOOK, SUMMARY)
#: A line that has less of the words of a phrase is no match.
_LEAST_SHARE = 0.5
#: Between the words of a phrase, on one line.
_BLANKS = r"[^\S\n]+"


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the memory folder."""

    path: str
    line: int
    text: str


class Spot(NamedTuple):
    """The same with the file around it."""

    place: Place
    lines: list[str]


def find_spots(root: Path, asked: str, *, most: int) -> tuple[list[Spot], int]:
    """The lines that are meant, best first, and how many more match as well as the last of them.

    Raises `RecallError` when there is none.
    """
    if (numbered := _NUMBERED.fullmatch(asked.strip())) and (found := _at(root, numbered["path"], numbered["line"])):
        return [found], 0
    said = [(spot, claim_of(spot.place.text)) for spot in _said(root, asked)]
    if not said:
        raise NotFound(f"no line of the memory says {quoted(asked)}", hint="`stillroom search` looks everywhere")
    # What claims something itself comes before the title over it, and before what only names a file.
    alike = _once(sorted(said, key=_says_little))
    return alike[:most], max(len(alike) - most, 0)


def _says_little(said: tuple[Spot, Claim]) -> int:
    spot, claim = said
    text = spot.place.text
    return 2 if claims_nothing(text, claim) else int(text.startswith("#"))


def _at(root: Path, path: str, line: str) -> Spot | None:
    """The line of a file; None where the text has blanks and no such file is there: a phrase that ends like that."""
    inside = path.removeprefix(f"{root}/").removeprefix("./")
    try:
        lines = read_lines(root, inside)
    except RecallError:
        if " " in path:
            return None
        raise
    number = int(line)
    if not 1 <= number <= len(lines):
        raise InvalidRequest(f"{quoted(inside)} has no line {number}: it has {len(lines):,}")
    if not lines[number - 1].strip():
        raise InvalidRequest(f"line {number} of {quoted(inside)} is blank")
    return Spot(Place(path=readable(inside), line=number, text=lines[number - 1]), lines)


def read_lines(root: Path, path: str) -> list[str]:
    """A file of the memory folder, line by line. Raises `RecallError`."""
    with opened_path(root, path) as node:
        if node.is_folder:
            raise PathRefused(f"{quoted(path)} is a folder", hint="a line is asked for as `MEMORY.md:12`")
        return read_text(node, path, max_bytes=LOOKUP.max_file_bytes).split("\n")


def _said(root: Path, asked: str) -> list[Spot]:
    """The lines that have the phrase; where none has, those with most of its words."""
    phrase, words = folded(asked), words_of(asked)
    if not phrase:
        raise InvalidRequest("the phrase is empty")
    files = list(_searched(root))
    found = [(file, number) for file in files for number in _with_phrase(file, phrase)]
    if not found:
        shares = [(share, file, number) for file in files for share, number in _with_words(file, words)]
        most = max((share for share, _, _ in shares), default=0)
        found = [(file, number) for share, file, number in shares if share == most]
    return [_spot(file, number) for file, number in found]


class _File(NamedTuple):
    path: str
    lines: list[str]
    #: The lines in one form, as `folded` does it but for runs of space.
    level: str


def _searched(root: Path) -> Iterator[_File]:
    for path in _SEARCHED:
        try:
            yield _file(path, read_lines(root, path))
        except NotFound:
            continue
    try:
        for met in Walk().files(root, SKILLS):
            try:
                text = read_text(met.node, met.path, max_bytes=LOOKUP.max_file_bytes)
            except RecallError:
                continue  # no text: nothing that could be asked about
            yield _file(readable(met.path), text.split("\n"))
    except RecallError:  # there are none, or it is a link
        return


def _file(path: str, lines: list[str]) -> _File:
    return _File(path, lines, levelled("\n".join(lines)))


def _with_phrase(file: _File, phrase: str) -> Iterator[int]:
    """The numbers of the lines, from 0. All others are passed over at once."""
    text = file.level
    said = re.compile(_BLANKS.join(map(re.escape, phrase.split())))
    number = seen = 0
    match = said.search(text)
    while match:
        number += text.count("\n", seen, match.start())
        yield number
        seen = match.start()
        end = text.find("\n", match.end())
        match = said.search(text, end) if end >= 0 else None


def _with_words(file: _File, words: Sequence[str]) -> Iterator[tuple[float, int]]:
    """How much of the words a line has, and its number from 0; only if it is enough."""
    least = _LEAST_SHARE * len(words)
    for number, line in enumerate(file.level.split("\n")):
        count = 0
        for word in words:
            if word in line:
                count += 1
        if count and count >= least:
            yield count / len(words), number


def _spot(file: _File, number: int) -> Spot:
    return Spot(Place(path=file.path, line=number + 1, text=file.lines[number]), file.lines)


def _once(said: Sequence[tuple[Spot, Claim]]) -> list[Spot]:
    """Without lines that say the same as one before: the summary repeats the handbook."""
    first: dict[tuple[str, ...], Spot] = {}
    for spot, claim in said:
        first.setdefault(claim.words, spot)
    return list(first.values())
