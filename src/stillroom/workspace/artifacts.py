"""Writes what code makes of stage-1 outputs: `raw_memories.md`, `rollout_summaries/*.md` (spec §1.7), byte for byte."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from stillroom.errors import WorkspaceError
from stillroom.store.records import Stage1Output
from stillroom.workspace.tree import DEFAULTS, TEMPORARY_PREFIX, naming, opened, parent, read, write_new

RAW_MEMORIES = "raw_memories.md"
SUMMARIES = "rollout_summaries"

_SLUG_CHARACTERS = 60
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_HASH_SPACE = len(_ALPHABET) ** 4
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{32}")
#: The last second that a four-digit year can say.
_LAST_SECOND = 253_402_300_799


@dataclass(frozen=True, slots=True)
class SyncReport:
    """Paths that a sync changes, or changed."""

    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    unchanged: int = 0

    @property
    def clean(self) -> bool:
        return not self.written and not self.deleted


def summary_stem(thread_id: str, source_updated_at: int, slug: str | None) -> str:
    """`<timestamp>-<hash>[-<slug>]`: the same for the same thread, whatever happens to it later."""
    seconds = source_updated_at
    if _UUID.fullmatch(thread_id):
        parsed = uuid.UUID(thread_id)
        seed = parsed.int & 0xFFFFFFFF
        if parsed.version == 7:
            seconds = (parsed.int >> 80) // 1000
    else:
        seed = 0
        for byte in thread_id.encode("utf-8", "surrogatepass"):
            seed = (seed * 31 + byte) & 0xFFFFFFFF
    stem = f"{_moment(seconds).strftime('%Y-%m-%dT%H-%M-%S')}-{_base62(seed % _HASH_SPACE)}"
    tail = _slug(slug or "")
    return f"{stem}-{tail}" if tail else stem


def raw_memories_text(outputs: Sequence[Stage1Output]) -> str:
    """All raw memories in one file, ascending by thread id."""
    if not outputs:
        return "# Raw Memories\n\nNo raw memories yet.\n"
    parts = ["# Raw Memories\n\nMerged stage-1 raw memories (stable ascending thread-id order):\n\n"]
    parts += [
        f"## Thread `{_line(output.thread_id)}`\n"
        f"updated_at: {_moment(output.source_updated_at).isoformat()}\n"
        f"cwd: {_line(output.cwd)}\n"
        f"rollout_path: {_line(output.rollout_path)}\n"
        f"rollout_summary_file: {stem}.md\n\n"
        f"{output.raw_memory.strip()}\n\n"
        for output, stem in _stems(outputs)
    ]
    return "".join(parts)


def summary_text(output: Stage1Output) -> str:
    """One thread's summary under the lines that say where it comes from."""
    branch = "" if output.git_branch is None else f"git_branch: {_line(output.git_branch)}\n"
    return (
        f"thread_id: {_line(output.thread_id)}\n"
        f"updated_at: {_moment(output.source_updated_at).isoformat()}\n"
        f"rollout_path: {_line(output.rollout_path)}\n"
        f"cwd: {_line(output.cwd)}\n"
        f"{branch}\n{output.rollout_summary}\n"
    )


def plan(folder: Path, outputs: Sequence[Stage1Output]) -> SyncReport:
    """What `sync` would change. Writes nothing."""
    return _differences(folder, _wanted(outputs))


def sync(folder: Path, outputs: Sequence[Stage1Output]) -> SyncReport:
    """Bring both kinds of file in line with the outputs; only what differs is written, stale summaries are deleted."""
    wanted = _wanted(outputs)
    report = _differences(folder, wanted)
    with opened(folder) as root:
        for path in report.deleted:
            with parent(root, path, create=False) as (descriptor, name):
                os.unlink(name, dir_fd=descriptor)
        for path in report.written:
            with naming(path, "written"), parent(root, path, create=True) as (descriptor, name):
                _remove_what_is_no_file(descriptor, name)
                temporary = TEMPORARY_PREFIX + "sync"
                write_new(root, temporary, wanted[path], executable=False, durable=False)
                os.replace(temporary, name, src_dir_fd=root, dst_dir_fd=descriptor)
    return report


def _wanted(outputs: Sequence[Stage1Output]) -> dict[str, bytes]:
    wanted = {f"{SUMMARIES}/{stem}.md": _encoded(summary_text(output)) for output, stem in _stems(outputs)}
    return {**wanted, RAW_MEMORIES: _encoded(raw_memories_text(outputs))}


def _differences(folder: Path, wanted: dict[str, bytes]) -> SyncReport:
    written: list[str] = []
    limit = DEFAULTS.max_folder_bytes
    with opened(folder) as root:
        present = _summaries(root)
        for path, data in wanted.items():
            if path != RAW_MEMORIES and path not in present:
                written.append(path)
                continue
            found = read(root, path, max_bytes=limit)
            if found is None or found[0] != data or found[1].executable:
                written.append(path)
    deleted = sorted(present - wanted.keys())
    return SyncReport(tuple(written), tuple(deleted), len(wanted) - len(written))


def _summaries(root: int) -> set[str]:
    try:
        with parent(root, f"{SUMMARIES}/x", create=False) as (descriptor, _), os.scandir(descriptor) as listing:
            return {
                f"{SUMMARIES}/{entry.name}"
                for entry in listing
                if entry.name.endswith(".md") and not entry.is_dir(follow_symlinks=False)
            }
    except FileNotFoundError:
        return set()
    except OSError as error:
        raise WorkspaceError(f"`{SUMMARIES}` can't be read: {error.strerror}") from error


def _stems(outputs: Sequence[Stage1Output]) -> list[tuple[Stage1Output, str]]:
    """Every output with its stem, ascending by thread id. Two threads of one stem: the later id gets a number."""
    named: list[tuple[Stage1Output, str]] = []
    taken: set[str] = set()
    for output in sorted(outputs, key=lambda output: output.thread_id):
        stem = first = summary_stem(output.thread_id, output.source_updated_at, output.rollout_slug)
        number = 2
        while stem in taken:
            stem = f"{first}-{number}"
            number += 1
        taken.add(stem)
        named.append((output, stem))
    return named


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(min(max(seconds, 0), _LAST_SECOND), UTC)


def _base62(number: int) -> str:
    digits = ""
    for _ in range(4):
        number, digit = divmod(number, len(_ALPHABET))
        digits = _ALPHABET[digit] + digits
    return digits


def _slug(text: str) -> str:
    kept = "".join(c.lower() if c.isascii() and c.isalnum() else "_" for c in text[:_SLUG_CHARACTERS])
    return kept.rstrip("_")


def _line(text: str) -> str:
    """A header value can't begin another header."""
    return " ".join(text.splitlines()) if any(c in text for c in "\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029") else text


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _remove_what_is_no_file(descriptor: int, name: str) -> None:
    """Make room: `os.replace` can't put a file over an empty folder, and one in our place is nobody's."""
    try:
        os.rmdir(name, dir_fd=descriptor)
    except (FileNotFoundError, NotADirectoryError):
        pass
