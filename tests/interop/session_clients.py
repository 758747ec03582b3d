"""Real clients that store sessions: how each is had, and told to talk to nobody but a model on this machine."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.interop.claude_client import VERSION as CLAUDE_VERSION
from tests.interop.npm import ClientUnavailable, installed

from stillroom.homes import Format
from stillroom.testing import CallTool

COMMAND = "sh check.sh"
#: For clients that need a newer Node than the machine has.
_NODE_VERSION = "22.23.5"


class Start(NamedTuple):
    """How a client is started in a home of its own."""

    environ: Mapping[str, str]
    #: What makes it run one prompt, which comes last, without a person.
    headless: tuple[str, ...]
    #: What opens it in a terminal.
    terminal: tuple[str, ...]


class Client(NamedTuple):
    """A client from npm."""

    agent: Format
    package: str
    #: The one that the reader was last checked with.
    version: str
    #: The program, in the installed package.
    program: str
    #: Its tool for shell commands, as its model asks for it.
    shell: CallTool
    #: Writes its settings into a home, for a model at a base URL.
    set_up: Callable[[Path, str], Start]
    #: The oldest Node that runs it; None: the program is a binary.
    node: int | None = None
    #: What its sessions say of how they were started without a person.
    source: str = "exec"
    #: What its sessions tell of where they ran.
    tells_branch: bool = False
    tells_version: bool = False
    #: What its screen shows once it takes what is typed, on a screen that is drawn before that.
    ready: str = ""

    def command(self, version: str) -> list[str]:
        """The program with what runs it; installs it once. Raises `ClientUnavailable`."""
        program = installed(self.package, version, f"node_modules/{self.program}")
        return [str(program)] if self.node is None else [str(_node(self.node)), str(program)]


def _node(oldest: int) -> Path:
    found = shutil.which("node")
    if found is not None:
        told = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
        if (match := re.match(r"v(\d+)", told)) and int(match[1]) >= oldest:
            return Path(found)
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    package = f"node-{platform.system().lower()}-{machine}"
    try:
        return installed(package, _NODE_VERSION, f"node_modules/{package}/bin/node")
    except ClientUnavailable as error:
        raise ClientUnavailable(f"Node {oldest} is not here, and can't be had: {error}") from error


def _put(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def _claude(home: Path, base_url: str) -> Start:
    folder = home / "claude"
    project = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    seen = {"hasCompletedOnboarding": True, "theme": "dark", "projects": {str(home.parent / "project"): project}}
    _put(folder / ".claude.json", seen)
    environ = {
        "CLAUDE_CONFIG_DIR": str(folder),
        "ANTHROPIC_BASE_URL": base_url.removesuffix("/v1"),
        "ANTHROPIC_AUTH_TOKEN": "dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    allowed = ("--allowedTools", f"Bash({COMMAND})")
    return Start(environ, headless=(*allowed, "-p", "--"), terminal=allowed)


def _opencode(home: Path, base_url: str) -> Start:
    options = {"baseURL": base_url, "apiKey": "dummy"}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"m": {"name": "m"}}}
    model = {"model": "loopback/m", "small_model": "loopback/m", "provider": {"loopback": provider}}
    _put(home / ".config/opencode/opencode.json", {**model, "autoupdate": False, "share": "disabled"})
    environ = {
        "XDG_DATA_HOME": str(home / "data"),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    }
    return Start(environ, headless=("run",), terminal=())


def _gemini(home: Path, base_url: str) -> Start:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "general": {"disableAutoUpdate": True},
        "privacy": {"usageStatisticsEnabled": False},
    }
    _put(home / ".gemini/settings.json", settings)
    environ = {
        "GEMINI_CLI_HOME": str(home),
        "GEMINI_API_KEY": "dummy",
        "GOOGLE_GEMINI_BASE_URL": base_url.removesuffix("/v1"),
    }
    arguments = ("--model", "gemini-2.5-pro", "--yolo")
    return Start(environ, headless=(*arguments, "-p"), terminal=arguments)


def _qwen(home: Path, base_url: str) -> Start:
    settings = {
        "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
        "general": {"disableAutoUpdate": True},
        "privacy": {"usageStatisticsEnabled": False},
    }
    _put(home / ".qwen/settings.json", settings)
    environ = {
        "QWEN_HOME": str(home / ".qwen"),
        "OPENAI_API_KEY": "dummy",
        "OPENAI_BASE_URL": base_url,
        "OPENAI_MODEL": "m",
    }
    return Start(environ, headless=("--yolo", "-p"), terminal=("--yolo",))


def _pi(home: Path, base_url: str) -> Start:
    provider = {"baseUrl": base_url, "api": "openai-completions", "apiKey": "dummy", "models": [{"id": "m"}]}
    _put(home / ".pi/agent/models.json", {"providers": {"loopback": provider}})
    environ = {"PI_CODING_AGENT_DIR": str(home / ".pi/agent"), "PI_OFFLINE": "1"}
    arguments = ("--provider", "loopback", "--model", "m")
    return Start(environ, headless=(*arguments, "-p"), terminal=arguments)


def _continue(home: Path, base_url: str) -> Start:
    config = home / ".continue/config.yaml"
    model = f"  - name: m\n    provider: openai\n    model: gpt-4o\n    apiBase: {base_url}\n    apiKey: dummy\n"
    _put(config, f"name: loopback\nversion: 0.0.1\nschema: v1\nmodels:\n{model}    useResponsesApi: false\n")
    environ = {"CONTINUE_GLOBAL_DIR": str(config.parent), "CONTINUE_TELEMETRY_ENABLED": "0"}
    arguments = ("--config", str(config), "--auto")
    return Start(environ, headless=(*arguments, "-p"), terminal=arguments)


_NAMED = {"command": COMMAND, "description": "Run the check"}
_CLIENTS = (
    Client(
        agent="claude-code",
        package="@anthropic-ai/claude-code",
        version=CLAUDE_VERSION,
        program="@anthropic-ai/claude-code-*/claude",
        shell=CallTool("Bash", _NAMED),
        set_up=_claude,
        tells_branch=True,
        tells_version=True,
    ),
    Client(
        agent="opencode",
        package="opencode-ai",
        version="1.18.33",
        program="opencode-*[0-9]/bin/opencode",
        shell=CallTool("bash", _NAMED),
        set_up=_opencode,
        ready="Ask anything",
        tells_version=True,
    ),
    Client(
        agent="gemini-cli",
        package="@google/gemini-cli",
        version="0.61.0",
        program="@google/gemini-cli/bundle/gemini.js",
        shell=CallTool("run_shell_command", _NAMED),
        set_up=_gemini,
        ready="Type your message",
        node=20,
    ),
    Client(
        agent="qwen-code",
        package="@qwen-code/qwen-code",
        version="0.24.4",
        program="@qwen-code/qwen-code/cli-entry.js",
        shell=CallTool("run_shell_command", {**_NAMED, "is_background": False}),
        set_up=_qwen,
        ready="Type your message",
        node=20,
        source="cli",
        tells_branch=True,
        tells_version=True,
    ),
    Client(
        agent="pi",
        package="@earendil-works/pi-coding-agent",
        version="1.6.0",
        program="@earendil-works/pi-coding-agent/dist/bundle/cli.js",
        shell=CallTool("bash", {"command": COMMAND}),
        set_up=_pi,
        node=22,
        source="cli",
    ),
    Client(
        agent="continue",
        package="@continuedev/cli",
        version="1.5.47",
        program="@continuedev/cli/dist/cn.js",
        shell=CallTool("Bash", {"command": COMMAND}),
        set_up=_continue,
        node=20,
        source="cli",
    ),
)
_WANTED = os.environ.get("STILLROOM_CLIENT")
CLIENTS = tuple(client for client in _CLIENTS if _WANTED in (None, "", client.agent))
"""All of them, or the one that `STILLROOM_CLIENT` names."""


def version_of(client: Client) -> str:
    """`STILLROOM_CLIENT_VERSION` of the one that is asked for, else the one that was checked last."""
    return (_WANTED and os.environ.get("STILLROOM_CLIENT_VERSION")) or client.version
