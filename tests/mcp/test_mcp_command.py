"""The `stillroom mcp` command and its token, without the SDK's import."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from stillroom.cli.app import run_command
from stillroom.errors import ConfigError
from stillroom.mcp.token import RequireToken, kept_token
from stillroom.mcp.transports import listen


def test_the_token_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "home" / "mcp-token"
    token = kept_token(path)
    assert len(token) >= 43
    assert kept_token(path) == token
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_token_that_others_know_or_could_guess_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mcp-token"
    kept_token(path)
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="others can read"):
        kept_token(path)
    path.chmod(0o600)
    for text in ("", "secret\n", "x" * 40 + "\ny"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError, match="no good token"):
            kept_token(path)
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError):
        kept_token(path)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.com", "*"])
def test_only_this_machine_is_served(host: str) -> None:
    with pytest.raises(ConfigError, match="is not this machine alone"):
        listen(host, 0)


@pytest.mark.parametrize(
    ("host", "bound"),
    [("localhost", "127.0.0.1"), ("127.0.0.1", "127.0.0.1"), ("127.0.0.2", "127.0.0.2"), ("::1", "::1")],
)
def test_the_address_that_was_asked_for_is_served(host: str, bound: str) -> None:
    try:
        socket.create_server((bound, 0), family=socket.AF_INET6 if ":" in bound else socket.AF_INET).close()
    except OSError:
        pytest.skip(f"this machine has no {bound}")
    with listen(host, 0) as listening:
        assert listening.getsockname()[0] == bound


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ConfigError, match="can't listen"):
        listen("127.0.0.1", taken.getsockname()[1])


def test_options_of_http_want_http(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["mcp", "--no-token"]) == 2
    assert "go with `--http`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("sent", "known"),
    [
        (["Bearer right"], True),
        (["Bearer wrong"], False),
        (["right"], False),
        ([], False),
        (["Bearer right", "Bearer right"], False),
    ],
)
def test_a_token_is_sent_once_and_is_the_right_one(sent: list[str], known: bool) -> None:
    """Of two, another reader of the request may take the other."""
    served: list[str] = []
    answers: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        served.append(scope["type"])

    async def send(message: Any) -> None:
        answers.append(message)

    headers = [(b"authorization", value.encode()) for value in sent]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}
    asyncio.run(RequireToken(app, "right")(scope, None, send))  # type: ignore[arg-type]
    assert (served == ["http"]) is known
    assert [answer.get("status") for answer in answers[:1]] == ([] if known else [401])
