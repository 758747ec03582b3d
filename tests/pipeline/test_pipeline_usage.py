"""The loop closes: what a later session cites is counted by the next pass, and leads the selection."""

from __future__ import annotations

import json
from pathlib import Path

from faulty_house import NOW_MS, FaultyHouse

from stillroom.cli.report import _lines
from stillroom.consolidate.outcome import Consolidated
from stillroom.recall.usage.citations import strip_memory_citation
from stillroom.store import Store
from stillroom.testing.sessions import sample_rollout


def counts(house: FaultyHouse) -> dict[str, int]:
    with Store.open(house.settings.database, clock=house.clock) as store:
        selected = store.consolidation.select(limit=9, max_unused_days=30).selected
    return {output.thread_id: output.usage_count for output in selected}


def answer(house: FaultyHouse, number: int, text: str, *commands: str) -> Path:
    """A session in which somebody answered like this."""
    path = sample_rollout(house.codex, number=number, size_bytes=2000, started_at_ms=NOW_MS - 60_000)
    items = [
        {"type": "function_call", "name": "exec_command", "arguments": json.dumps({"cmd": command}), "call_id": "c"}
        for command in commands
    ]
    items.append({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
    with path.open("a", encoding="utf-8") as file:
        for item in items:
            line = {"timestamp": "2026-11-30T08:59:30.000Z", "type": "response_item", "payload": item}
            file.write(json.dumps(line) + "\n")
    return path


def test_a_cited_memory_is_counted_once_and_leads_the_selection(tmp_path: Path) -> None:
    house = FaultyHouse(tmp_path)
    house.add_second()
    assert isinstance(house.run().consolidate, Consolidated)
    first, last = counts(house)  # the id that is selected last is about to be used
    summary = next(path for path in (house.root / "rollout_summaries").iterdir() if last in path.read_text("utf-8"))
    block = (
        "<oai-mem-citation>\n<citation_entries>\n"
        f"rollout_summaries/{summary.name}:1-2|note=[what to run]\nMEMORY.md:9000-9001|note=[made up]\n"
        f"</citation_entries>\n<rollout_ids>\n{last}\n{last}\n</rollout_ids>\n</oai-mem-citation>"
    )
    answer(house, 1, f"Run `make check`.\n{block}", f"rg -n check {house.root}/MEMORY.md")
    assert strip_memory_citation(f"Run it.{block}") == "Run it."

    report = house.run()
    assert report.usage is not None
    assert (report.usage.citing, report.usage.counted, report.usage.reads) == (1, 1, {"memory_md": 1})
    assert list(counts(house).items())[:2] == [(last, 1), (first, 0)]
    told = "\n".join(text for _, text in _lines(report, house.settings))
    assert "used          1 use of a memory counted in 1 message; read by 1 command" in told
    assert "`MEMORY.md:9000-9001` is not counted: the file has no such lines" in told

    again = house.run()
    assert again.usage is not None and (again.usage.searched, again.usage.counted) == (0, 0)
    assert counts(house)[last] == 1
