"""What of a prepared copy holds after an edit, for the one session that starts before a new copy is made.

Better a line too few than one that was just taken out: told is what stands word for word ahead of the edit and behind
it, and nothing that the edit may have given another project. Imports nothing.
"""

from __future__ import annotations

import os
from stat import S_ISREG

from stillroom.recall.projects.declared import FILE as PROJECTS
from stillroom.recall.telling.packing import HEADING, MORE, Line, is_bullet
from stillroom.recall.telling.prepared import HANDBOOK, PLACEHOLDERS, SUMMARY, VERSION, Prepared, choices, stamp_of
from stillroom.system import READ_ITSELF

#: Rows that may change whose the rows below them are.
_STRUCTURE = ("#", "```", "~~~")


def standing(prepared: Prepared, home: str) -> Prepared | None:
    """The copy with the lines that still stand; None where only a new one can tell, or less than half would be left."""
    if not prepared.lines or os.path.islink(prepared.root):
        return None
    config = f"{home}/config.toml"
    if prepared.config != stamp_of(config) and (prepared.choices is None or prepared.choices != choices(config)):
        return None
    if prepared.projects != stamp_of(f"{home}/{PROJECTS}"):
        return None
    summary = [line for line in prepared.lines if not line.extra]
    if prepared.stamp == stamp_of(f"{prepared.root}/{SUMMARY}"):
        if prepared.handbook == stamp_of(f"{prepared.root}/{HANDBOOK}"):
            return prepared
        lines = summary
    else:
        rows = _rows_now(prepared)
        lines = untouched(summary, rows) if rows else []
        if 2 * len(lines) < len(summary):
            return None
    return Prepared(
        root=prepared.root,
        stamp=prepared.stamp,
        config=prepared.config,
        projects=prepared.projects,
        choices=prepared.choices,
        tokens=prepared.tokens,
        others_too=prepared.others_too,
        lines=lines,
        scopes=prepared.scopes,
        folders=prepared.folders,
        is_partial=True,
    )


def untouched(lines: list[Line], now: list[str]) -> list[Line]:
    """The lines ahead of the edit and behind it; `now` are the rows of the summary after it, without blank ones."""
    then: list[str] = []
    ends: list[int] = []  # of each line, in `then`
    for line in lines:
        then += [row for row in line.text.split("\n") if row]
        ends.append(len(then))
    most = min(len(then), len(now))
    ahead = 0
    while ahead < most and then[ahead] == now[ahead]:
        ahead += 1
    behind = 0
    while behind < most - ahead and then[-1 - behind] == now[-1 - behind]:
        behind += 1
    written = now[ahead : len(now) - behind]
    if any(row.lstrip().startswith(_STRUCTURE) for row in written):
        behind = 0
    begins = [0, *ends]
    touched = {number for number, end in enumerate(ends) if end > ahead and begins[number] < len(then) - behind}
    if written and not is_bullet(written[0]):  # it may go on with what the item ahead of it says, or whose that is
        touched |= {number for number, end in enumerate(ends) if end == ahead}
    return _without(lines, touched)


def _without(lines: list[Line], touched: set[int]) -> list[Line]:
    """The lines that share neither item, heading nor scope with one that was touched."""
    items = {lines[number].up if lines[number].kind == MORE else number for number in touched}
    scopes = {line.scope for number, line in enumerate(lines) if number in touched or number in items} - {-1}
    places: dict[int, int] = {-1: -1}
    kept: list[Line] = []
    for number, line in enumerate(lines):
        if number not in items and line.up in places and line.scope not in scopes:
            places[number] = len(kept)
            kept.append(
                Line(line.text, kind=line.kind, up=places[line.up], scope=line.scope, note=line.note, paths=line.paths)
            )
    return kept if any(line.kind != HEADING for line in kept) else []


def _rows_now(prepared: Prepared) -> list[str] | None:
    """The rows of the summary as they are now; None of what is no summary, or far larger than the one that is known."""
    room = 2 * prepared.stamp[0] if prepared.stamp else 0
    try:
        file = os.open(f"{prepared.root}/{SUMMARY}", READ_ITSELF)
        try:
            data = os.read(file, room + 1) if S_ISREG(os.fstat(file).st_mode) else b""
        finally:
            os.close(file)
        text = data.decode("utf-8-sig")
    except (OSError, ValueError):
        return None
    first, *rows = [row.rstrip() for row in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    if first.strip() != VERSION or len(data) > room:
        return None
    return [row for row in rows if row and row not in PLACEHOLDERS]
