"""The real Codex CLI for tests and benchmarks: installed from npm into a cache, driven through `codex app-server`.

Nothing of the user's is touched: own HOME, own CODEX_HOME, a dummy key, a model on 127.0.0.1.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.interop.npm import ClientUnavailable, installed

VERSION = os.environ.get("STILLROOM_CODEX_VERSION", "0.171.0")
REPOSITORY = Path(__file__).resolve().parents[2]
ANSWER_SECONDS = 60


CodexUnavailable = ClientUnavailable


def codex_binary() -> Path:
    """The native binary of `VERSION`; installs it once. Raises `CodexUnavailable`."""
    return installed("@openai/codex", VERSION, "node_modules/@openai/codex*/**/vendor/*/bin/codex")


def write_config(codex_home: Path, base_url: str, *, memories: bool, keys: Mapping[str, object] | None = None) -> None:
    """A `config.toml` whose only model is the one at `base_url`; `keys` go under `[memories]`."""
    codex_home.mkdir(parents=True, exist_ok=True)
    settings = "".join(f"{key} = {json.dumps(value)}\n" for key, value in (keys or {}).items())
    text = f"""model = "gpt-5.5"
model_provider = "loopback"
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.loopback]
name = "loopback"
base_url = "{base_url}"
wire_api = "responses"
env_key = "LOOPBACK_KEY"
[features]
memories = {json.dumps(memories)}
[memories]
min_rollout_idle_hours = 1
{settings}"""
    (codex_home / "config.toml").write_text(text, encoding="utf-8")


class CodexServer:
    """`codex app-server` on its standard streams: one JSON object a line, no `jsonrpc` key."""

    def __init__(self, binary: Path, codex_home: Path, *, environ: Mapping[str, str] | None = None) -> None:
        home = codex_home.parent / "home"
        home.mkdir(exist_ok=True)
        # A TMPDIR above CODEX_HOME makes Codex refuse its sandbox helper.
        scratch = codex_home.parent / "tmp"
        scratch.mkdir(exist_ok=True)
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "CODEX_HOME": str(codex_home),
            "TMPDIR": str(scratch),
            "LOOPBACK_KEY": "dummy",
            "NO_PROXY": "127.0.0.1,localhost",
            **(environ or {}),
        }
        self._log = (codex_home.parent / "codex.stderr").open("ab")
        self._process = subprocess.Popen(
            [str(binary), "app-server"],
            env=env,
            cwd=home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
        )
        self._lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._kept: list[dict[str, Any]] = []
        self._number = 0
        client = {"name": "codex_vscode", "title": "interop", "version": "1.0.0"}
        self.request("initialize", {"clientInfo": client, "capabilities": {"experimentalApi": True}})
        self._send({"method": "initialized"})

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the server by closing its input; kill it when it does not listen."""
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        if self._process.stdout:
            self._process.stdout.close()
        self._log.close()

    def start_thread(self, cwd: Path) -> str:
        """A new thread in `cwd`; its id."""
        thread_id: str = self.request("thread/start", {"cwd": str(cwd)})["thread"]["id"]
        return thread_id

    def turn(self, thread_id: str, text: str) -> dict[str, Any]:
        """The user says `text`; returns when the agent is done with it."""
        self.request("turn/start", {"threadId": thread_id, "input": [{"type": "text", "text": text}]})
        return self.wait_for("turn/completed", threadId=thread_id)

    def trust_hooks(self, cwd: Path) -> None:
        """Trust every hook that is configured, as the terminal does when a person says so."""
        (found,) = self.request("hooks/list", {"cwds": [str(cwd)]})["data"]
        trusted = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in found["hooks"]}
        edit = {"keyPath": "hooks.state", "value": trusted, "mergeStrategy": "upsert"}
        self.request("config/batchWrite", {"edits": [edit], "reloadUserConfig": True})

    def request(self, method: str, params: Mapping[str, object]) -> dict[str, Any]:
        """Call `method` and return its result; an error of the server is a `RuntimeError`."""
        self._number += 1
        number = self._number
        self._send({"id": number, "method": method, "params": params})
        answer = self._next(lambda message: message.get("id") == number and "method" not in message)
        if "error" in answer:
            raise RuntimeError(f"`{method}`: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def wait_for(self, method: str, **params: object) -> dict[str, Any]:
        """The next notification `method` whose parameters hold `params`."""

        def wanted(message: dict[str, Any]) -> bool:
            return message.get("method") == method and params.items() <= message.get("params", {}).items()

        found: dict[str, Any] = self._next(wanted)["params"]
        return found

    def _next(self, wanted: Any) -> dict[str, Any]:
        for index, message in enumerate(self._kept):
            if wanted(message):
                return self._kept.pop(index)
        while True:
            try:
                message = self._lines.get(timeout=ANSWER_SECONDS)
            except queue.Empty:
                raise TimeoutError(f"`codex app-server` said nothing for {ANSWER_SECONDS} s") from None
            if message is None:
                raise RuntimeError(f"`codex app-server` ended with {self._process.wait()}")
            if wanted(message):
                return message
            self._kept.append(message)

    def _send(self, message: Mapping[str, object]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip():
                self._lines.put(json.loads(line))
        self._lines.put(None)
