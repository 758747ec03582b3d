"""Other memory systems on this machine, known by entries in agents' settings and by their folders.

Two memories of one session cost tokens twice and may contradict each other; two writers of one folder fight.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from stillroom.config import Settings
from stillroom.homes import claude_home, codex_home
from stillroom.insight.doctor.finding import Found, found, ok

#: Settings are kilobytes; Claude Code's `.claude.json` remembers prompts, and has been seen at many megabytes.
_MAX_BYTES = 32 * 1024 * 1024


class System(NamedTuple):
    """One memory system."""

    title: str
    #: In the name, command or address of an entry.
    pattern: re.Pattern[str]
    #: Folders of its own, in the home.
    folders: tuple[str, ...] = ()


_SYSTEMS = (
    System("claude-mem", re.compile(r"claude-mem"), (".claude-mem",)),
    System("OpenMemory (mem0)", re.compile(r"\bmem0\b|mem0-mcp|openmemory"), (".mem0",)),
    System("Letta", re.compile(r"\bletta\b(?!-code)")),
    System("Basic Memory", re.compile(r"basic-memory"), (".basic-memory",)),
    System("Supermemory", re.compile(r"supermemory")),
    System("Graphiti (Zep)", re.compile(r"graphiti|\bzep\b")),
    System("Cognee", re.compile(r"cognee")),
    System("Hindsight", re.compile(r"hindsight")),
    System("Cipher (ByteRover)", re.compile(r"byterover|@byterover/cipher")),
    System("agentmemory", re.compile(r"agentmemory")),
    System("the MCP memory server", re.compile(r"server-memory|mcp-memory|memory-mcp")),
)
#: Settings of agents that name MCP servers, by the agent's title; a path in the home, and the key.
_SERVERS = (
    ("Claude Code", ".claude.json", "mcpServers"),
    ("Gemini CLI", ".gemini/settings.json", "mcpServers"),
    ("Qwen Code", ".qwen/settings.json", "mcpServers"),
    ("Copilot CLI", ".copilot/mcp-config.json", "mcpServers"),
    ("Cursor", ".cursor/mcp.json", "mcpServers"),
    ("Kimi Code", ".kimi-code/mcp.json", "mcpServers"),
    ("OpenCode", ".config/opencode/opencode.json", "mcp"),
    ("Crush", ".config/crush/crush.json", "mcp"),
)


def check_others(settings: Settings, environ: Mapping[str, str]) -> Iterator[Found]:
    """Who else remembers here, and whether that hurts."""
    told = [
        *_codex(settings, environ),
        *_claude(settings.root, environ),
        *_servers(),
        *_folders(),
    ]
    yield from told or [ok("other memories", "none is known to be here")]


def _codex(settings: Settings, environ: Mapping[str, str]) -> Iterator[Found]:
    home = codex_home(environ)
    path = home / "config.toml"
    table = _toml(path)
    if _table(table.get("features")).get("memories") is True:
        memories = _table(table.get("memories"))
        writes = memories.get("generate_memories") is not False
        if writes and settings.root.resolve() == (home / "memories").resolve():
            what = "Codex's own memories are on and write the same folder: each would take out what the other wrote"
            remedy = "codex features disable memories"
            yield found("other memories", "error", what, where=str(settings.root), remedy=remedy)
        elif memories.get("use_memories") is not False:
            what = "Codex's own memories are on: its sessions are told two memories"
            remedy = "codex features disable memories  # or leave it: they share no file"
            yield found("other memories", "note", what, where=str(path), remedy=remedy)
    yield from _named("Codex CLI", path, _table(table.get("mcp_servers")))


def _claude(root: Path, environ: Mapping[str, str]) -> Iterator[Found]:
    home = claude_home(environ)
    path = home / "settings.json"
    settings = _json(path)
    for event, groups in _table(settings.get("hooks")).items():
        if system := _system(groups):
            what = f"{system.title} hooks into Claude Code's `{event}`: its sessions are told two memories"
            yield found("other memories", "warning", what, where=str(path), remedy="keep one of the two")
            break
    for name, enabled in _table(settings.get("enabledPlugins")).items():
        if enabled is True and (system := _system(name)):
            what = f"{system.title} is a plugin of Claude Code: its sessions are told two memories"
            yield found("other memories", "warning", what, where=str(path), remedy=f"claude plugin disable {name}")
    yield from _auto_memory(home, root, path, settings, environ)


def _auto_memory(
    home: Path,
    root: Path,
    path: Path,
    settings: Mapping[str, Any],  # Any: Claude Code's
    environ: Mapping[str, str],
) -> Iterator[Found]:
    if settings.get("autoMemoryEnabled") is False or environ.get("CLAUDE_CODE_DISABLE_AUTO_MEMORY"):
        return
    place = settings.get("autoMemoryDirectory")
    if isinstance(place, str) and Path(place).expanduser().resolve() == root.resolve():
        what = "Claude Code's auto memory writes the same folder: each would take out what the other wrote"
        remedy = "give `autoMemoryDirectory` there a folder of its own"
        yield found("other memories", "error", what, where=str(path), remedy=remedy)
    elif any(_some((home / "projects").glob("*/memory/MEMORY.md"))):
        what = "Claude Code keeps an auto memory of its own beside this one; they share no file, and it isn't read"
        remedy = 'set `"autoMemoryEnabled": false` there, or leave it'
        yield found("other memories", "note", what, where=str(path), remedy=remedy)


def _servers() -> Iterator[Found]:
    for agent, name, key in _SERVERS:
        path = Path.home() / name
        yield from _named(agent, path, _table(_json(path).get(key)))


def _named(agent: str, path: Path, servers: Mapping[str, Any]) -> Iterator[Found]:
    for name, entry in servers.items():
        if name != "stillroom" and (system := _system([name, entry])):
            what = f"{system.title} is an MCP server of {agent} (`{name}`): a second memory, with tools of its own"
            yield found("other memories", "note", what, where=str(path), remedy="keep both only if you use both")


def _folders() -> Iterator[Found]:
    for system in _SYSTEMS:
        for name in system.folders:
            path = Path.home() / name
            if path.is_dir():
                what = f"{system.title} keeps something here; what its own agents say is never learnt"
                yield found("other memories", "note", what, where=str(path))


def _system(entry: object) -> System | None:
    """The system that an entry of settings speaks of."""
    text = json.dumps(entry, default=str).lower()
    return next((system for system in _SYSTEMS if system.pattern.search(text)), None)


def _some(paths: Iterator[Path]) -> Iterator[bool]:
    try:
        for path in paths:
            yield path.is_file()
    except OSError:
        return


def _json(path: Path) -> dict[str, Any]:  # Any: somebody else's settings
    data = _read(path)
    try:
        return _table(json.loads(data)) if data else {}
    except (ValueError, RecursionError):
        return {}


def _toml(path: Path) -> dict[str, Any]:  # Any: likewise
    try:
        return tomllib.loads((_read(path) or b"").decode("utf-8"))
    except (ValueError, RecursionError):
        return {}


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError:
        return None
    return data if len(data) <= _MAX_BYTES else None


def _table(value: object) -> dict[str, Any]:  # Any: likewise
    return value if isinstance(value, dict) else {}


__all__ = ["check_others"]
