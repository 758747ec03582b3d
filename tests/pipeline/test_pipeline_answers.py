"""Right answers of a model, in five languages: nothing of them is lost on the way to the folder and to a session."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from stillroom.clock import FixedClock
from stillroom.config import Memories, Settings, Source
from stillroom.consolidate.outcome import Consolidated
from stillroom.evaluate.scenario import from_table, write_rollout
from stillroom.pipeline import Options, run_pipeline
from stillroom.store import Store
from stillroom.testing import LoopbackModel, RecordedRequest, Reply, Say

sys.path.append(str(Path(__file__).parents[1] / "extract"))

from answers import ANSWERS, Answer

NOW_MS = 1_796_029_200_000
SESSION = {"started": datetime(2026, 11, 29, 9, tzinfo=UTC), "cwd": "/home/dev/shop"}
SCRIPT = """
@u the date test fails on my machine. {0}
@x1 pnpm vitest run
 FAIL src/dates.test.ts: one day off
@x0 TZ=UTC pnpm vitest run
 12 passed
@f The test read the zone of the machine; with TZ=UTC it passes. vitest reads the zone once, at its start.
@u good. {1}
@f I will wait.
"""


def bullets(text: str) -> list[str]:
    return [line[2:] for line in text.splitlines() if line.startswith("- ") and not line.startswith("- [")]


@pytest.mark.parametrize("language", ANSWERS)
def test_a_right_answer_reaches_the_folder_whole(tmp_path: Path, language: str) -> None:
    answer: Answer = ANSWERS[language]
    write_rollout(from_table(language, {**SESSION, "script": SCRIPT.format(*answer.words)}), tmp_path / "codex")

    def respond(request: RecordedRequest) -> Reply:
        assert all(words in request.user_text for words in answer.words)
        return Say(
            {"raw_memory": answer.raw_memory, "rollout_summary": answer.rollout_summary, "rollout_slug": "dates"}
        )

    with LoopbackModel(respond) as server:
        settings = Settings(
            home=tmp_path / "home",
            memories=Memories(extract_model="l:m"),
            providers={"l": server.provider()},
            sources=(Source(format="codex", root=str(tmp_path / "codex")),),
        )
        report = asyncio.run(run_pipeline(settings, options=Options(backfill=True), clock=FixedClock(NOW_MS)))
    assert isinstance(report.consolidate, Consolidated) and report.consolidate.withheld == 0
    with Store.open(settings.database, clock=FixedClock(NOW_MS)) as store:
        (stored,) = store.outputs.latest()
    assert (stored.raw_memory, stored.rollout_summary) == (answer.raw_memory, answer.rollout_summary)
    handbook = (settings.root / "MEMORY.md").read_text(encoding="utf-8")
    for bullet in bullets(answer.raw_memory):
        assert f"- {bullet} [Task 1]" in handbook
    assert re.search("^- .*ERR_PNPM_OUTDATED_LOCKFILE", handbook, re.MULTILINE)
    given = recalled(settings)
    for bullet in bullets(answer.raw_memory):
        assert bullet in given


def recalled(settings: Settings) -> str:
    """What a session in the project is given."""
    words = ["recall", "--home", str(settings.home), "--cwd", "/home/dev/shop"]
    done = subprocess.run(
        [sys.executable, "-m", "stillroom", *words], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout
