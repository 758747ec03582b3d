"""The real Claude Code for tests: installed from npm into a cache, run with one prompt against a loopback model.

Nothing of the user's is touched: own HOME, own configuration folder, a dummy token, a model on 127.0.0.1.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.interop.npm import installed

VERSION = os.environ.get("STILLROOM_CLAUDE_VERSION", "2.1.332")
RUN_SECONDS = 120


def claude_binary() -> Path:
    """The native binary of `VERSION`; installs it once. Raises `ClientUnavailable`."""
    return installed("@anthropic-ai/claude-code", VERSION, "node_modules/@anthropic-ai/claude-code-*/claude")


def run_claude(
    binary: Path,
    config: Path,
    base_url: str,
    *arguments: str,
    cwd: Path,
    environ: Mapping[str, str] | None = None,
) -> str:
    """What `claude ARGUMENTS` prints. The session is recorded as one of the VS Code extension's, not as a script's."""
    home, scratch = config.parent / "home", config.parent / "tmp"
    for folder in (home, scratch, config):
        folder.mkdir(exist_ok=True)
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(config),
        "TMPDIR": str(scratch),
        "ANTHROPIC_BASE_URL": base_url.removesuffix("/v1"),
        "ANTHROPIC_AUTH_TOKEN": "dummy",
        "CLAUDE_CODE_ENTRYPOINT": "claude-vscode",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "NO_PROXY": "127.0.0.1,localhost",
        **(environ or {}),
    }
    done = subprocess.run(
        [str(binary), *arguments],
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout
