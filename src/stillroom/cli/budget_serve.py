"""`stillroom budget serve`: a budget for agents that can't embed Python."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import socket
import sys
from contextlib import suppress
from datetime import datetime
from typing import Annotated

from stillroom.budget import RolloutBudgetConfig
from stillroom.budget.config import given_keys
from stillroom.cli.options import current_settings, option
from stillroom.clock import SystemClock
from stillroom.config import GATEWAY, Settings
from stillroom.errors import ConfigError

#: Of the limit, where nothing is said: early enough to plan, late enough to matter, and the end.
_TOLD_AT_SHARES = (2, 4, 10)


def serve_command(
    *,
    upstream: str,
    limit: Annotated[int | None, option(at_least=1)] = None,
    remind_at: str | None = None,
    tree: str | None = None,
    port: Annotated[int, option(at_least=0, at_most=65535)] = GATEWAY.port,
) -> int:
    """Hold agents of any kind to a budget: a gateway on this machine between them and their model.

    It speaks what they speak (OpenAI's Responses and Chat Completions, Anthropic's Messages), passes streams through
    byte for byte, charges the usage that they report, tells the agents what is left, and ends their turns at the limit.
    Keys go through and are neither kept nor printed. Point the agent's base URL at it:

    ```
    stillroom budget serve --limit 2000000 --upstream https://api.openai.com/v1
    stillroom budget serve --limit 500000 --upstream https://api.anthropic.com --port 8379
    ```

    Then `http://127.0.0.1:8378/v1` is the model, and `http://127.0.0.1:8378/t/NAME/v1` the model with the budget
    `NAME`. Without a name in the path, the header `x-stillroom-session` names the budget; Codex and Claude Code have
    one for each session, which their sub-agents share; everything else shares one that lasts until the gateway ends.

    Parameters
    ----------
    upstream
        The model's base URL: https, or http on this machine.
    limit
        Weighted tokens for each tree of sessions. Default: `limit_tokens` of `[features.rollout_budget]`, which also
        has the weights. A tree keeps the limit that it was begun with.
    remind_at
        Tell the agents when no more than so many are left, e.g. `500000,100000`. Default: the setting's, else at a
        half, a quarter and a tenth.
    tree
        The budget of requests that name none. Default: a new one.
    port
        The port on 127.0.0.1; 0 for any that is free.
    """
    settings = current_settings()
    config = _config(settings, limit=limit, remind_at=remind_at)
    name = tree or f"gateway-{datetime.now():%Y-%m-%dT%H-%M-%S}-{os.getpid()}"
    return asyncio.run(_serve(settings, config, upstream=upstream, default_tree=name, port=port))


def _config(settings: Settings, *, limit: int | None, remind_at: str | None) -> RolloutBudgetConfig:
    """The settings' table, on or off, under what the command line says. Raises `ConfigError`."""
    table = given_keys(settings)
    if limit is not None:
        table |= {"limit_tokens": limit, "limit_budget": None}
    whole = table["limit_budget"] if table["limit_tokens"] is None else table["limit_tokens"]
    if whole is None:
        raise ConfigError("how much may a tree of sessions use?", hint="e.g. --limit 1000000")
    if remind_at is not None:
        table |= {"reminder_at_remaining_tokens": _thresholds(remind_at), "reminder_interval_tokens": None}
    elif table["reminder_at_remaining_tokens"] is None and table["reminder_interval_tokens"] is None:
        parts = (whole // share for share in _TOLD_AT_SHARES if math.isfinite(whole))
        table["reminder_at_remaining_tokens"] = tuple(int(part) for part in parts if part >= 1)
    return RolloutBudgetConfig(**table)


def _thresholds(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part.replace("_", "")) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise ConfigError(f"`{text}` is no list of numbers", hint="e.g. --remind-at 500000,100000") from error


async def _serve(
    settings: Settings, config: RolloutBudgetConfig, *, upstream: str, default_tree: str, port: int
) -> int:
    from stillroom.service.gateway import Gateway
    from stillroom.service.ledgers import Ledgers
    from stillroom.service.upstream import Upstream

    server = Upstream(upstream, GATEWAY)
    settings.home.mkdir(parents=True, exist_ok=True)
    ledgers = Ledgers(settings.database, config, limits=settings.database_limits, clock=SystemClock())
    try:
        gateway = Gateway(server, ledgers, default_tree=default_tree, numbers=GATEWAY, tell=_tell)
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError):  # Windows: there Ctrl-C ends the loop itself
                loop.add_signal_handler(number, stop.set)
        with _listen(port) as bound:
            listening = await loop.create_server(gateway.connect, sock=bound)
            _tell(f"listening on http://127.0.0.1:{bound.getsockname()[1]} for {upstream}")
            _tell(f"each tree of sessions may use {config.limit:,.0f} weighted tokens; without a name: {default_tree}")
            await stop.wait()
            listening.close()
        await gateway.aclose()
    finally:
        ledgers.close()
    return 0


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise ConfigError(f"can't listen on port {port}: {error}", hint="choose another --port") from error


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
