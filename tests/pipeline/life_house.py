"""A home whose sessions say what a test wants them to say, and a clock that a test moves."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stillroom.clock import DAY_SECONDS, FixedClock
from stillroom.config import Memories, Settings, Source
from stillroom.pipeline import Options, PipelineReport, Trigger, encode_report, run_pipeline
from stillroom.store import Store

NOW = 1_796_029_200  # 2026-11-30T09:00:00Z
DAY, HOUR, MINUTE = DAY_SECONDS, 3600, 60


def thread_id(number: int) -> str:
    return f"019a0000-0000-7000-8000-{number:012d}"


class LifeHouse:
    """Codex sessions under `base`, and Stillroom's home beside them."""

    def __init__(self, base: Path, **memories: Any) -> None:
        self.codex = base / "codex"
        self.codex.mkdir()
        self.clock = FixedClock(NOW * 1000)
        self.settings = Settings(
            home=base / "home",
            memories=Memories(**memories),
            sources=(Source(format="codex", root=str(self.codex)), Source(format="stillroom", root=str(base / "home"))),
        )

    @property
    def now(self) -> int:
        return self.clock.now()

    def said(
        self, number: int, *words: str, at: int | None = None, began: int | None = None, cwd: str = "/home/a/shop"
    ) -> str:
        """A session in which a person said this, each time answered "Understood."; it ended at that second."""
        at = self.now - DAY if at is None else at
        began = at if began is None else began
        rows: list[dict[str, Any]] = [
            {
                "id": thread_id(number),
                "timestamp": _stamp(began),
                "cwd": cwd,
                "originator": "codex-tui",
                "source": "cli",
            }
        ]
        kinds = ["session_meta"]
        for text in words:
            for role, part, said in (("user", "input_text", text), ("assistant", "output_text", "Understood.")):
                rows.append({"type": "message", "role": role, "content": [{"type": part, "text": said}]})
                kinds.append("response_item")
        moment = datetime.fromtimestamp(began, UTC)
        folder = self.codex / f"sessions/{moment:%Y/%m/%d}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"rollout-{moment:%Y-%m-%dT%H-%M-%S}-{thread_id(number)}.jsonl"
        lines = (
            json.dumps({"timestamp": _stamp(began if kind == "session_meta" else at), "type": kind, "payload": row})
            for kind, row in zip(kinds, rows, strict=True)
        )
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        os.utime(path, (at, at))
        return thread_id(number)

    def run(self, *, later: int = 0, trigger: str | None = None, **options: Any) -> PipelineReport:
        """A pass, so many seconds later."""
        self.clock.advance(seconds=later)
        pipeline = run_pipeline(
            self.settings, trigger=Trigger(thread_id=trigger), options=Options(**options), clock=self.clock
        )
        report = asyncio.run(pipeline)
        json.loads(encode_report(report))
        assert not report.failed, encode_report(report)
        return report

    def store(self) -> Store:
        return Store.open(self.settings.database, clock=self.clock)

    def text(self, name: str) -> str:
        path = self.settings.root / name
        return path.read_text(encoding="utf-8") if path.exists() else ""

    @property
    def handbook(self) -> str:
        return self.text("MEMORY.md")

    @property
    def summary(self) -> str:
        return self.text("memory_summary.md")

    def give(self, cwd: str, *, at: int | None = None) -> None:
        """What the hook writes when a session is given memory."""
        entry = {"at": self.now if at is None else at, "agent": "codex", "thread_id": "x", "cwd": cwd}
        with (self.settings.home / "sessions.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def states(self) -> dict[str, str]:
        """How every session stands, by its number."""
        from stillroom.store import Question

        question = Question(memories=self.settings.memories, stage=self.settings.stage_one, now_ms=self.clock.now_ms())
        with self.store() as store:
            return {str(int(s.thread.thread_id[-12:])): s.state for s in store.standings.of_all(question)}


def _stamp(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


def every_line(texts: Sequence[str]) -> str:
    return "\n".join(texts)
