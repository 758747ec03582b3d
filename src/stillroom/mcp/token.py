"""The bearer token of the server over HTTP: kept in a file that its owner alone can read."""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from pathlib import Path

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from stillroom.config import SERVING, Serving
from stillroom.errors import ConfigError
from stillroom.system import NEW, READ_ITSELF, open_to_others

_MOST_BYTES = 4096


def kept_token(path: Path, *, limits: Serving = SERVING) -> str:
    """The token in `path`, made on the first call. Raises `ConfigError` for one that others could know."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _create(path, secrets.token_urlsafe(limits.token_bytes))
        file = os.open(path, READ_ITSELF)
        try:
            status = os.fstat(file)
            text = os.read(file, _MOST_BYTES).decode("utf-8", "replace").strip()
        finally:
            os.close(file)
    except OSError as error:
        raise ConfigError(f"the token `{path}` can't be used: {error.strerror}") from error
    if not stat.S_ISREG(status.st_mode) or open_to_others(status):
        raise ConfigError(f"others can read the token `{path}`", hint=f"`rm '{path}'`; a new one is made")
    if len(text) < limits.min_token_chars or not text.isascii() or not text.isprintable():
        raise ConfigError(f"`{path}` holds no good token", hint=f"`rm '{path}'`; a new one is made")
    return text


def _create(path: Path, token: str) -> None:
    try:
        file = os.open(path, NEW, 0o600)
    except FileExistsError:
        return
    try:
        os.write(file, f"{token}\n".encode())
    finally:
        os.close(file)


class RequireToken:
    """Answers 401 to whoever does not send the token, whatever is asked."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._is_known(scope):
            await self._app(scope, receive, send)
            return
        if scope["type"] == "http":
            refusal = PlainTextResponse("a bearer token is needed\n", 401, {"WWW-Authenticate": "Bearer"})
            await refusal(scope, receive, send)

    def _is_known(self, scope: Scope) -> bool:
        sent = [value for name, value in scope.get("headers", ()) if name.lower() == b"authorization"]
        return len(sent) == 1 and hmac.compare_digest(sent[0], self._expected)
