"""The parent's end: a worker that dies, hangs, floods or lies is ended, told of, and started anew."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from stillroom.errors import JailError
from stillroom.sandbox import Jail, JailLimits, Worker, choose
from stillroom.sandbox.jail import Launch
from stillroom.sandbox.watch import descendants
from stillroom.sandbox.worker_process import start_worker

InJail = Callable[..., None]


def reply(number: int, text: str) -> str:
    """Code that answers with a text, which is code too."""
    rest = "ok=True, truncated=False, changed=False, growth=0"
    return f"import json; print(json.dumps(dict(id={number}, text={text}, {rest})))"


READY = "import sys; sys.stdin.readline(); print('{\"ready\": true}', flush=True)\n"


def alive(processes: list[int]) -> list[int]:
    return [process for process in processes if Path(f"/proc/{process}").exists()]


async def fake(folder: Path, limits: JailLimits, code: str) -> Worker:
    """A worker that runs `code` once it is up."""
    argv = (sys.executable, "-I", "-S", "-c", READY + code)
    launch = Launch(level="files", argv=argv, working_directory=folder, environment={})
    return await start_worker(launch, folder, limits=limits)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("sys.stdin.readline(); print('garbage')", "the answer was not one"),
        ("sys.stdin.readline(); print('{}')", "the answer was not one"),
        ("sys.stdin.readline(); sys.stdout.buffer.write(b'\\xff\\n')", "the answer was not one"),
        ("sys.stdin.readline(); print('x' * 10_000_000)", "the answer was too long"),
        ("sys.stdin.readline(); sys.stdout.write('x' * 10_000_000); sys.stdin.readline()", "the answer was too long"),
        ("sys.stdin.readline(); " + reply(7, "''"), "another question"),
        ("sys.stdin.readline()", "the worker ended"),
        ("import os; sys.stdin.readline(); os.kill(os.getpid(), 9)", "the worker ended"),
        ("sys.exit()", "the worker ended"),
        ("sys.stdin.readline(); sys.stdin.readline()", "no answer within 1 s"),
        ("sys.stdin.readline(); sys.stderr.write('x' * 10_000_000); print('garbage')", "no answer|not one"),
    ],
)  # fmt: skip
def test_a_worker_that_gives_no_answer_is_ended(folder: Path, limits: JailLimits, code: str, words: str) -> None:
    async def whole() -> None:
        worker = await fake(folder, replace(limits, call_seconds=1), code)
        pid = worker.process_id
        try:
            result = await worker.call("read", {"path": "MEMORY.md"})
        finally:
            await worker.close()
        assert not result.ok
        assert any(word in result.text for word in words.split("|")), result.text
        assert pid is not None and not alive([pid])

    asyncio.run(whole())


def test_an_answer_is_cut_by_the_parent_too(folder: Path, limits: JailLimits) -> None:
    async def whole() -> None:
        worker = await fake(folder, limits, "sys.stdin.readline(); " + reply(1, "'\\u00e9' * 20000"))
        result = await worker.call("read", {"path": "MEMORY.md"})
        await worker.close()
        assert result.truncated and result.text.endswith(" [cut]")
        assert len(result.text.encode()) <= limits.output_bytes

    asyncio.run(whole())


def test_a_worker_that_does_not_come_up_is_an_error_with_its_last_words(folder: Path, limits: JailLimits) -> None:
    async def whole() -> None:
        launch = Launch(level="files", argv=(sys.executable, "-c", "import sys; sys.exit('no such luck')"),
                        working_directory=folder, environment={})  # fmt: skip
        with pytest.raises(JailError, match="no such luck"):
            await start_worker(launch, folder, limits=limits)
        with pytest.raises(JailError, match="can't be started"):
            await start_worker(replace(launch, argv=("/nothing",)), folder, limits=limits)

    asyncio.run(whole())


def test_a_killed_worker_is_started_anew_a_few_times(
    any_jail: Jail, folder: Path, in_jail: InJail, limits: JailLimits
) -> None:
    async def scene(worker: Worker) -> None:
        for _ in range(limits.restarts):
            assert worker.process_id is not None
            for process in [*descendants(worker.process_id), worker.process_id]:
                with suppress(ProcessLookupError):  # one may end with the one before
                    os.kill(process, signal.SIGKILL)
            told = await worker.call("read", {"path": "MEMORY.md"})
            assert not told.ok and "the worker ended" in told.text
            assert (await worker.call("read", {"path": "MEMORY.md"})).ok
            break
        assert worker.process_id is not None

    in_jail(any_jail, folder, scene)


def test_after_too_many_ends_there_is_no_new_start(folder: Path, limits: JailLimits) -> None:
    async def whole() -> None:
        worker = await fake(folder, replace(limits, restarts=2), "sys.exit()")
        told = [(await worker.call("list", {})).text for _ in range(4)]
        await worker.close()
        assert [text.startswith("the tools were stopped: the worker ended") for text in told] == [True] * 3 + [False]
        assert told[-1] == "the tools had to be stopped too often and are not started again"

    asyncio.run(whole())


def test_a_cancelled_call_leaves_no_process(shell_jail: Jail, folder: Path, in_jail: InJail) -> None:
    async def scene(worker: Worker) -> None:
        root = worker.process_id
        call = asyncio.create_task(worker.call("shell", {"command": "(sleep 1000; true)"}))
        idle = below = descendants(root or 0)
        while len(below) < len(idle) + 2:
            await asyncio.to_thread(time.sleep, 0.005)
            below = descendants(root or 0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert below and not alive(below)
        assert (await worker.call("read", {"path": "MEMORY.md"})).ok

    in_jail(shell_jail, folder, scene)


def test_calls_at_once_are_answered_in_turn(any_jail: Jail, folder: Path, in_jail: InJail) -> None:
    async def scene(worker: Worker) -> None:
        results = await asyncio.gather(
            *(worker.call("write", {"path": f"{number}.md", "content": str(number)}) for number in range(20))
        )
        assert [result.text for result in results] == [
            f"added {number}.md  {len(str(number))} bytes" for number in range(20)
        ]

    in_jail(any_jail, folder, scene)


def test_the_time_of_a_run_ends(folder: Path, limits: JailLimits) -> None:
    async def whole() -> None:
        jail = choose("files")
        async with await jail.start(folder, limits=replace(limits, run_seconds=0)) as worker:
            told = await worker.call("list", {})
            assert told.text == "the time of this run (0 s) is over"
            assert worker.process_id is None
        with pytest.raises(JailError, match="closed"):
            await worker.call("list", {})

    asyncio.run(whole())
