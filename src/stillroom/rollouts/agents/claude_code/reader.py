"""Find Claude Code's threads: one file a session, one a sub-agent; one that has not changed is not opened."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.agents.claude_code.branches import inherited, superseded
from stillroom.rollouts.agents.claude_code.items import Records
from stillroom.rollouts.agents.claude_code.traits import Traits, read_tail
from stillroom.rollouts.agents.ends import read_description
from stillroom.rollouts.agents.scan import File, scan
from stillroom.rollouts.agents.scan import refreshed as refreshed
from stillroom.rollouts.agents.talk import NOTHING, past_of
from stillroom.rollouts.batches import read_batches
from stillroom.rollouts.found import Broken, Discovery, Found
from stillroom.rollouts.lines import open_stored
from stillroom.rollouts.speech import first_words, preview_text
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.stream import ItemStream, open_stream
from stillroom.thread import FileStamp, Thread

AGENT = "claude-code"
COPIES = True
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_SESSION = re.compile(rf"({_UUID})\.jsonl")
_SUB_AGENT = re.compile(r"(agent-[\w-]{1,100})\.jsonl", re.ASCII)
_FOLDER = re.compile(_UUID)
# Workflows keep their agents' files two folders deeper.
_DEPTH = 3
_SUB_AGENTS = "subagents"


class _Described(msgspec.Struct, rename="camel"):
    """What stands beside a sub-agent's file."""

    agent_type: str = ""
    description: str = ""


def discover(
    home: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every session and sub-agent under `home`, oldest first; `known` are the stamps by path."""
    files = [home.absolute()] if home.is_file() else []
    for project in _entries(home.absolute() / "projects"):
        try:
            files += _files(project.path, is_session=False, depth=_DEPTH)
        except OSError as error:
            yield Broken(project.path, f"`{project.path}` can't be looked at: {error.strerror}")
    yield from scan(files, known, lambda file: _look(file, max_line_bytes, reading))


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a session or a sub-agent's file. Raises `RolloutError` if it can't be opened, or is no file.

    What an earlier session holds too is left out, and what its user took back is marked; with `stop_after_bytes`
    neither is looked for, and the iteration ends after the line that passes that mark.
    """
    of_agent, past = _SUB_AGENT.fullmatch(path.name) is not None, NOTHING
    if not of_agent and stop_after_bytes is None:
        past = past_of(path, superseded, inherited, max_line_bytes=max_line_bytes, reading=reading)
    records = Records(ReadStats(), of_agent=of_agent, past=past, reading=reading)
    return open_stream(path, records, max_line_bytes=max_line_bytes, stop_after_bytes=stop_after_bytes, reading=reading)


def _files(folder: str, *, is_session: bool, depth: int) -> Iterator[Path]:
    for entry in _entries(folder):
        try:
            if _SUB_AGENT.fullmatch(entry.name) or (not is_session and _SESSION.fullmatch(entry.name)):
                if entry.is_file():
                    yield Path(entry.path)
            elif is_session:
                if depth and entry.is_dir(follow_symlinks=False):
                    yield from _files(entry.path, is_session=True, depth=depth - 1)
            elif _FOLDER.fullmatch(entry.name):
                yield from _files(os.path.join(entry.path, _SUB_AGENTS), is_session=True, depth=depth)  # noqa: PTH118
        except FileNotFoundError:  # gone since it was listed
            continue


def _session_of(path: Path) -> str | None:
    """The session in whose folder a sub-agent's file lies; older clients lay it beside the sessions."""
    folders = path.parts[-_DEPTH - 3 : -1]
    under = (name for name, below in pairwise(folders) if below == _SUB_AGENTS and _FOLDER.fullmatch(name))
    return next(under, None)


def _entries(folder: str | Path) -> list[os.DirEntry[str]]:
    """What is no folder has no entries."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _look(file: File, max_line_bytes: int, reading: Reading) -> Discovery:
    path = str(file.path)
    traits, preview, stats = _read_head(file.path, max_line_bytes, reading)
    tail, offset = read_tail(file.path, size=file.size, reading=reading)
    if not traits.kinds and not tail.kinds:
        return Broken(path, f"`{path}` can't be used: {stats.broken or 'it has no complete record'}")
    is_agent = _SUB_AGENT.fullmatch(file.path.name) is not None
    parent = (_session_of(file.path) or traits.session_id) if is_agent else None
    described = read_description(file.path.with_suffix(".meta.json"), _Described) if is_agent else _Described()
    mtime_ms = file.mtime_ns // 1_000_000
    created = traits.first_ms or tail.first_ms or mtime_ms
    title = described.description or tail.title or traits.title
    thread = Thread(
        thread_id=f"{parent}:{file.path.stem}" if parent else _session_id(file.path, traits),
        agent=AGENT,
        rollout_path=path,
        source=_source(traits, tail, described.agent_type or "other" if is_agent else None),
        cwd=traits.cwd or tail.cwd or "",
        created_at_ms=created,
        updated_at_ms=max(tail.last_ms or mtime_ms, created),
        title=preview_text(title, max_chars=reading.preview_chars),
        preview=preview,
        parent_thread_id=parent,
        git_branch=tail.branch or traits.branch,
        cli_version=tail.version or traits.version,
    )
    return Found(thread, file.stamp(offset))


def _session_id(path: Path, traits: Traits) -> str:
    """The file's name; of one that was renamed, what it says itself."""
    return path.stem if _SESSION.fullmatch(path.name) else traits.session_id or path.stem


def _read_head(path: Path, max_line_bytes: int, reading: Reading) -> tuple[Traits, str, ReadStats]:
    """What the first bytes tell, down to the first words of the user if they are not too far away.

    In a sub-agent's file no user speaks, and its first line tells all.
    """
    of_agent = _SUB_AGENT.fullmatch(path.name) is not None
    traits, stats = Traits(), ReadStats()
    records = Records(ReadStats(), of_agent=of_agent, reading=reading)
    with open_stored(path, reading=reading) as file:
        for lines in read_batches(
            file,
            stats,
            max_line_bytes=max_line_bytes,
            stop_after_bytes=0 if of_agent else reading.long_head_bytes,
            wanted=records.may_matter,
            reading=reading,
        ):
            for line in lines:
                if stats.bytes <= reading.head_bytes:
                    traits.learn(line)
                elif b'"user"' not in line:
                    continue
                for item in records.items([line], 0):
                    if words := first_words(item, max_chars=reading.preview_chars):
                        return traits, words, stats
    return traits, "", stats


def _source(head: Traits, tail: Traits, agent_type: str | None) -> str:
    """How the session was started, in Codex's words. A session that was ever a person's is one."""
    if agent_type is not None:
        return msgspec.json.encode({"subagent": agent_type}).decode()
    sources = [traits.source for traits in (tail, head) if traits.source]
    return next((source for source in sources if source != "exec"), sources[0] if sources else "cli")
