"""After a pass every statement of `MEMORY.md` names the session, the record and the speaker that it rests on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from stillroom.clock import FixedClock
from stillroom.config import Settings, Source
from stillroom.pipeline import Options, run_pipeline
from stillroom.store import Store

CODEX_HOME = Path(__file__).parents[2] / "examples" / "codex-home"
LISTS = re.compile(r"^### .*\n(?:(?!#).*\n)*", re.MULTILINE)


@pytest.mark.anyio
async def test_each_statement_leads_to_the_record_that_says_it(tmp_path: Path) -> None:
    sources = (Source(format="codex", root=str(CODEX_HOME)),)
    settings, clock = Settings(home=tmp_path / "home", sources=sources), FixedClock(1_796_029_200_000)
    await run_pipeline(settings, options=Options(backfill=True), clock=clock)
    handbook = LISTS.sub("", (settings.root / "MEMORY.md").read_text(encoding="utf-8"))
    statements = [line for line in handbook.splitlines() if line.startswith("- ")]
    assert len(statements) >= 5
    records = {path.stem[-36:]: path.read_text(encoding="utf-8").splitlines() for path in CODEX_HOME.rglob("*.jsonl")}
    with Store.look(settings.database, clock=clock) as store:
        for statement in statements:
            rows = [row for row in store.memory_lines.of(statement) if row.speaker != "nobody"]
            assert rows, statement
            for row in rows:
                # A tool's words stand in the record of its output, some way after that of the call.
                end = row.line_no + (8 if row.speaker == "tool" else 0)
                said = [json.loads(line)["payload"] for line in records[row.thread_id][row.line_no - 1 : end]]
                text = re.sub(r"\\[nt\"\\]|\W+", "", json.dumps(said, ensure_ascii=False))
                assert re.sub(r"\W+", "", row.quote)[:40] in text, (statement, row)
