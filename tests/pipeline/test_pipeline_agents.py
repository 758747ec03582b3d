from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from stillroom.clock import FixedClock
from stillroom.config import Settings, Source, load_settings
from stillroom.pipeline import Options, PipelineReport, run_pipeline

DATA = Path(__file__).parents[1] / "data"
LAYOUTS = {
    "gemini-cli": "0.61.0-interactive-hooks",
    "qwen-code": "0.24.4",
    "pi": "1.6.0",
    "letta-code": "0.25.9",
    "kimi-code": "2.1.0",
    "cursor": "transcripts",
    "continue": "1.5.47",
}
#: Samples of scripts, as if a person had started them: the file, and what says that nobody did.
SCRIPTED = {
    "aider": ("0.86.2/.aider.chat.history.md", b" --message "),
    "cline": ("3.0.65/sessions/1795954684396_4glaa/1795954684396_4glaa.json", b'"interactive": false,'),
}
NOW_MS = 1_796_029_200_000  # 2026-11-30T09:00:00Z
YESTERDAY = NOW_MS // 1000 - 86_400


def home_of(agent: str, tmp_path: Path) -> Path:
    """The samples of an agent, where its client would have them."""
    if agent in LAYOUTS:
        return _copied(agent, LAYOUTS[agent], tmp_path)
    if agent == "copilot-cli":
        for sample in sorted((DATA / agent / "1.0.102").glob("session-state/*/events.jsonl")):
            events = tmp_path / "session-state" / sample.parent.name / sample.name
            events.parent.mkdir(parents=True)
            # As in a terminal: the model is not told that it is alone.
            events.write_bytes(sample.read_bytes().replace(b"running in non-interactive mode", b"running"))
        return tmp_path
    if agent in SCRIPTED:
        name, mark = SCRIPTED[agent]
        layout = _copied(agent, name.partition("/")[0], tmp_path)
        sample = tmp_path / name
        sample.write_bytes(sample.read_bytes().replace(mark, b""))
        os.utime(sample, (YESTERDAY, YESTERDAY))
        return layout
    with closing(sqlite3.connect(tmp_path / "opencode.db")) as db:
        db.executescript((DATA / agent / "1.18.33-sqlite" / "opencode.sql").read_text(encoding="utf-8"))
        # As in a terminal: nobody is forbidden to ask.
        db.execute("UPDATE session SET permission = NULL")
        db.commit()
    return tmp_path


def _copied(agent: str, layout: str, tmp_path: Path) -> Path:
    """Of sessions without times of their own the files tell them: those of a checkout are made today."""
    copy = shutil.copytree(DATA / agent / layout, tmp_path / layout)
    for path in copy.rglob("*"):
        os.utime(path, (YESTERDAY, YESTERDAY))
    return copy


def run(given: Settings) -> PipelineReport:
    given.home.mkdir(exist_ok=True)
    return asyncio.run(run_pipeline(given, options=Options(backfill=True), clock=FixedClock(NOW_MS)))


@pytest.mark.parametrize(
    ("agent", "threads", "remembered"),
    [
        ("opencode", 5, {"ses_dd8d82547ffeDdoCYso9DF8sM9"}),
        ("gemini-cli", 1, {"12a1d3a5-cabf-46c7-97f6-b8b17d2b0e1b"}),
        ("qwen-code", 5, {"501d014b-57f0-4583-a5f0-32ffc3021f45"}),
        ("copilot-cli", 4, {"46e5d3f1-5f87-4c4b-84c5-e3621d6b0623"}),
        ("pi", 4, {"01a22734-2818-7098-9c1e-108793fdc668"}),
        ("letta-code", 1, {"agent-local-46693f53-37cb-4124-8029-748a9486269f:local-conv-1"}),
        ("kimi-code", 4, {"session_a8b881e2-d699-405e-8016-eb7ad75b3330"}),
        ("cursor", 3, {"2f6a8c74-2c2a-4d9a-9f7b-7d4c3e8b2a33"}),
        ("continue", 1, {"b933312d-17bc-43a1-a168-a7419d773069"}),
        ("aider", 2, {"20261129T122359"}),
        ("cline", 1, {"1795954684396_4glaa"}),
    ],
)
def test_the_sessions_of_every_agent_become_memory(tmp_path: Path, agent: str, threads: int, remembered: set[str]):
    root = home_of(agent, tmp_path)
    given = load_settings(home=tmp_path / "home", environ={})
    given = msgspec.structs.replace(given, sources=(Source(format=agent, root=str(root)),))
    report = run(given)
    assert not report.failed
    assert report.threads is not None
    assert (report.threads.found, report.threads.broken) == (threads, ())
    raw = (given.root / "raw_memories.md").read_text(encoding="utf-8")
    assert {name for name in remembered if name in raw} == remembered
    again = run(given)
    assert again.threads is not None
    assert (again.threads.found, again.threads.unchanged, again.threads.missing) == (0, threads, 0)
