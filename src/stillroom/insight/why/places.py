"""Finds the lines that somebody asks about: by file and number, or by a phrase."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from stillroom.config import LOOKUP
from stillroom.errors import InvalidRequest, NotFound, PathRefused, RecallError
from stillroom.insight.why.claims import claim_of, claims_nothing, folded, words_of
from stillroom.pattern import late
from stillroom.recall.browse.paths import opened_path, quoted, read_text, readable
from stillroom.recall.browse.walk import Walk
from stillroom.workspace.layout import HANDBOOK, SKILLS, SUMMARY

_NUMBERED = late(r"(?P<path>.+):(?P<line>\d{1,9})")
#: A phrase is looked for in these; a session's own summary is asked for by file and line.
_SEARCHED = (HANDBOOK, SUMMARY)
#: A line that has less of the words of a phrase is no match.
_LEAST_SHARE = 0.5


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
    matches = list(_matches(root, asked))
    if not matches:
        raise NotFound(f"no line of the memory says {quoted(asked)}", hint="`stillroom search` looks everywhere")
    best = max(score for score, _ in matches)
    # What claims something itself comes before the title over it, and before what only names a file.
    alike = _once(sorted((spot for score, spot in matches if score >= best), key=_says_little))
    return alike[:most], max(len(alike) - most, 0)


def _says_little(spot: Spot) -> int:
    text = spot.place.text
    return 2 if claims_nothing(text, claim_of(text)) else int(text.startswith("#"))


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


def _matches(root: Path, asked: str) -> Iterator[tuple[float, Spot]]:
    phrase, words = folded(asked), words_of(asked)
    if not phrase:
        raise InvalidRequest("the phrase is empty")
    for path, lines in _searched(root):
        for number, line in enumerate(lines, 1):
            if words and line.isascii() and not _has_any(words, line.casefold()):
                continue
            text = folded(line)
            if phrase in text:
                score = 2.0
            elif words:
                score = len([word for word in words if word in text]) / len(words)
                if score < _LEAST_SHARE:
                    continue
            else:
                continue
            yield score, Spot(Place(path=path, line=number, text=line), lines)


def _has_any(words: Iterable[str], text: str) -> bool:
    """A quick answer for the many lines that have none."""
    for word in words:  # noqa: SIM110 - twice as fast as `any`
        if word in text:
            return True
    return False


def _searched(root: Path) -> Iterator[tuple[str, list[str]]]:
    for path in _SEARCHED:
        try:
            yield path, read_lines(root, path)
        except NotFound:
            continue
    try:
        for met in Walk().files(root, SKILLS):
            try:
                yield readable(met.path), read_text(met.node, met.path, max_bytes=LOOKUP.max_file_bytes).split("\n")
            except RecallError:
                continue  # no text: nothing that could be asked about
    except RecallError:  # there are none, or it is a link
        return


def _once(spots: list[Spot]) -> list[Spot]:
    """Without lines that say the same as one before: the summary repeats the handbook."""
    seen: set[tuple[str, ...]] = set()
    kept: list[Spot] = []
    for spot in spots:
        words = claim_of(spot.place.text).words
        if words not in seen:
            seen.add(words)
            kept.append(spot)
    return kept
