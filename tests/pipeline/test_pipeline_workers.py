"""A large pass that several processes share, as a person starts it: it comes to the same, and however one of them ends,
nothing is lost, done twice, or left running."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from stillroom.clock import FixedClock
from stillroom.config import load_settings
from stillroom.store import Store
from stillroom.store.records import Job
from stillroom.testing import SAMPLE_MEMORY, Hang, LoopbackModel, RecordedRequest, Reply, Say, Slowly, sample_rollout

SOURCES = Path(__file__).parents[2] / "src"
NOW_MS = 1_796_029_200_000  # 2026-11-30T09:00:00Z
DAY_MS = 24 * 3600 * 1000
THREADS = 40
PATIENCE_SECONDS = 30
#: Whoever starts the tests in the background has them, and all that they start, ignore Ctrl-C.
PROGRAM = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); import stillroom.__main__"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")


def house(
    tmp_path: Path,
    *,
    name: str = "home",
    model: str = "offline",
    server: LoopbackModel | None = None,
    **memories: object,
) -> Path:
    """A home with finished sessions."""
    for number in range(THREADS):
        sample_rollout(
            tmp_path / "codex", number=number, size_bytes=8000, started_at_ms=NOW_MS - DAY_MS - number * 1000
        )
    home = tmp_path / name
    home.mkdir()
    keys = {"extract_model": model, "default_sources": False, "extract_processes": 2, **memories}
    lines = ["[memories]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]
    if server is not None:
        lines += ["[providers.loopback]", 'kind = "openai-responses"', f'base_url = "{server.base_url}"']
    lines += ["[[sources]]", 'format = "codex"', f"root = {json.dumps(str(tmp_path / 'codex'))}"]
    (home / "config.toml").write_text("\n".join(lines), encoding="utf-8")
    return home


def start(home: Path, *options: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", PROGRAM, "run", "--backfill", "--yes", "--json", "--home", str(home), *options]
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCES), "NO_PROXY": "127.0.0.1"}
    return subprocess.Popen(
        [*words, "--now", "2026-11-30T09:00:00Z"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def report_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert out, errors
    report: dict[str, Any] = json.loads(out)
    return report


def await_all_in_flight(server: LoopbackModel) -> None:
    """As many requests as may be under way at once wait for their answers: four of this process, four of the other."""
    until = time.monotonic() + PATIENCE_SECONDS
    while server.in_flight < 8:
        assert time.monotonic() < until
        time.sleep(0.005)


def worker_of(process: subprocess.Popen[str]) -> int:
    (worker,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
    return int(worker)


def await_end_of_group(process: subprocess.Popen[str]) -> None:
    """Nothing that the command started runs any more."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        assert time.monotonic() < until
        time.sleep(0.01)


def jobs(home: Path) -> list[Job]:
    with Store.open(load_settings(home=home).database, clock=FixedClock(NOW_MS)) as store:
        found = [store.extraction.job(f"01900000-0000-7000-8000-{number:012x}") for number in range(THREADS)]
    return [job for job in found if job is not None]


def slow_at_first(request: RecordedRequest) -> Reply:
    return Slowly(1.0, Say(SAMPLE_MEMORY)) if request.number <= 8 else Say(SAMPLE_MEMORY)


def test_two_processes_share_a_pass_and_one_report_tells_of_all(tmp_path: Path) -> None:
    with LoopbackModel(slow_at_first) as server:
        home = house(tmp_path, model="loopback:m", server=server)
        process = start(home)
        await_all_in_flight(server)
        report = report_of(process)
        assert (process.returncode, server.count, server.max_in_flight) == (0, THREADS, 8)
    assert (report["extract"]["claimed"], report["extract"]["with_output"]) == (THREADS, THREADS)
    with Store.open(load_settings(home=home).database, clock=FixedClock(NOW_MS)) as store:
        spent = store.ledger.spent_since(0)
    assert spent.input_tokens > 0
    assert report["spending"]["run_tokens"] == report["spending"]["day_tokens"]
    assert report["extract"]["usage"]["input_tokens"] == spent.input_tokens


def test_the_rules_come_to_the_same_in_one_process_and_in_two(tmp_path: Path) -> None:
    folders = []
    for processes in (1, 2):
        home = house(tmp_path, name=f"home-{processes}", extract_processes=processes)
        report = report_of(start(home))
        assert report["extract"]["with_output"] == THREADS
        folder = home / "memories"
        folders.append({path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.md")})
    assert len(folders[0]) > THREADS
    assert folders[0] == folders[1]


def test_a_worker_that_dies_fails_the_sessions_at_hand_and_no_others(tmp_path: Path) -> None:
    with LoopbackModel(slow_at_first) as server:
        home = house(tmp_path, model="loopback:m", server=server)
        process = start(home)
        await_all_in_flight(server)
        os.kill(worker_of(process), signal.SIGKILL)
        report = report_of(process)
        assert (process.returncode, report["extract"]["failed"], report["extract"]["with_output"]) == (
            1,
            4,
            THREADS - 4,
        )
        reasons = {outcome["reason"] for outcome in report["extract"]["outcomes"] if outcome["outcome"] == "failed"}
        assert reasons == {"the process that extracted it ended"}
        again = report_of(start(home, "--retry"))
    assert again["extract"]["with_output"] == 4


def test_ctrl_c_hands_everything_back_and_leaves_no_process(tmp_path: Path) -> None:
    with LoopbackModel(Hang()) as server:
        home = house(tmp_path, model="loopback:m", server=server)
        process = start(home)
        await_all_in_flight(server)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it: to both
        process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130
    await_end_of_group(process)
    assert {(job.status, job.retry_remaining) for job in jobs(home)} <= {("pending", 3)}


def test_a_worker_ends_when_the_pass_is_killed(tmp_path: Path) -> None:
    with LoopbackModel(Hang()) as server:
        process = start(house(tmp_path, model="loopback:m", server=server))
        await_all_in_flight(server)
        process.kill()
        process.communicate(timeout=PATIENCE_SECONDS)
        await_end_of_group(process)


def test_a_cap_holds_for_all_processes_together(tmp_path: Path) -> None:
    with LoopbackModel(Slowly(0.05, Say(SAMPLE_MEMORY))) as server:
        home = house(tmp_path, model="loopback:m", server=server, max_weighted_tokens_per_run=20_000)
        report = report_of(start(home))
        sent = server.count
    spending, extract = report["spending"], report["extract"]
    assert spending["reached"] == "run"
    assert (extract["with_output"], extract["capped"]) == (sent, extract["claimed"] - sent)
    each = spending["run_tokens"] / sent
    assert 20_000 <= spending["run_tokens"] <= 20_000 + 2 * 8 * each  # what was under way, and what was not told yet
    assert sent < THREADS


def test_a_small_pass_starts_no_other_process(tmp_path: Path) -> None:
    with LoopbackModel(Slowly(0.5, Say(SAMPLE_MEMORY))) as server:
        process = start(house(tmp_path, model="loopback:m", server=server), "--limit", "2")
        while server.in_flight < 2:
            time.sleep(0.005)
        assert not Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
        assert report_of(process)["extract"]["with_output"] == 2
