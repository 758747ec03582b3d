"""Codex CLI: one hook in `hooks.json` and one MCP server in `config.toml`, both in its home.

What the real one does (0.171.0), and why it is a hook and not Codex's own read path, is told in
`docs/decisions/0006-how-memory-reaches-an-agent.md`.
"""

from __future__ import annotations

from pathlib import Path

from stillroom.integrations import codex_config, hooks_json
from stillroom.integrations.bounds import MAX_CONTEXT_CHARS
from stillroom.integrations.json_text import check
from stillroom.integrations.programs import Programs

AGENT = "codex"
EVENT = "SessionStart"
#: The hook itself gives up after two.
TIMEOUT_SECONDS = 10


def with_us(config: str, hooks: str, programs: Programs, home: Path | None) -> tuple[str, str]:
    """`config.toml` and `hooks.json` with our server and our hook.

    Codex warns at every start when both files hold hooks: where a person's are in the first, ours goes there too.
    """
    handler: dict[str, object] = {
        "type": "command",
        "command": programs.hook_command(AGENT, "session-start"),
        "timeout": TIMEOUT_SECONDS,
        # Codex's own limit of 10,000 characters would cut a full summary in the middle.
        "additionalContextLimit": MAX_CONTEXT_CHARS[AGENT],
    }
    server = [*programs.stillroom, "mcp", *(("--home", str(home)) if home else ())]
    config = codex_config.put_server(config, server)
    if codex_config.holds_hooks(config) and not hooks.strip():
        return codex_config.put_hook(config, EVENT, handler), hooks
    text = hooks if hooks.strip() else "{}\n"
    return config, hooks_json.take_hooks(hooks_json.put_hook(text, EVENT, handler), keep=(EVENT,))


def config_without_us(text: str) -> str:
    """`config.toml` without us."""
    return codex_config.take_hook(codex_config.take_server(text), EVENT)


def hooks_without_us(text: str) -> str:
    """`hooks.json` without us."""
    return hooks_json.take_hooks(text)


def remarks(config: str, root: Path, codex_home: Path) -> list[str]:
    """What a person has to know or to do."""
    settings = codex_config.parse_config(config)
    features, memories = _table(settings.get("features")), _table(settings.get("memories"))
    said = []
    if features.get("hooks") is False:
        said.append("`hooks = false` stands under `[features]`: Codex runs no hook, and no session is given memory")
    if features.get("memories") and memories.get("use_memories") is not False:
        same = root.resolve() == (codex_home / "memories").resolve()
        what = "the same memory a second time" if same else "that memory beside this one"
        said.append(f"Codex's own memories are on: a session is given {what}. `codex features disable memories`")
    return said


def is_trusted(config: str, hooks: str, codex_home: Path) -> bool:
    """Whether Codex was told that our hook may run. That it was this very command, only Codex can tell."""
    keys = [f"{codex_home}/config.toml:session_start:{g}:{h}" for g, h in codex_config.our_places(config, EVENT)]
    if hooks.strip():
        places = [path for path, _ in hooks_json.our_handlers(check(hooks), EVENT)]
        keys += [f"{codex_home}/hooks.json:session_start:{g}:{h}" for _, _, g, _, h in places]
    state = _table(_table(codex_config.parse_config(config).get("hooks")).get("state"))
    return any(_table(state.get(key)).get("trusted_hash") for key in keys)


def _table(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
