"""From what was extracted to what a session is given: every line word for word, in the order of worth."""

from __future__ import annotations

from pathlib import Path

from stillroom.config import Settings, StageTwo
from stillroom.offline import consolidate
from stillroom.recall.injection.instructions import Instructions, compose
from stillroom.recall.injection.preparing import make_ready
from stillroom.recall.injection.scopes import KnownFolder
from stillroom.recall.projects.repository import Repository
from stillroom.store.records import Stage1Output
from stillroom.workspace import artifacts
from stillroom.workspace.syncing import sync

PREFERENCES = [
    'the user said: "always use pnpm here, not npm"',
    'after the assistant said "Shall I use Redis?", the user said: "no, Postgres"',
    'the user said: "line length is 100" (replaces: "line length is 80")',
    'the user said: "in allen meinen Projekten bitte Tabs"',
]
FAILURES = [
    "Run `uv sync` when `pytest` fails with \"No module named 'freezegun'\" (then `uv run pytest -q` passed)",
    'Fix in `a.py` (`+x = 1`) when `make test` fails with "boom" (cause, said by the user: "x is 0"; then it passed)',
]
KNOWLEDGE = ['The assistant found: "the queue is drained by a cron job at 02:00"']


def raw(cwd: str) -> str:
    sections = {
        "Preference signals": PREFERENCES,
        "Reusable knowledge": KNOWLEDGE,
        "Failures and how to do differently": FAILURES,
        "References": ["[1] `make test` -> passed, 3 times", "[2] files: `src/a.py`"],
    }
    text = f"---\ndescription: d\ntask: t\ntask_outcome: success\ncwd: {cwd}\nkeywords: make test\n---\n\n"
    text += "### Task 1: drain the queue\n\ntask: drain the queue\ntask_outcome: success\n\n"
    for title, lines in sections.items():
        text += f"{title}:\n" + "".join(f"- {line}\n" for line in lines) + "\n"
    return text


def test_what_an_engine_writes_reaches_a_session_unchanged(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    settings.root.mkdir(parents=True)
    outputs = [
        Stage1Output(
            thread_id=f"0194f5a6-89ab-7cde-8123-4567{number:08x}",
            source_updated_at=1_795_000_000 + number,
            raw_memory=raw(cwd),
            rollout_summary="# s\n",
            rollout_slug=None,
            rollout_path=f"/r/{number}.jsonl",
            cwd=cwd,
            git_branch=None,
            git_origin_url=None,
            generated_at=1_795_000_100,
            engine="offline",
        )
        for number, cwd in enumerate(("/w/shop", "/w/api"))
    ]
    sync(settings.root, artifacts.render(outputs))
    consolidate(settings.root, outputs, now=0, limits=StageTwo())
    folders = [KnownFolder(out.cwd, Repository(place=out.cwd, folder=out.cwd, is_git=False)) for out in outputs]
    ready = make_ready(settings, folders)
    given = compose(ready, home=str(settings.home), cwd="/w/shop")
    assert isinstance(given, Instructions)
    memory = given.text.partition("</oai-mem-citation>")[2]
    *rows, task = [row for row in memory.split("\n") if row.startswith("- ")]
    assert rows == [
        *(f"- {line}" for line in PREFERENCES[:3]),
        f"- {PREFERENCES[3]} (in every project)",
        *(f"- {line}" for line in FAILURES),
        *(f"- {line}" for line in KNOWLEDGE),
        "- `make test` works here (passed, 3 times, last on 2026-11-18)",
    ]
    assert task.startswith("- Task 1: drain the queue (success) [")
    elsewhere = compose(ready, home=str(settings.home), cwd="/w/blog")
    assert isinstance(elsewhere, Instructions)
    assert [row for row in elsewhere.text.split("\n") if "the user said" in row] == [
        f"- {PREFERENCES[3]} (in every project)"
    ]
