"""What the tests of the offline engine tell it, event by event, and what it makes of that."""

from __future__ import annotations

from stillroom.offline import distil
from stillroom.sessions.events import Edit, Ran, Said
from stillroom.thread import Thread


def memory(*events: Said | Ran) -> str:
    """The raw memory of a session; "" where there is none."""
    thread = Thread(
        thread_id="t", agent="codex", rollout_path="/r", source="cli", cwd="/w", created_at_ms=0, updated_at_ms=0
    )
    draft = distil(thread, events)
    return draft.raw_memory if draft else ""


def user(text: str) -> Said:
    return Said(who="user", text=text)


def run(command: str, output: str = "", code: int = 0, workdir: str | None = None) -> Ran:
    return Ran(tool="shell", command=command, output=output, exit_code=code, ok=code == 0, workdir=workdir)


def patch(path: str, diff: str) -> Ran:
    return Ran(tool="apply_patch", ok=True, edits=(Edit(path=path, action="update", diff=diff),))
