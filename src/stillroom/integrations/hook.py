"""`stillroom-hook AGENT EVENT`: what an agent calls when a session starts or ends. It never breaks or slows it.

It prints what that agent expects, then starts a pass beside the session if one is due. Whatever goes wrong is a line in
`STILLROOM_HOME/hook.log`; the hook then prints nothing, and always exits 0, within two seconds.

Nothing heavy is imported here, and what only people need (help, mistakes) is imported only for them.
"""

from __future__ import annotations

import os
import sys
import time

from stillroom.ending import mark_ended
from stillroom.integrations.bounds import GIVE_UP_SECONDS, MAX_CONTEXT_CHARS
from stillroom.integrations.event import AGENTS, EVENTS, Event, read_event
from stillroom.integrations.journal import log_failure, log_session, was_given
from stillroom.integrations.starting import OFF, start_pass
from stillroom.recall.injection.quick_json import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from stillroom.recall.injection.instructions import Instructions


class _TimeUp(Exception):
    """The hook took too long."""


def main(argv: list[str] | None = None) -> int:
    """Serve one event. Always 0."""
    words = sys.argv[1:] if argv is None else argv
    home = _default_home()
    called = " ".join(words[-2:])
    try:
        _alarm(GIVE_UP_SECONDS)
        asked = _plain(words) or _spoken(words)
        if asked is None:
            return 0
        agent, name, chosen = asked
        home = os.path.abspath(chosen) if chosen else home  # noqa: PTH100
        _serve(home, read_event(agent, name))
    except Exception as error:  # noqa: BLE001 - the outermost guard: the session goes on, whatever this was
        try:
            log_failure(home, f"{called}: {type(error).__name__}: {error}")
        except _TimeUp:  # where nothing answers, the log doesn't either
            pass
    finally:
        _alarm(0)
    return 0


def _serve(home: str, event: Event) -> None:
    if os.environ.get(OFF) == "off" or event.sub_agent or not os.path.isdir(home):  # noqa: PTH112
        return
    if _is_memory_worker(home, event.cwd):
        return
    try:
        if event.name == "session-start" and _wants_memory(home, event):
            _tell(home, event)
        if event.name == "session-end" and event.thread_id:
            mark_ended(home, event.thread_id, at_ms=time.time_ns() // 1_000_000)
    finally:  # a pass may be what mends it
        if not _is_ephemeral(event):
            start_pass(home, event.thread_id, over=event.name == "session-end")


def _tell(home: str, event: Event) -> None:
    told = _instructions(home, event)
    if told is None:
        return
    answer = f'{{"hookEventName":"SessionStart","additionalContext":{quote(told.text)}}}'
    _write(f'{{"hookSpecificOutput":{answer}}}\n'.encode())
    entry: dict[str, str | int] = {
        "at": int(time.time()),
        "agent": event.agent,
        "thread_id": event.thread_id,
        "source": event.source,
        "cwd": event.cwd,
        "version": told.version,
        "tokens": told.tokens,
        "left_out_bytes": told.left_out.bytes,
    }
    try:
        log_session(home, entry)
    except OSError as error:
        log_failure(home, f"{event.agent} {event.name}: {error}")


def _instructions(home: str, event: Event) -> Instructions | None:
    """From the prepared copy; after an edit or a new note from the folder itself, once, at the price of the imports."""
    from stillroom.recall.injection.instructions import Instructions, Stale, fast_instructions

    max_chars = MAX_CONTEXT_CHARS[event.agent]
    told = fast_instructions(home, None, event.cwd, max_chars=max_chars)
    if isinstance(told, Stale):
        from pathlib import Path

        from stillroom.config import load_settings
        from stillroom.recall.injection.instructions import instructions

        told = instructions(load_settings(home=Path(home)), event.cwd, max_chars=max_chars)
    if isinstance(told, Instructions):
        return told
    if told.is_fault:
        log_failure(home, f"{event.agent} {event.name}: no memory is given: {told.reason}")
    return None


def _wants_memory(home: str, event: Event) -> bool:
    """A resumed or forked session still holds what it was given; one from before the installation was given nothing."""
    if event.source == "fork":
        return False
    return event.source != "resume" or not (event.thread_id and was_given(home, event.thread_id))


def _is_memory_worker(home: str, cwd: str) -> bool:
    """A session inside a memory folder maintains memories, as Codex's consolidation agent does."""
    codex = os.environ.get("CODEX_HOME") or os.path.expanduser("~/.codex")  # noqa: PTH111
    folder = os.path.realpath(cwd) + "/"
    workplaces = (home, codex + "/memories", codex + "/memories_v2")
    return any(folder.startswith(os.path.realpath(place) + "/") for place in workplaces)


def _is_ephemeral(event: Event) -> bool:
    """Whether the session leaves no record. One of Claude Code's SDK may; that is known when it ends."""
    if event.name == "session-start" and event.agent == "claude-code":
        return os.environ.get("CLAUDE_CODE_ENTRYPOINT", "").startswith("sdk")
    if event.name == "session-start":
        return event.thread_id != "" and event.transcript == ""
    return not os.path.exists(event.transcript)  # noqa: PTH110


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def _alarm(seconds: float) -> None:
    """Raise `_TimeUp` in so many seconds, and again after as many; 0: never."""

    def give_up(signum: int, frame: FrameType | None) -> None:
        raise _TimeUp(f"gave up after {GIVE_UP_SECONDS:g} s")

    try:
        import _signal as signal  # `signal` itself brings `enum`, which costs as much as the rest of the hook
    except ImportError:
        import signal
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, give_up)
        signal.setitimer(signal.ITIMER_REAL, seconds, seconds)


def _default_home() -> str:
    home = os.environ.get("STILLROOM_HOME") or "~/.stillroom"
    return os.path.abspath(os.path.expanduser(home))  # noqa: PTH100, PTH111


def _plain(words: list[str]) -> tuple[str, str, str] | None:
    """The call as `stillroom init` writes it: `[--home DIR] AGENT EVENT`."""
    home = ""
    if len(words) == 4 and words[0] == "--home":
        home, words = words[1], words[2:]
    if len(words) == 2 and words[0] in AGENTS and words[1] in EVENTS:
        return words[0], words[1], home
    return None


def _spoken(words: list[str]) -> tuple[str, str, str] | None:
    """Every other call: help, a mistake, the words in another order."""
    import argparse

    parser = argparse.ArgumentParser(
        prog="stillroom-hook",
        description="What a coding agent calls when a session starts or ends; `stillroom init` installs it.",
        epilog="Reads the agent's event as JSON on stdin. Failures go to hook.log under the home; the exit code is 0.",
    )
    parser.add_argument("agent", choices=AGENTS)
    parser.add_argument("event", choices=EVENTS)
    parser.add_argument("--home", default="", help="where Stillroom keeps its files (default: ~/.stillroom)")
    try:
        asked = parser.parse_args(words)
    except SystemExit as stop:
        # 2 would tell Claude Code to block. argparse has said on stderr what is wrong.
        if stop.code:
            raise ValueError("not a call of this hook") from None
        return None
    return asked.agent, asked.event, asked.home


if __name__ == "__main__":
    sys.exit(main())
