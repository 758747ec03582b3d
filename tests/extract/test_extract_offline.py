"""Phase 1 by the offline engine: the same store, the same outcomes, nothing that could reach a network."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from extract_home import Home, thread_id

from stillroom.extract.outcome import Failed, NoOutput, WithOutput
from stillroom.extract.reading import count_thread
from stillroom.extract.run import run_phase1


@pytest.fixture
def home(tmp_path: Path):
    made = Home(tmp_path, model="offline")
    yield made
    made.store.close()


def test_what_the_user_asked_for_is_kept_with_its_engine(home: Home):
    home.add(0, size_bytes=20_000, messages=("Always run the tests with `make check`, never with plain pytest.",))
    report = home.run()
    assert isinstance(report.outcomes[0], WithOutput)
    assert report.usage is None
    (stored,) = home.store.outputs.latest()
    assert stored.engine == "offline"
    assert "make check" in stored.raw_memory
    assert home.store.ledger.calls() == []


def test_what_a_session_held_is_kept_when_it_is_read(home: Home):
    path = home.add(0, messages=("Always use tabs.",))
    first, _, rest = path.read_bytes().partition(b"\n")
    path.write_bytes(first + b'\n{"timestamp":"t","type":"hologram","payload":{}}\nno json\n' + rest)
    home.run()
    (total,) = home.store.reads.totals()
    assert (total.threads, total.bad_lines) == (1, 1)
    assert total.messages > 0
    assert [(each.kind, each.records) for each in home.store.reads.unknown()] == [("hologram", 1)]
    thread = home.store.threads.get(thread_id(0))
    assert thread is not None
    counted = count_thread(thread, stage=home.settings.stage_one)
    assert (counted.messages, counted.tokens, counted.unknown) == (total.messages, total.tokens, {"hologram": 1})


def test_secrets_do_not_survive(home: Home):
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    text = f"Always push with the token {secret}, and never force-push to main."
    home.add(0, size_bytes=2000, messages=(text,))
    home.run()
    for stored in home.store.outputs.latest():
        assert secret not in stored.raw_memory + stored.rollout_summary + (stored.rollout_slug or "")
        assert "ghp_" not in stored.raw_memory + stored.rollout_summary + (stored.rollout_slug or "")


def test_a_session_of_small_talk_is_a_success_without_a_row(home: Home):
    home.add(0, size_bytes=1, messages=("what day is it?",))
    report = home.run()
    assert isinstance(report.outcomes[0], NoOutput)
    job = home.store.extraction.job(thread_id(0))
    assert job is not None
    assert job.status == "done"


def test_a_session_that_cannot_be_read_fails_alone(home: Home):
    home.add(0, size_bytes=2000)
    broken = home.add(1, size_bytes=2000)
    home.register()
    broken.write_bytes(b"")
    report = asyncio.run(run_phase1(home.settings, home.store, home.clock, worker_id="w"))
    outcomes = {outcome.thread_id: type(outcome) for outcome in report.outcomes}
    assert outcomes[thread_id(1)] is Failed
    assert outcomes[thread_id(0)] is not Failed


def test_the_rules_import_nothing_that_reaches_a_network(tmp_path: Path):
    code = f"""
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
from stillroom.testing.sessions import sample_rollout
from stillroom.clock import FixedClock
from stillroom.config import Memories, Settings, Source
from stillroom.extract.register import register_threads
from stillroom.extract.reading import count_thread
from stillroom.extract.run import run_phase1
from stillroom.store import Store
folder = Path({str(tmp_path)!r})
sample_rollout(folder / "codex", started_at_ms=1_780_000_000_000)
settings = Settings(home=folder, memories=Memories(), sources=(Source(format="codex", root=str(folder / "codex")),))
clock = FixedClock(1_780_100_000_000)
with Store.open(settings.database, clock=clock) as store:
    asyncio.run(register_threads(settings, store))
    report = asyncio.run(run_phase1(settings, store, clock, worker_id="w"))
assert report.claimed == 1 and report.failed == 0, report
heavy = {{"pydantic", "pydantic_ai", "openai", "httpx2", "stillroom.models.http1", "genai_prices"}}
print(sorted(heavy & set(sys.modules)))
"""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=environ)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
