"""Codex's `config.toml`: our MCP server, and our hook where a person keeps hooks there.

What is new is added as text at the end, so that every comment stays by what it explains. What is ours already is
changed where it stands. Every edit is parsed again: nothing but our entry may differ.
"""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from stillroom.integrations.bounds import SERVER_START_SECONDS
from stillroom.integrations.json_text import NotEditable
from stillroom.integrations.programs import is_our_hook, is_our_server

SERVER = "stillroom"
#: What we write of it, in this order.
_FIELDS = ("command", "args", "startup_timeout_sec")
_WRITTEN_BY = "# Written by `stillroom init`; `stillroom uninit` takes it out."


def parse_config(text: str) -> dict[str, Any]:
    """The settings. Raises `NotEditable`."""
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except (ValueError, RecursionError) as error:
        raise NotEditable(f"no valid TOML: {error}") from error


def put_server(text: str, command: list[str]) -> str:
    """The text with our server. Raises `NotEditable` if another program's has our name."""
    wanted = parse_config(text)
    servers = _table(wanted, "mcp_servers")
    there = servers.get(SERVER)
    if there is not None and not _is_ours(there):
        raise NotEditable(f"`[mcp_servers.{SERVER}]` is there, and is another program's")
    entry = {"command": command[0], "args": command[1:]}
    if there is None:
        servers[SERVER] = {**entry, "startup_timeout_sec": SERVER_START_SECONDS}
        try:
            return _checked(_with_block(text, _server_block(servers[SERVER])), wanted)
        except NotEditable:  # `mcp_servers = {…}` takes no more tables at the end of the file
            return _changed(text, wanted, lambda document: document["mcp_servers"].update({SERVER: servers[SERVER]}))
    servers[SERVER] = {**there, **entry}
    return _changed(text, wanted, lambda document: document["mcp_servers"][SERVER].update(entry))


def take_server(text: str) -> str:
    """The text without our server."""
    wanted = parse_config(text)
    servers = _table(wanted, "mcp_servers")
    if not _is_ours(servers.get(SERVER)):
        return text
    there = servers.pop(SERVER)
    if (without := _without_block(text, _server_block(there))) is not None:
        return _checked(without, wanted)
    return _changed(text, wanted, lambda document: document["mcp_servers"].pop(SERVER))


def holds_hooks(text: str) -> bool:
    """Whether a person keeps hooks of their own in this file; Codex's notes on trusted ones are none."""
    hooks = _table(parse_config(text), "hooks")
    others = [group for event, groups in hooks.items() if event != "state" for group in _list(groups)]
    return any(not is_our_hook(handler.get("command")) for group in others for handler in _handlers(group))


def put_hook(text: str, event: str, handler: dict[str, Any]) -> str:
    """The text with our handler under `[[hooks.EVENT]]`. If ours is there, only its command is renewed."""
    wanted = parse_config(text)
    if ours := next(our_places(text, event), None):
        group, place = ours
        command = {"command": handler["command"]}
        wanted["hooks"][event][group]["hooks"][place].update(command)
        return _changed(text, wanted, lambda document: document["hooks"][event][group]["hooks"][place].update(command))
    _table(wanted, "hooks").setdefault(event, []).append({"hooks": [handler]})
    return _checked(_with_block(text, _hook_block(event, handler)), wanted)


def take_hook(text: str, event: str) -> str:
    """The text without our handler under that event."""
    ours = next(our_places(text, event), None)
    if ours is None:
        return text
    group, place = ours
    wanted = parse_config(text)
    groups = wanted["hooks"][event]
    handler = groups[group]["hooks"].pop(place)
    alone = not groups[group]["hooks"]
    if alone:
        del groups[group]
    if (without := _without_block(text, _hook_block(event, handler))) is not None:
        return _checked(without, wanted)
    if alone:
        return _changed(text, wanted, lambda document: document["hooks"][event].pop(group))
    return _changed(text, wanted, lambda document: document["hooks"][event][group]["hooks"].pop(place))


def our_places(text: str, event: str) -> Iterator[tuple[int, int]]:
    """Where our handlers are: the group, and the place in it."""
    for g, group in enumerate(_list(_table(parse_config(text), "hooks").get(event))):
        for h, handler in enumerate(_handlers(group)):
            if is_our_hook(handler.get("command")):
                yield g, h


def _server_block(entry: dict[str, Any]) -> str:
    fields = {name: value for name, value in entry.items() if name in _FIELDS}
    return f"\n{_WRITTEN_BY}\n[mcp_servers.{SERVER}]\n{tomlkit.dumps(fields)}"


def _hook_block(event: str, handler: dict[str, Any]) -> str:
    return f"\n{_WRITTEN_BY}\n[[hooks.{event}]]\n[[hooks.{event}.hooks]]\n{tomlkit.dumps(handler)}"


def _with_block(text: str, block: str) -> str:
    if not text:
        return block.lstrip("\n")
    newline = _newline(text)
    end = "" if text.endswith("\n") else newline
    return text + end + block.replace("\n", newline)


def _without_block(text: str, block: str) -> str | None:
    """The text without these very lines; None if they are not there as we wrote them."""
    block = block.replace("\n", _newline(text))
    before, found, after = text.rpartition(block)
    if found:
        return before + after
    first = block.lstrip("\r\n")
    return text.removeprefix(first) if text.startswith(first) else None


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _changed(text: str, wanted: dict[str, Any], change: Callable[[Any], object]) -> str:
    """The text with `change` made by tomlkit, which keeps what a person wrote."""
    if parse_config(text) == wanted:
        return text
    try:
        document = tomlkit.parse(text)
        if tomlkit.dumps(document) != text:
            raise NotEditable("no TOML that can be kept as it is")
        change(document)
        return _checked(tomlkit.dumps(document), wanted)
    except (TOMLKitError, RecursionError) as error:
        raise NotEditable(f"no TOML that can be kept as it is: {error}") from error


def _checked(after: str, wanted: dict[str, Any]) -> str:
    if _bare(parse_config(after)) != _bare(wanted):
        raise NotEditable("the edit would change more than our entry")
    return after


def _bare(settings: dict[str, Any]) -> dict[str, Any]:
    """Without the tables that a removal may leave empty, or take along."""
    bare = copy.deepcopy(settings)
    hooks = bare.get("hooks")
    for event in [event for event, groups in hooks.items() if groups == []] if isinstance(hooks, dict) else ():
        del bare["hooks"][event]
    for name in ("mcp_servers", "hooks"):
        if bare.get(name) == {}:
            del bare[name]
    return bare


def _is_ours(server: object) -> bool:
    return isinstance(server, dict) and is_our_server(server.get("command"), server.get("args"))


def _table(settings: dict[str, Any], name: str) -> dict[str, Any]:
    table: Any = settings.setdefault(name, {})
    if not isinstance(table, dict):
        raise NotEditable(f"`{name}` is no table")
    return table


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _handlers(group: Any) -> list[dict[str, Any]]:
    return [h for h in _list(group.get("hooks") if isinstance(group, dict) else None) if isinstance(h, dict)]


__all__ = [
    "holds_hooks",
    "our_places",
    "parse_config",
    "put_hook",
    "put_server",
    "take_hook",
    "take_server",
]
