"""A home with one remembered session, and others that use the memory: what the tests of counting work on."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from stillroom.clock import FixedClock
from stillroom.config import Settings, Source
from stillroom.extract.register import register_threads
from stillroom.recall.usage.counts import UsageReport, count_usage
from stillroom.store import Stage1Draft, Store
from stillroom.testing.sessions import sample_rollout
from stillroom.workspace.history import History

NOW = 1_780_400_000
DAY = 24 * 3600
#: The thread that the memory is of.
REMEMBERED = "01900000-0000-7000-8000-000000000000"
HANDBOOK = "one\ntwo\nthree\n"


class UsageHome:
    def __init__(self, tmp_path: Path) -> None:
        self.codex = tmp_path / "codex"
        self.clock = FixedClock(NOW * 1000)
        self.settings = Settings(home=tmp_path / "home", sources=(Source(format="codex", root=str(self.codex)),))
        self.root = self.settings.root
        self.root.mkdir(parents=True)
        self.store = Store.open(self.settings.database, clock=self.clock)
        self.history = History(self.settings.history)

    def remember(self, number: int = 0) -> str:
        """A session with a stored memory, and a folder that holds it."""
        thread_id = f"01900000-0000-7000-8000-{number:012x}"
        sample_rollout(self.codex, number=number, size_bytes=2000, started_at_ms=(NOW - 5 * DAY) * 1000)
        self.register()
        found = self.store.threads.get(thread_id)
        assert found is not None
        claim = self.store.extraction.try_claim(
            thread_id,
            worker_id="w",
            source_updated_at=found.updated_at,
            stage=self.settings.stage_one,
            max_running=8,
        )
        draft = Stage1Draft(raw_memory="raw", rollout_summary="summary", rollout_slug=None)
        assert self.store.extraction.finish(claim, draft, engine="offline")  # type: ignore[arg-type]
        (self.root / "MEMORY.md").write_text(HANDBOOK, encoding="utf-8")
        self.history.ensure(self.root, now=NOW - 4 * DAY)
        return thread_id

    def session(self, number: int, *items: dict[str, Any], at: int = NOW - DAY, **options: Any) -> Path:
        """A session that began at `at`, with these items behind a few of its own."""
        path = sample_rollout(self.codex, number=number, size_bytes=2000, started_at_ms=at * 1000, **options)
        self.append(path, *items, at=at + 60)
        return path

    def append(self, path: Path, *items: dict[str, Any], at: int = NOW - DAY) -> None:
        with path.open("a", encoding="utf-8") as file:
            for item in items:
                line = {"timestamp": stamp(at), "type": "response_item", "payload": item}
                file.write(json.dumps(line, separators=(",", ":")) + "\n")
        os.utime(path, ns=(at * 10**9, at * 10**9 + path.stat().st_size))

    def register(self) -> None:
        asyncio.run(register_threads(self.settings, self.store))

    def count(self, **options: Any) -> UsageReport:
        self.register()
        report = count_usage(self.settings, self.store, self.clock, **options)
        return msgspec.structs.replace(report, duration_ms=0, bytes=0)

    def usage(self, thread_id: str = REMEMBERED) -> tuple[int, int | None]:
        output = next(o for o in self.store.outputs.latest() if o.thread_id == thread_id)
        return output.usage_count, output.last_usage


def stamp(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def said(text: str, role: str = "assistant") -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def citing(*ids: str, entries: tuple[str, ...] = ("MEMORY.md:1-2",), words: str = "Done.") -> dict[str, Any]:
    lines = ["<oai-mem-citation>", "<citation_entries>", *(f"{entry}|note=[x]" for entry in entries)]
    lines += ["</citation_entries>", "<rollout_ids>", *ids, "</rollout_ids>", "</oai-mem-citation>"]
    return said(words + "\n" + "\n".join(lines))


def ran(command: str, *, call_id: str = "c", workdir: str | None = None) -> dict[str, Any]:
    arguments = {"cmd": command} | ({"workdir": workdir} if workdir else {})
    return {"type": "function_call", "name": "exec_command", "arguments": json.dumps(arguments), "call_id": call_id}


def ended(code: int, *, call_id: str = "c") -> dict[str, Any]:
    output = f"Process exited with code {code}\nOutput:\ntext"
    return {"type": "function_call_output", "call_id": call_id, "output": output}
