"""What real clients store is read as it happened: nobody but the client itself can tell that its format is the same.

A new version is checked with `make clients CLIENT=opencode VERSION=1.19.0`.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.interop.npm import ClientUnavailable
from tests.interop.session_clients import CLIENTS, Client, Start, version_of
from tests.interop.terminal import Terminal

from stillroom.errors import RolloutError
from stillroom.homes import HOMES
from stillroom.sessions.discovery import Found, Unchanged
from stillroom.sessions.events import Ran, Said, read_events
from stillroom.sessions.readers import open_thread, reader_of
from stillroom.testing import LoopbackModel, RecordedRequest, Reply, Say

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

PROMPT = "Find out why the check fails."
PRINTED = "no such module"
ANSWER = "The check ends with 3: a module is missing."
LIMIT = 8 * 1024 * 1024
RUN_SECONDS = 120


class Desk(NamedTuple):
    """A home and a project, both empty but for what the client needs."""

    home: Path
    project: Path
    start: Start

    def environ(self) -> Mapping[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TMPDIR": str(self.home / "tmp"),
            "TERM": "xterm-256color",
            "NO_PROXY": "127.0.0.1,localhost",
            **self.start.environ,
        }


def desk(path: Path, client: Client, base_url: str) -> Desk:
    home, project = path / "home", path / "project"
    (home / "tmp").mkdir(parents=True)
    project.mkdir()
    # Continue tells the code of a command only if that wrote to its error stream.
    (project / "check.sh").write_text(f"echo {PRINTED} >&2\nexit 3\n", encoding="utf-8")
    for command in (["init", "-q", "-b", "trunk"], ["add", "-A"], ["commit", "-q", "-m", "Begin"]):
        who = ["-c", "user.name=dev", "-c", "user.email=dev@example.com"]
        subprocess.run(["git", *who, *command], cwd=project, check=True, timeout=30)
    return Desk(home, project, client.set_up(home, base_url))


def model_of(client: Client) -> LoopbackModel:
    """Asks for the command, and answers when it has seen what that printed. Other questions get a title."""

    def reply(request: RecordedRequest) -> Reply:
        if not request.json.get("tools"):
            return Say("A title")
        return Say(ANSWER) if PRINTED in json.dumps(request.json) else client.shell

    return LoopbackModel(reply)


def program_of(client: Client) -> list[str]:
    try:
        return client.command(version_of(client))
    except ClientUnavailable as error:
        if os.environ.get("STILLROOM_CLIENT"):
            pytest.fail(f"{client.agent} {version_of(client)} can't be had: {error}")
        pytest.skip(f"{client.agent} can't be had: {error}")


def found_of(client: Client, at: Desk) -> list[Found]:
    """What is found in the places where the client keeps its sessions by its own variables."""
    roots = HOMES[client.agent].roots(at.environ())
    discovered = [each for root in roots for each in reader_of(client.agent).discover(root, {}, max_line_bytes=LIMIT)]
    return [each for each in discovered if isinstance(each, Found)]


def check_session(client: Client, at: Desk, *, source: str) -> None:
    (found,) = found_of(client, at)
    thread = found.thread
    assert (thread.agent, thread.cwd, thread.source) == (client.agent, str(at.project.resolve()), source)
    assert (thread.parent_thread_id, thread.preview) == (None, PROMPT)
    assert thread.git_branch == ("trunk" if client.tells_branch else None)
    assert thread.cli_version == (version_of(client) if client.tells_version else None)
    with open_thread(thread, max_line_bytes=LIMIT) as items:
        events = read_events(items)
    said = [(event.who, event.text.strip()) for event in events if isinstance(event, Said)]
    (ran,) = [event for event in events if isinstance(event, Ran)]
    assert said == [("user", PROMPT), ("assistant", ANSWER)]
    assert (ran.command, ran.exit_code, ran.ok) == ("sh check.sh", 3, False)
    assert PRINTED in ran.output
    assert items.stats.unknown == {}, "the client stores something new"
    known = {thread.rollout_path: found.stamp}
    roots = HOMES[client.agent].roots(at.environ())
    again = [each for root in roots for each in reader_of(client.agent).discover(root, known, max_line_bytes=LIMIT)]
    assert again == [Unchanged(thread.rollout_path)]


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.agent)
def test_a_session_without_a_person_is_read_as_it_happened(client: Client, tmp_path: Path) -> None:
    program = program_of(client)
    with model_of(client) as model:
        at = desk(tmp_path, client, model.base_url)
        done = subprocess.run(
            [*program, *at.start.headless, PROMPT],
            env=at.environ(),
            cwd=at.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
    assert done.returncode == 0, (done.stdout, done.stderr)
    check_session(client, at, source=client.source)


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.agent)
def test_a_session_that_a_person_types_in_a_terminal_is_read_as_theirs(client: Client, tmp_path: Path) -> None:
    program = program_of(client)
    with model_of(client) as model:
        at = desk(tmp_path, client, model.base_url)
        with Terminal([*program, *at.start.terminal], environ=at.environ(), cwd=at.project) as terminal:
            terminal.wait_for(client.ready, seconds=RUN_SECONDS)
            terminal.type(PROMPT)
            terminal.wait_for("", seconds=RUN_SECONDS)
            terminal.type("\r")
            terminal.wait_until(lambda: _answered(client, at), seconds=RUN_SECONDS)
    check_session(client, at, source="cli")


def _answered(client: Client, at: Desk) -> bool:
    return any(event == ("assistant", ANSWER) for found in found_of(client, at) for event in _said(found))


def _said(found: Found) -> list[tuple[str, str]]:
    try:
        with open_thread(found.thread, max_line_bytes=LIMIT) as items:
            return [(event.who, event.text.strip()) for event in read_events(items) if isinstance(event, Said)]
    except RolloutError:  # nothing is in it yet
        return []
