"""Codex's `config.toml`: our entries come and go, and every other byte stays."""

from __future__ import annotations

import tomllib

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from stillroom.integrations.codex_config import our_places, put_hook, put_server, take_hook, take_server
from stillroom.integrations.json_text import NotEditable

SERVER = ["/opt/stillroom/bin/stillroom", "mcp"]
HOOK = {"type": "command", "command": "/opt/stillroom/bin/stillroom-hook codex session-start", "timeout": 10}
EVENT = "SessionStart"

VALUES = st.recursive(
    st.booleans() | st.integers(-9, 9) | st.text("abc =[]#\"'\n", max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab.", min_size=1, max_size=3), inner),
    max_leaves=6,
)


@given(
    settings=st.dictionaries(st.sampled_from(["model", "features", "a b", "mcp", "x"]), VALUES),
    servers=st.dictionaries(st.sampled_from(["docs", "a.b"]), st.just({"command": "x", "args": ["y"]}), max_size=2),
    groups=st.integers(0, 2),
    tail=st.sampled_from(["", "\n", "# the end\n", "\n\n# mine", "\n[hooks.state.\"k\"]\ntrusted_hash = 'h'\n"]),
    crlf=st.booleans(),
)
def test_what_is_put_in_and_taken_out_leaves_every_byte(
    settings: dict[str, object], servers: dict[str, object], groups: int, tail: str, crlf: bool
) -> None:
    hooks = {EVENT: [{"matcher": "startup", "hooks": [{"type": "command", "command": "mine"}]}] * groups}
    tables = {**({"mcp_servers": servers} if servers else {}), **({"hooks": hooks} if groups else {})}
    text = tomlkit.dumps({**settings, **tables}) + tail
    text = text.replace("\n", "\r\n") if crlf else text
    after = put_hook(put_server(text, SERVER), EVENT, HOOK)
    held = tomllib.loads(after.replace("\r\n", "\n"))
    assert held["mcp_servers"]["stillroom"] == {
        "command": SERVER[0],
        "args": SERVER[1:],
        "startup_timeout_sec": 30,
    }
    assert held["hooks"][EVENT][groups:] == [{"hooks": [HOOK]}]
    assert put_hook(put_server(after, SERVER), EVENT, HOOK) == after
    bare = take_server(take_hook(after, EVENT))
    # A last line without its end is given one.
    assert bare in (text, text + ("\r\n" if crlf else "\n"))


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers.docs.command = "x"\n',
        'mcp_servers = { docs = { command = "x" } } # mine\n[zoo]\na = 1\n',
        '[mcp_servers]\ndocs = { command = "x" }\n',
        '[mcp_servers.docs]\ncommand = "x"\n[mcp_servers.docs.env]\nA = "1"\n\n[zoo]\n# still\na = 1\n',
    ],
)
def test_every_way_to_write_servers_takes_ours(text: str) -> None:
    after = put_server(text, SERVER)
    assert list(tomllib.loads(after)["mcp_servers"]) == ["docs", "stillroom"]
    assert take_server(after) == text


def test_our_entries_are_renewed_where_they_stand_with_what_was_added_to_them() -> None:
    text = (
        '[mcp_servers.stillroom]  # ours\ncommand = "/old/stillroom" # moved\nargs = ["mcp"]\nenabled = false\n\n'
        f'[[hooks.{EVENT}]]\nmatcher = "startup"\n[[hooks.{EVENT}.hooks]]\ntype = "command"\n'
        'command = "/old/stillroom-hook codex session-start"\ntimeout = 3\n# last\n'
    )
    after = put_hook(put_server(text, SERVER), EVENT, HOOK)
    assert after == text.replace("/old/", "/opt/stillroom/bin/")
    assert list(our_places(after, EVENT)) == [(0, 0)]
    bare = take_server(take_hook(after, EVENT))
    assert "stillroom" not in bare and tomllib.loads(bare).get("mcp_servers", {}) == {}


@pytest.mark.parametrize("text", ["hooks = 3\n", 'hooks = { SessionStart = [] }\nmodel = "x"\n', "a = \n"])
def test_what_can_not_take_our_hook_is_refused(text: str) -> None:
    with pytest.raises(NotEditable):
        put_hook(text, EVENT, HOOK)
