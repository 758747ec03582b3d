"""Where each agent's client keeps its sessions: its own environment variable, and its default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

Environ = Mapping[str, str]
Format = Literal[
    "codex",
    "claude-code",
    "opencode",
    "gemini-cli",
    "qwen-code",
    "copilot-cli",
    "pi",
    "aider",
    "openhands",
    "continue",
    "cline",
    "letta-code",
    "kimi-code",
    "cursor",
    "stillroom",
    "openai-agents",
    "langchain",
    "chat-messages",
    "atif",
    "pydantic-ai",
    "otel-genai",
    "swe-agent",
    "inspect-ai",
]
"""How sessions are stored; also the `agent` of their threads."""


_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
# Cline's extension, and those that began as copies of it.
_CLINES = ("saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline", "kilocode.kilo-code")


class Home(NamedTuple):
    """The places where one client keeps sessions."""

    #: The environment variable that moves them; None: the client has none.
    variable: str | None
    #: The places; one that is not there has no sessions. None at all where they can lie anywhere.
    roots: Callable[[Environ], tuple[Path, ...]]


def codex_home(environ: Environ) -> Path:
    """`CODEX_HOME`, or `~/.codex`."""
    return _path(environ.get("CODEX_HOME") or "~/.codex")


def claude_home(environ: Environ) -> Path:
    """`CLAUDE_CONFIG_DIR`, or `~/.claude`."""
    return _path(environ.get("CLAUDE_CONFIG_DIR") or "~/.claude")


def _opencode(environ: Environ) -> tuple[Path, ...]:
    """`opencode` under `XDG_DATA_HOME` or `~/.local/share`, on every system, and the database `OPENCODE_DB`."""
    data = _path(environ.get("XDG_DATA_HOME") or "~/.local/share") / "opencode"
    given = environ.get("OPENCODE_DB")
    return (data, data / _path(given)) if given and given != ":memory:" else (data,)


def _gemini(environ: Environ) -> tuple[Path, ...]:
    """`.gemini` in `GEMINI_CLI_HOME`, or in the home."""
    return (_path(environ.get("GEMINI_CLI_HOME") or "~") / ".gemini",)


def _qwen(environ: Environ) -> tuple[Path, ...]:
    """`QWEN_RUNTIME_DIR`, where the client's data is apart from its settings, `QWEN_HOME`, or `~/.qwen`."""
    return (_path(environ.get("QWEN_RUNTIME_DIR") or environ.get("QWEN_HOME") or "~/.qwen"),)


def _copilot(environ: Environ) -> tuple[Path, ...]:
    """`COPILOT_HOME`, or `~/.copilot`."""
    return (_path(environ.get("COPILOT_HOME") or "~/.copilot"),)


def _pi(environ: Environ) -> tuple[Path, ...]:
    """`PI_CODING_AGENT_DIR`, or `~/.pi/agent`; and `PI_CODING_AGENT_SESSION_DIR`."""
    agent = _path(environ.get("PI_CODING_AGENT_DIR") or "~/.pi/agent")
    given = environ.get("PI_CODING_AGENT_SESSION_DIR")
    return (agent, _path(given)) if given else (agent,)


def _aider(environ: Environ) -> tuple[Path, ...]:
    """The one history `AIDER_CHAT_HISTORY_FILE`; by default each repository has its own, and nothing lists them."""
    given = _path(environ.get("AIDER_CHAT_HISTORY_FILE") or "")
    return (given,) if given.is_absolute() else ()


def _letta(environ: Environ) -> tuple[Path, ...]:
    """`LETTA_LOCAL_BACKEND_DIR`, or `~/.letta/lc-local-backend`."""
    return (_path(environ.get("LETTA_LOCAL_BACKEND_DIR") or "~/.letta/lc-local-backend"),)


def _kimi(environ: Environ) -> tuple[Path, ...]:
    """`KIMI_CODE_HOME`, or `~/.kimi-code`."""
    return (_path(environ.get("KIMI_CODE_HOME") or "~/.kimi-code"),)


def _openhands(environ: Environ) -> tuple[Path, ...]:
    """`OPENHANDS_PERSISTENCE_DIR`, or `~/.openhands`; and `OPENHANDS_CONVERSATIONS_DIR`."""
    home = _path(environ.get("OPENHANDS_PERSISTENCE_DIR") or "~/.openhands")
    given = environ.get("OPENHANDS_CONVERSATIONS_DIR")
    return (home, _path(given)) if given else (home,)


def _continue(environ: Environ) -> tuple[Path, ...]:
    """`CONTINUE_GLOBAL_DIR`, or `~/.continue`."""
    return (_path(environ.get("CONTINUE_GLOBAL_DIR") or "~/.continue"),)


def _cursor(environ: Environ) -> tuple[Path, ...]:
    """`CURSOR_DATA_DIR`, or `~/.cursor`."""
    return (_path(environ.get("CURSOR_DATA_DIR") or "~/.cursor"),)


def _cline(environ: Environ) -> tuple[Path, ...]:
    """`CLINE_DATA_DIR`, `data` in `CLINE_DIR` or in `~/.cline`; and what extensions keep in the editors there are."""
    given = environ.get("CLINE_DATA_DIR")
    data = _path(given) if given else _path(environ.get("CLINE_DIR") or "~/.cline") / "data"
    settings = [
        _path(environ.get("XDG_CONFIG_HOME") or "~/.config"),
        _path("~/Library/Application Support"),
        *([Path(environ["APPDATA"])] if environ.get("APPDATA") else []),
    ]
    users = [folder / editor / "User" for folder in settings for editor in _EDITORS]
    users.append(_path("~/.vscode-server/data/User"))
    stores = (user / "globalStorage" / name for user in users if user.is_dir() for name in _CLINES)
    return (data, *(store for store in stores if store.is_dir()))


def _path(text: str) -> Path:
    return Path(text).expanduser()


def _swe_agent(environ: Environ) -> tuple[Path, ...]:
    """`MSWEA_GLOBAL_CONFIG_DIR`, or `mini-swe-agent` among the user's settings: the last run lies there."""
    settings = environ.get("XDG_CONFIG_HOME") or "~/.config"
    return (_path(environ.get("MSWEA_GLOBAL_CONFIG_DIR") or f"{settings}/mini-swe-agent"),)


_ANYWHERE = Home(None, lambda _: ())

HOMES: Mapping[Format, Home] = MappingProxyType(
    {
        "codex": Home("CODEX_HOME", lambda environ: (codex_home(environ),)),
        "claude-code": Home("CLAUDE_CONFIG_DIR", lambda environ: (claude_home(environ),)),
        "opencode": Home("XDG_DATA_HOME", _opencode),
        "gemini-cli": Home("GEMINI_CLI_HOME", _gemini),
        "qwen-code": Home("QWEN_HOME", _qwen),
        "copilot-cli": Home("COPILOT_HOME", _copilot),
        "pi": Home("PI_CODING_AGENT_DIR", _pi),
        "aider": Home("AIDER_CHAT_HISTORY_FILE", _aider),
        "openhands": Home("OPENHANDS_PERSISTENCE_DIR", _openhands),
        "continue": Home("CONTINUE_GLOBAL_DIR", _continue),
        "cline": Home("CLINE_DATA_DIR", _cline),
        "letta-code": Home("LETTA_LOCAL_BACKEND_DIR", _letta),
        "kimi-code": Home("KIMI_CODE_HOME", _kimi),
        "cursor": Home("CURSOR_DATA_DIR", _cursor),
        # What was recorded or ingested here. Its place is the home in use, whatever names that: settings add it.
        "stillroom": Home("STILLROOM_HOME", lambda _: ()),
        "openai-agents": _ANYWHERE,
        "langchain": _ANYWHERE,
        "chat-messages": _ANYWHERE,
        "atif": _ANYWHERE,
        "pydantic-ai": _ANYWHERE,
        "otel-genai": _ANYWHERE,
        "swe-agent": Home("MSWEA_GLOBAL_CONFIG_DIR", _swe_agent),
        "inspect-ai": _ANYWHERE,
    }
)
"""By format, all of them."""
