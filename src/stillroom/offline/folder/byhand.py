"""What a person wrote into the two files, told from what was generated, and put back where it stood.

A record beside the two files, `.stillroom-lines`, holds a short hash of every line that was generated last time, for
both. A line without a hash there is a person's and is kept word for word; a bullet whose hash is there but which is
gone was taken out by a person and stays out. Without a record (another consolidator wrote the files, or it is gone),
lines of the generated shape count as generated and everything else as a person's. An earlier release ended the handbook
with the record.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Literal

from stillroom.pattern import late

_OPEN = "<!-- Lines by Stillroom; every other line of MEMORY.md and memory_summary.md is kept as it is."
_CLOSE = "-->"
_RECORD = late(re.escape(_OPEN) + r"\n(.*?)\n?" + re.escape(_CLOSE), re.DOTALL)
_PER_LINE = 16
_HEADING = late(r"^(#{1,6}) (.*)$")
_FENCE = late(r"^\s*(```|~~~)")
_REFERENCES = late(r"\s*(?:\[Task \d+\])+\s*$")
_COUNTS = late(r" \((?:said )?in \d+ sessions, last [\d-]+\)|(?<= works here) \(passed[^()]*\)")
_NUMBER = late(r"^(#{1,6} Task) \d+: ")
_TITLES = "User preferences|Reusable knowledge|Failures and how to do differently"
_OWN_COMMENT = r"<!-- Lines by Stillroom.*|(?:handbook|summary|out): [0-9a-f ]+|-->"
# What a generated line looks like, for files whose record is gone.
_HANDBOOK_SHAPE = late(
    rf"^(?:# (?:Task Group: .*|Memory|Notes)|## (?:Task \d+.*|{_TITLES})|### (?:rollout_summary_files|keywords)"
    r"|scope: .*|applies_to: .*|- .*(?:\[Task \d+\]|\[ad-hoc note\]|rollout_path=.*\)) ?|- [^:]*,[^:]*"
    rf"|Nothing is remembered .*|{_OWN_COMMENT})$"
)
_SUMMARY_SHAPE = late(
    rf"^(?:v1|## (?:User Profile|General Tips|What's in Memory|{_TITLES})|#{{3,4}} .*|  - (?:desc|learnings): .*"
    r"|- [^:]+: .*"
    r"|- .*(?:\[ad-hoc note\]|\(in [^()]*\))|- none (?:known )?yet|Nothing is known .*|Works with coding agents on.*)$"
)

Path = tuple[str, ...]
File = Literal["handbook", "summary"]


@dataclass(frozen=True, slots=True)
class Kept:
    """Lines of a person, under the headings where they stood."""

    under: Path
    lines: tuple[str, ...]
    #: The generated line just before them, if they follow one.
    after: str


@dataclass(frozen=True, slots=True)
class Record:
    """What was generated last time, and what a person took out since."""

    handbook: frozenset[str] | None = None
    summary: frozenset[str] | None = None
    taken_out: frozenset[str] = frozenset()


def split_record(text: str) -> tuple[str, Record]:
    """A text without the record that it is, or ends with, and the record."""
    match = _RECORD.search(text)
    if not match:
        return text, Record()
    found: dict[str, set[str]] = {"handbook": set(), "summary": set(), "out": set()}
    strays: list[str] = []
    for line in match[1].splitlines():
        name, _, hashes = line.partition(": ")
        if name in found and re.fullmatch(r"[0-9a-f ]+", hashes):
            found[name].update(hashes.split())
        elif line.strip():
            strays.append(line)
    record = Record(frozenset(found["handbook"]), frozenset(found["summary"]), frozenset(found["out"]))
    rest = [text[: match.start()].rstrip("\n"), *strays, text[match.end() :].lstrip("\n")]
    return "\n".join(rest), record


def record_lines(handbook: Iterable[str], summary: Iterable[str], taken_out: Iterable[str]) -> list[str]:
    """The lines of the record."""
    lines = [_OPEN]
    groups = (("handbook", map(key, handbook)), ("summary", map(key, summary)), ("out", taken_out))
    for name, hashes in groups:
        ordered = sorted(set(hashes) - {""})
        lines += [f"{name}: {' '.join(ordered[i : i + _PER_LINE])}" for i in range(0, len(ordered), _PER_LINE)]
    return [*lines, _CLOSE]


@lru_cache(maxsize=32_768)  # lines of a few handbooks: versions of one have most of theirs in common
def key(line: str) -> str:
    """The hash of a line; task numbers and how often it was said don't count: they change. "" for a blank line."""
    text = _COUNTS.sub("", _NUMBER.sub(r"\1: ", _REFERENCES.sub("", line.strip())))
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=5).hexdigest() if text else ""


def by_hand(text: str, generated: frozenset[str] | None, *, file: File) -> list[Kept]:
    """The lines of a person in `text`, in runs, each with its place."""
    found: list[Kept] = []
    under: list[str] = []
    run: list[str] = []
    run_after, last, own_level = "", "", 0

    def close() -> None:
        lines = list(run)
        while lines and not lines[-1].strip():
            lines.pop()
        if lines:
            found.append(Kept(tuple(under), tuple(lines), run_after))
        run.clear()

    lines = text.splitlines()
    code = _code_lines(lines)
    for number, line in enumerate(lines):
        fenced = number in code
        heading = None if fenced else _HEADING.match(line)
        ours = not fenced and _is_generated(line, generated, file)
        if heading and ours:
            close()
            del under[len(heading[1]) - 1 :]
            under += [""] * (len(heading[1]) - 1 - len(under)) + [_NUMBER.sub(r"\1: ", line.strip())]
            last, own_level = "", 0
        elif heading:
            # A person's heading: it and what stands under it are one piece.
            if not own_level:
                close()
                run_after = last
                del under[max(0, len(heading[1]) - 1) :]
            own_level = own_level or len(heading[1])
            run.append(line)
        elif not line.strip():
            if run:
                run.append("")
        elif ours and not own_level:
            close()
            last = key(line)
        else:
            if not run:
                run_after = last
            run.append(line)
    close()
    return found


def _code_lines(lines: Sequence[str]) -> frozenset[int]:
    """Numbers of the lines of code blocks, which are never generated. A fence that is never closed opens none."""
    found: set[int] = set()
    opened: int | None = None
    for number, line in enumerate(lines):
        if _FENCE.match(line):
            if opened is None:
                opened = number
            else:
                found.update(range(opened, number + 1))
                opened = None
    return frozenset(found)


def taken_out(text: str, generated: frozenset[str] | None) -> frozenset[str]:
    """Hashes of lines that were generated and are gone: a person took them out, or wrote them anew."""
    present = {key(line) for line in text.splitlines()}
    return frozenset(generated - present) if generated else frozenset()


def is_rewritten(text: str, record: Record) -> bool:
    """Whether another program wrote the handbook since: most of what was generated is gone, and more that is new is
    there than is left of it."""
    if record.handbook is None:
        return False
    present = {key(line) for line in text.splitlines()} - {""}
    left = len(present & record.handbook)
    return len(record.handbook) - left > left < len(present) - left


def put_back(lines: Sequence[str], kept: Sequence[Kept]) -> list[str]:
    """`lines` with a person's put back: after the line they followed, else at the end of their section."""
    out = list(lines)
    for piece in kept:
        # A code block that is never closed would swallow what follows: it goes last.
        unclosed = sum(_FENCE.match(line) is not None for line in piece.lines) % 2
        position = len(out) if unclosed else _place(out, piece)
        block = list(piece.lines)
        bullet = block[0].lstrip().startswith(("- ", "* "))
        if (
            position > 0
            and out[position - 1].strip()
            and not (bullet and out[position - 1].lstrip().startswith(("- ", "* ")))
        ):
            block.insert(0, "")
        if (
            position < len(out)
            and out[position].strip()
            and not (bullet and out[position].lstrip().startswith(("- ", "* ")))
        ):
            block.append("")
        out[position:position] = block
    return out


def _is_generated(line: str, generated: frozenset[str] | None, file: File) -> bool:
    if not line.strip():
        return True
    if generated is not None:
        return key(line) in generated
    shape = _HANDBOOK_SHAPE if file == "handbook" else _SUMMARY_SHAPE
    return shape.match(line) is not None


def _place(lines: Sequence[str], piece: Kept) -> int:
    """Where a piece goes: an index into `lines`."""
    if not piece.under:
        first = next((i for i, line in enumerate(lines) if line.startswith("#")), len(lines))
        after = next((i + 1 for i, line in enumerate(lines[:first]) if piece.after and key(line) == piece.after), None)
        return after if after is not None else (1 if lines[:1] == ["v1"] and first else 0)
    start, end = 0, len(lines)
    for depth in range(len(piece.under), 0, -1):
        found = _section(lines, piece.under[:depth])
        if found is not None:
            start, end = found
            break
    else:
        return _trimmed(lines, 0, len(lines))
    if piece.after:
        for i in range(start, end):
            if key(lines[i]) == piece.after:
                i += 1
                while i < end and lines[i].startswith("  "):
                    i += 1
                return i
    return _trimmed(lines, start, end)


def _section(lines: Sequence[str], path: Path) -> tuple[int, int] | None:
    """First line and end of the section under these headings, without its sub-sections."""
    stack: list[str] = []
    for i, line in enumerate(lines):
        heading = _HEADING.match(line)
        if not heading:
            continue
        del stack[len(heading[1]) - 1 :]
        stack += [""] * (len(heading[1]) - 1 - len(stack)) + [_NUMBER.sub(r"\1: ", line.strip())]
        if tuple(stack) == path:
            end = next((j for j in range(i + 1, len(lines)) if _HEADING.match(lines[j])), len(lines))
            return i + 1, end
    return None


def _trimmed(lines: Sequence[str], start: int, end: int) -> int:
    while end > start and not lines[end - 1].strip():
        end -= 1
    return end
