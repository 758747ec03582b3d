"""From all inputs of the second phase to `MEMORY.md` and `memory_summary.md`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from stillroom.config import StageTwo
from stillroom.offline.folder import byhand
from stillroom.offline.folder.groups import group
from stillroom.offline.folder.handbook import handbook
from stillroom.offline.folder.merge import Block, merge
from stillroom.offline.folder.notes import read_notes
from stillroom.offline.folder.reading import Session, read_sessions
from stillroom.offline.folder.summary import ROOMS, VERSION, summary
from stillroom.rollouts.redact import redact
from stillroom.store.records import Stage1Output

HANDBOOK, SUMMARY, LINES = "MEMORY.md", "memory_summary.md", ".stillroom-lines"
_BYTES_PER_TOKEN = 4


def consolidate(folder: Path, inputs: Sequence[Stage1Output], *, now: int, limits: StageTwo) -> None:
    """Write both files and the record of their lines into `folder`, from `inputs`, the notes there, and what a person
    wrote into the files before.

    Deterministic and idempotent: a second run on the same inputs changes no byte. Days come from the inputs, so `now`
    changes nothing either; it is taken so that every consolidator is called alike.
    """
    del now
    # 1. What is there, and what of it a person wrote or took out.
    old_handbook, record = byhand.split_record(_read(folder / HANDBOOK))
    if record.handbook is None:
        _, record = byhand.split_record(_read(folder / LINES))
        if byhand.is_rewritten(old_handbook, record):
            record = byhand.Record()
    old_summary = _read(folder / SUMMARY)
    own_handbook = byhand.by_hand(old_handbook, record.handbook, file="handbook")
    own_summary = byhand.by_hand(old_summary, record.summary, file="summary")
    out = record.taken_out
    if old_handbook.strip():
        out |= byhand.taken_out(old_handbook, record.handbook)
    if old_summary.strip():
        out |= byhand.taken_out(old_summary, record.summary)

    def wanted(line: str) -> bool:
        return byhand.key(line) not in out

    # 2. What the inputs and notes say.
    sessions = sorted(read_sessions(folder, inputs), key=_rank)
    notes = read_notes(folder)

    # 3. As much of it as fits, the most useful first.
    def written(blocks: Sequence[Block]) -> tuple[list[str], list[str]]:
        made = [redact(line) for line in handbook(blocks, notes, wanted)]
        return made, byhand.put_back(made, own_handbook)

    best = _most(
        len(sessions), lambda count: _bytes(written(_blocks(sessions[:count]))[1]) <= limits.max_handbook_bytes
    )
    blocks = _blocks(sessions[:best])
    made_handbook, new_handbook = written(blocks)
    most = limits.max_summary_tokens * _BYTES_PER_TOKEN
    for room in ROOMS:
        made_summary = [redact(line) for line in summary(blocks, notes, room, wanted)]
        new_summary = byhand.put_back(made_summary, own_summary)
        if _bytes(new_summary) <= most:
            break
    new_summary = _first_line_first(new_summary)

    # 4. Write, with the record of what was generated.
    _write(folder / HANDBOOK, new_handbook)
    _write(folder / SUMMARY, new_summary)
    _write(folder / LINES, byhand.record_lines(made_handbook, made_summary, _still(out)))


def _rank(session: Session) -> tuple[int, int, str]:
    """What is used most comes first, then the newest: the rest is left out where there is no room. Inputs come in the
    order of their ids, in which the oldest is the first."""
    output = session.output
    return -output.usage_count, -max(output.source_updated_at, output.last_usage or 0), output.thread_id


def _blocks(sessions: Sequence[Session]) -> list[Block]:
    return [merge(found) for found in group(sessions)]


def _most(count: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `count` that fits, by halving."""
    if fits(count):
        return count
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _bytes(lines: Sequence[str]) -> int:
    return sum(len(line.encode("utf-8", "surrogatepass")) + 1 for line in lines)


def _still(out: frozenset[str]) -> list[str]:
    return sorted(out)[:2000]


def _first_line_first(lines: list[str]) -> list[str]:
    """Whatever a person put ahead of it, the first line is the version."""
    return lines if lines[:1] == [VERSION] else [VERSION, *(line for line in lines if line != VERSION)]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _write(path: Path, lines: Sequence[str]) -> None:
    data = ("\n".join(lines).rstrip("\n") + "\n").encode("utf-8", "replace")
    if path.is_file() and path.read_bytes() == data:
        return
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_bytes(data)
    temporary.replace(path)
