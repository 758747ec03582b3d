"""What a version of the folder says was extracted: the rows that it rested on, read back from its copies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from stillroom.store.records import Stage1Restored
from stillroom.workspace.artifacts import RAW_MEMORIES, SUMMARIES, raw_sections, summary_stem
from stillroom.workspace.git import Content

_HEADER = re.compile(
    r"## Thread `(?P<thread_id>.*)`\nupdated_at: (?P<at>.*)\ncwd: .*\nrollout_path: .*\n"
    r"rollout_summary_file: (?P<file>.*)\n\n"
)


def outputs_in(files: Mapping[str, Content], *, at: int) -> list[Stage1Restored]:
    """Every output that a version has whole; `at` is when it was made. What can't be read is not among them."""
    raw = files.get(RAW_MEMORIES)
    text = "" if raw is None else raw.data.decode("utf-8", "replace")
    found = [_output(section, files, at=at) for _, section in raw_sections(text)]
    return [output for output in found if output is not None]


def _output(section: str, files: Mapping[str, Content], *, at: int) -> Stage1Restored | None:
    head = _HEADER.match(section)
    summary = files.get(f"{SUMMARIES}/{head['file']}") if head else None
    if head is None or summary is None:
        return None
    try:
        updated_at = int(datetime.fromisoformat(head["at"]).timestamp())
    except ValueError:
        return None
    _, _, said = summary.data.decode("utf-8", "replace").partition("\n\n")
    stem = Path(head["file"]).stem
    slug = stem.removeprefix(summary_stem(head["thread_id"], updated_at, None)).removeprefix("-")
    return Stage1Restored(
        thread_id=head["thread_id"],
        source_updated_at=updated_at,
        raw_memory=section[head.end() :].rstrip("\n"),
        rollout_summary=said.removesuffix("\n"),
        rollout_slug=slug or None,
        generated_at=at,
    )
