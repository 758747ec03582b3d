"""`stillroom ingest`: one file of another agent's sessions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stillroom.cli.options import Flag, current_settings
from stillroom.cli.output import print_data, print_json, print_lines
from stillroom.cli.progress import progress_bars
from stillroom.clock import SystemClock
from stillroom.homes import Format
from stillroom.recording.ingest import ingest_file
from stillroom.recording.ingested import Ingested, IngestReport, LeftOut
from stillroom.wording import many, plain

_TOLD = {"new": "taken in", "updated": "taken in anew", "unchanged": "nothing new"}
_PREVIEW_CHARS = 60
_KINDS_TOLD = 8


def ingest_command(
    file: Path,
    /,
    *,
    format: Format,
    cwd: Path | None = None,
    json: Flag = False,
) -> int:
    """Take one file of sessions into Stillroom's home: a backup, another machine's, or a format without a home.

    Every thread in it becomes a redacted rollout under `sessions/`, with its own id, times and agent, and every later
    pass reads it. The same file again adds nothing; one that has grown brings what is new. The file is only read.

    ```
    stillroom ingest ~/old-laptop/rollout-2026-05-04T10-11-12-0196a4c2-7d1e-7000-8000-000000000001.jsonl --format codex
    stillroom ingest session.jsonl --format claude-code --cwd ~/src/shop --json
    ```

    Parameters
    ----------
    file
        The file.
    format
        How the sessions in it are stored; `docs/agents.md` tells of each.
    cwd
        The folder that the sessions worked in, for formats that don't say it, or where it has another name here.
    json
        Print `{file, format, threads, refused}` as JSON.
    """
    settings = current_settings()
    with progress_bars(wanted=not json) as listen:
        report = ingest_file(
            settings,
            file,
            format=format,
            clock=SystemClock(),
            cwd=str(cwd.expanduser().absolute()) if cwd else None,
            on_progress=listen,
        )
    if json:
        print_json(report)
    else:
        _print(report)
    return 1 if report.refused else 0


def _print(report: IngestReport) -> None:
    for thread in report.threads:
        print_data(
            plain(f"{thread.thread_id}  {_TOLD[thread.outcome]}: {many(thread.items, 'record')}  {_preview(thread)}")
        )
        for told in _left_out(thread.left_out):
            print_data(plain(f"    {told}"))
        if thread.source not in ("cli", "vscode"):
            print_data(
                plain(f"    no person started it (`{thread.source[:40]}`): it is kept, but nothing is distilled")
            )
        elif not thread.preview:
            print_data("    no person says anything in it: it is kept, but nothing is distilled")
    for refused in report.refused:
        print_lines([("yellow", refused.reason)])
    if any(thread.outcome != "unchanged" for thread in report.threads):
        print_lines([(None, "the next `stillroom run` reads what is finished; `--backfill` also what is old")])


def _preview(thread: Ingested) -> str:
    text = thread.preview
    return text if len(text) <= _PREVIEW_CHARS else text[: _PREVIEW_CHARS - 1] + "…"


def _left_out(left: LeftOut) -> Iterator[str]:
    if left.bad_lines:
        yield f"left out: {many(left.bad_lines, 'line')} that can't be read"
    told = (
        ("left out", left.dropped),
        ("unknown, and left out", left.unknown),
    )
    for what, counts in told:
        kinds = sorted(counts.items(), key=lambda each: -each[1])
        if kinds:
            more = f", and {len(kinds) - _KINDS_TOLD:,} kinds more" if len(kinds) > _KINDS_TOLD else ""
            yield f"{what}: " + ", ".join(f"{count:,} × {kind}" for kind, count in kinds[:_KINDS_TOLD]) + more
    if left.images or left.cut_bytes:
        yield f"cut: {many(left.images, 'image')}, and {many(left.cut_bytes, 'byte')} of blobs and huge texts"
    if left.torn:
        yield "its last line has no end yet: take it in again when the session is over"
