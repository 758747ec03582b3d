"""Codex CLI: one hook in `hooks.json` and one MCP server in `config.toml`, both in its home.

What the real one does (0.171.0), and why it is a hook and not Codex's own read path, is told in
`docs/decisions/0004-how-memory-reaches-an-agent.md`.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from stillroom.integrations.bounds import MAX_CONTEXT_CHARS
from stillroom.integrations.hooks_json import our_handlers, put_hook, take_hooks
from stillroom.integrations.json_text import NotEditable, check
from stillroom.integrations.programs import Programs, is_our_server

AGENT = "codex"
EVENT = "SessionStart"
SERVER = "stillroom"
TIMEOUT_SECONDS = 10
_WRITTEN_BY = "# Written by `stillroom init`; `stillroom uninit` takes it out."


def hooks_with_us(text: str, programs: Programs) -> str:
    """`hooks.json` with our hook."""
    handler = {
        "type": "command",
        "command": programs.hook_command(AGENT, "session-start"),
        "timeout": TIMEOUT_SECONDS,
        # Codex's own limit of 10,000 characters would cut a full summary in the middle.
        "additionalContextLimit": MAX_CONTEXT_CHARS[AGENT],
    }
    return take_hooks(put_hook(text if text.strip() else "{}\n", EVENT, handler), keep=(EVENT,))


def hooks_without_us(text: str) -> str:
    """`hooks.json` without us."""
    return take_hooks(text)


def config_with_us(text: str, programs: Programs, home: Path | None) -> str:
    """`config.toml` with our MCP server at its end, or with its command renewed where it stands.

    Raises `NotEditable` if another server has our name, or the file can't take the table.
    """
    command, *arguments = programs.stillroom
    arguments += ["mcp", "--home", str(home)] if home else ["mcp"]
    entry = {"command": command, "args": arguments}
    there = _servers(text).get(SERVER)
    if there is None:
        return _checked(text, _with_block(text, entry), entry)
    if not (isinstance(there, dict) and is_our_server(there.get("command"), there.get("args"))):
        raise NotEditable(f"`[mcp_servers.{SERVER}]` is there, and is another program's")
    if (there["command"], there.get("args")) == (command, arguments):
        return text
    document = _document(text)
    server: Any = document["mcp_servers"][SERVER]
    server["command"], server["args"] = command, arguments
    return _checked(text, tomlkit.dumps(document), {**there, **entry})


def config_without_us(text: str) -> str:
    """`config.toml` without our MCP server."""
    there = _servers(text).get(SERVER)
    if not (isinstance(there, dict) and is_our_server(there.get("command"), there.get("args"))):
        return text
    block = _block(there, newline="\r\n" if "\r\n" in text else "\n")
    if block in text:
        before, _, after = text.rpartition(block)
        return _checked(text, before + after, None)
    document = _document(text)
    servers: Any = document["mcp_servers"]
    del servers[SERVER]
    return _checked(text, tomlkit.dumps(document), None)


def remarks(config: str, root: Path, codex_home: Path) -> list[str]:
    """What a person has to know or to do."""
    settings = _parsed(config)
    said = []
    features, memories = settings.get("features", {}), settings.get("memories", {})
    if features.get("hooks") is False:
        said.append("`hooks = false` stands under `[features]`: Codex runs no hook, and no memory reaches a session")
    if features.get("memories") and memories.get("use_memories") is not False:
        same = root.resolve() in (codex_home / "memories", (codex_home / "memories").resolve())
        what = "the same folder a second time" if same else "its own memory beside this one"
        said.append(
            f"Codex's own memories are on: a session is given {what}. `codex features disable memories` turns them off"
        )
    return said


def is_trusted(config: str, hooks: str, hooks_path: Path) -> bool:
    """Whether Codex was told that our hook may run. That it was this very command, only Codex can tell."""
    state = _parsed(config).get("hooks", {}).get("state", {})
    places = [path for path, _ in our_handlers(check(hooks), EVENT)] if hooks.strip() else []
    keys = [f"{hooks_path}:session_start:{group}:{handler}" for _, _, group, _, handler in places]
    return any(state.get(key, {}).get("trusted_hash") for key in keys)


def _with_block(text: str, entry: dict[str, Any]) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    end = newline if text and not text.endswith("\n") else ""
    return text + end + _block(entry, newline=newline)


def _block(entry: dict[str, Any], *, newline: str) -> str:
    """The lines as we write them: a later removal takes exactly these."""
    table = tomlkit.dumps({"command": entry["command"], "args": entry["args"]})
    return f"\n{_WRITTEN_BY}\n[mcp_servers.{SERVER}]\n{table}".replace("\n", newline)


def _servers(text: str) -> dict[str, Any]:
    servers = _parsed(text).get("mcp_servers", {})
    if not isinstance(servers, dict):
        raise NotEditable("`mcp_servers` is no table")
    return servers


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        raise NotEditable(f"no valid TOML: {error}") from error


def _document(text: str) -> tomlkit.TOMLDocument:
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise NotEditable(f"no TOML that can be kept as it is: {error}") from error
    if tomlkit.dumps(document) != text:
        raise NotEditable("no TOML that can be kept as it is")
    return document


def _checked(before: str, after: str, entry: dict[str, Any] | None) -> str:
    """`after`, if nothing but our server differs."""
    old, new = _parsed(before), _parsed(after)
    old.setdefault("mcp_servers", {}).pop(SERVER, None)
    found = new.setdefault("mcp_servers", {}).pop(SERVER, None)
    if old != new or found != entry:
        raise NotEditable("the edit would change more than our entry")
    return after
