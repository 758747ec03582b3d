"""A session that goes on for days: the offline engine takes time as it is long, not as the square of that."""

from __future__ import annotations

import time

import pytest

from stillroom.offline import distil
from stillroom.sessions.events import Edit, Ran, Said
from stillroom.thread import Thread

THREAD = Thread(
    thread_id="01900000-0000-7000-8000-000000000001",
    agent="codex",
    rollout_path="/home/dev/.codex/sessions/one.jsonl",
    source="cli",
    cwd="/home/dev/project",
    created_at_ms=1_780_000_000_000,
    updated_at_ms=1_780_000_000_000,
)


def session(steps: int, *, since: int) -> list[Said | Ran]:
    """Wishes, then many steps in one turn: what each shows, and what the assistant makes of it, is new."""
    events: list[Said | Ran] = [
        Said(who="user", text=f"Fix module_{number}, and always run `make check_{number}` before you push it.")
        for number in range(since, since + steps // 20)
    ]
    for number in range(since, since + steps):
        command = f"python -m tools.step_{number} --only part_{number}"
        events.append(Ran(tool="shell", arguments="", command=command, output=f"row_{number} ok\n" * 40, exit_code=0))
        events.append(
            Said(who="assistant", text=f"The cause is the limit of `queue_{number}`, which row_{number} fills.")
        )
    events.append(Ran(tool="apply_patch", ok=True, edits=(Edit("a.py", "update", "+x = 1"),)))
    return events


def seconds(steps: int) -> float:
    times = []
    for since in (10_000, 20_000):  # other words each time: none is remembered
        events = session(steps, since=since)
        started = time.process_time()
        assert distil(THREAD, events) is not None
        times.append(time.process_time() - started)
    return min(times)


@pytest.mark.slow
def test_eight_times_as_many_steps_take_about_eight_times_as_long() -> None:
    seconds(50)  # what is compiled when it is first used
    assert seconds(1200) < 8 * 2 * seconds(150)
