"""`stillroom mcp`: the memory for any agent that speaks the Model Context Protocol."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

from stillroom.cli.options import Flag, current_settings, option
from stillroom.clock import SystemClock
from stillroom.config import SERVING
from stillroom.errors import ConfigError


def mcp_command(
    *,
    http: Flag = False,
    host: str = "127.0.0.1",
    port: Annotated[int, option(at_least=0, at_most=65535)] = SERVING.http_port,
    no_token: Flag = False,
) -> int:
    """Serve the memory over the Model Context Protocol: tools to list, read and search it and to add a note, and what
    a session is told at its start as a prompt and a resource.

    On standard input and output, an agent starts it: its settings name the command `stillroom mcp`. With `--http` it
    serves any number of agents on this machine, at `http://127.0.0.1:8377/mcp`, and wants
    `Authorization: Bearer TOKEN`; the token is in `mcp-token` in Stillroom's home, which only you can read.

    ```
    claude mcp add --scope user stillroom -- stillroom mcp
    stillroom mcp --http --port 8377
    ```

    Parameters
    ----------
    http
        Serve over HTTP instead of standard input and output.
    host
        With `--http`: an address of this machine alone.
    port
        With `--http`: the port; 0 for any that is free.
    no_token
        With `--http`: let every program of this machine in.
    """
    if not http and (no_token or host != "127.0.0.1" or port != SERVING.http_port):
        raise ConfigError("`--host`, `--port` and `--no-token` go with `--http`")
    settings = current_settings()
    # The SDK takes a second to import: what can be refused is refused before.
    from stillroom.mcp.server import build_server
    from stillroom.mcp.token import kept_token
    from stillroom.mcp.transports import http_app, listen, serve_http, serve_stdio

    server = build_server(settings, clock=SystemClock())
    if not http:
        asyncio.run(serve_stdio(server))
        return 0
    token = None if no_token else kept_token(settings.mcp_token)
    with listen(host, port) as bound:
        if token is None:
            print("no token: every program of this machine may read the memory", file=sys.stderr)
        else:
            print(f"the token is in {settings.mcp_token}", file=sys.stderr)
        asyncio.run(serve_http(http_app(server, host=host, token=token), bound))
    return 0
