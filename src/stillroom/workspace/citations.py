"""Fills in what a citation in `MEMORY.md` says of its file: an agent writes the name, code knows the rest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stillroom.config import StageTwo
from stillroom.pattern import late
from stillroom.workspace.artifacts import SUMMARIES
from stillroom.workspace.layout import HANDBOOK
from stillroom.workspace.scanning import scan
from stillroom.workspace.tree import Entry, drop, opened, write_new

_CITATION = late(rf"^- `?({SUMMARIES}/[^\s`()]+\.md)`?(?: *\((.*)\))? *$")
_HEADER = late(r"^(thread_id|updated_at|rollout_path|cwd): (.*)$")
_HEADER_BYTES = 16_384
#: As the format has them.
_FIELDS = ("cwd", "rollout_path", "updated_at", "thread_id")
_FIELD = late(r"(?:^|, )(?:cwd|rollout_path|updated_at|thread_id)=[^,]*")


def fill_citations(folder: Path, *, limits: StageTwo) -> None:
    """Complete the citations in the handbook of a staging folder, out of the headers of the summaries there."""
    texts: dict[str, bytes] = {}

    def visit(path: str, data: bytes, entry: Entry) -> None:
        if path == HANDBOOK:
            texts[path] = data
        elif path.startswith(f"{SUMMARIES}/"):
            texts[path] = data[:_HEADER_BYTES]

    scan(folder, limits=limits, visit=visit)
    handbook = texts.pop(HANDBOOK, None)
    if handbook is None:
        return
    try:
        text = handbook.decode()
    except UnicodeDecodeError:  # the validators will say so
        return
    filled = filled_in(text, {path: header(data.decode("utf-8", "replace")) for path, data in texts.items()})
    if filled != text:
        with opened(folder) as root:
            drop(root, HANDBOOK)
            write_new(root, HANDBOOK, filled.encode(), executable=False, durable=False)


def filled_in(text: str, headers: Mapping[str, Mapping[str, str]]) -> str:
    """`text` with what is known of each cited file in its brackets; a note that stands there stays."""
    lines = text.split("\n")
    return "\n".join([_filled(line, headers) for line in lines])


def header(summary: str) -> dict[str, str]:
    """The lines at the top of a summary that say where it comes from."""
    head = summary.partition("\n\n")[0]
    return {match[1]: match[2] for line in head.split("\n") if (match := _HEADER.match(line))}


def _filled(line: str, headers: Mapping[str, Mapping[str, str]]) -> str:
    cited = _CITATION.match(line)
    known = headers.get(cited[1]) if cited else None
    if not cited or not known:
        return line
    told = cited[2] or ""
    facts = [f"{name}={known[name]}" for name in _FIELDS if name in known]
    if all(fact in told for fact in facts):
        return line
    note = _FIELD.sub("", told).strip(", ")
    return f"- {cited[1]} ({', '.join([*facts, *([note] if note else [])])})"
