"""Serves over standard input and output, or over HTTP on this machine only."""

from __future__ import annotations

import socket
import sys
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from starlette.types import ASGIApp

from stillroom.addresses import is_loopback
from stillroom.config import SERVING
from stillroom.errors import ConfigError
from stillroom.mcp.token import RequireToken

PATH = "/mcp"


async def serve_stdio(server: Server[Any]) -> None:
    """Until the input ends. Whatever else is printed meanwhile goes to stderr: stdout is the protocol's."""
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def listen(host: str, port: int) -> socket.socket:
    """A socket on a loopback address. Raises `ConfigError` for any other, or when the port is taken."""
    if not is_loopback(host):
        raise ConfigError(f"`{host}` is not this machine alone", hint="use 127.0.0.1 or ::1")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server(("127.0.0.1" if host == "localhost" else host, port), family=family)
    except (OSError, OverflowError) as error:
        raise ConfigError(f"can't listen on `{host}`, port {port}: {error}", hint="choose another --port") from error


def http_app(server: Server[Any], *, host: str, token: str | None) -> ASGIApp:
    """The server as a web application. Requests under another host's name, or from a page of one, are refused: a web
    page that a person opens must not reach it."""
    app: ASGIApp = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        host=host if host == "localhost" or ":" in host else "127.0.0.1",
        max_request_body_size=SERVING.max_request_bytes,
    )
    return app if token is None else RequireToken(app, token)


async def serve_http(app: ASGIApp, bound: socket.socket) -> None:
    """Until a signal ends it."""
    host, port = bound.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    print(f"listening on http://{shown}:{port}{PATH}", file=sys.stderr, flush=True)
    # HTTP alone: no websockets to guard.
    config = uvicorn.Config(
        app,
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=SERVING.shutdown_seconds,
    )
    await uvicorn.Server(config).serve(sockets=[bound])
