from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from usage_home import DAY, HANDBOOK, NOW, REMEMBERED, UsageHome, citing, ended, ran, said

from stillroom import telemetry
from stillroom.config import CITING
from stillroom.recall.usage.citations import CitationEntry, MemoryCitation
from stillroom.recall.usage.counts import Invalid, UsageReport, count_usage, record_citation
from stillroom.store import Store

SESSION = "01900000-0000-7000-8000-000000000001"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[UsageHome]:
    home = UsageHome(tmp_path)
    home.remember()
    home.count()
    yield home
    home.store.close()


def test_a_cited_thread_is_used_once_and_steers_the_selection(home: UsageHome) -> None:
    other = home.remember(9)
    home.count()
    assert [o.thread_id for o in home.store.consolidation.select(limit=2, max_unused_days=30).selected] == [
        other,
        REMEMBERED,
    ]
    home.session(1, citing(REMEMBERED))
    assert home.count() == UsageReport(searched=1, citing=1, counted=1)
    # When it was said, not when it was read.
    assert home.usage() == (1, NOW - DAY + 60)
    assert [o.thread_id for o in home.store.consolidation.select(limit=2, max_unused_days=30).selected] == [
        REMEMBERED,
        other,
    ]
    assert home.count() == UsageReport()
    assert home.usage() == (1, NOW - DAY + 60)


def test_a_grown_file_counts_only_what_is_new(home: UsageHome) -> None:
    path = home.session(1, citing(REMEMBERED))
    home.count()
    home.append(path, citing(REMEMBERED), said("nothing cited"), at=NOW - 3600)
    assert home.count() == UsageReport(searched=1, citing=1, counted=1)
    assert home.usage() == (2, NOW - 3600)


def test_a_file_written_anew_counts_nothing_twice(home: UsageHome) -> None:
    path = home.session(1, citing(REMEMBERED), ran("cat memories/MEMORY.md"), citing(REMEMBERED), citing("x"))
    home.count()
    first, *rest = path.read_text(encoding="utf-8").splitlines(keepends=True)
    random.Random(1).shuffle(rest)
    text = first + "".join(rest).replace("2026-0", "2025-0")
    path.write_text(text, encoding="utf-8")
    assert home.count() == UsageReport(searched=1)
    assert home.usage()[0] == 2


def test_an_id_counts_once_a_message_whatever_the_number_of_blocks(home: UsageHome) -> None:
    block = citing(REMEMBERED, REMEMBERED.upper())["content"][0]["text"]
    home.session(
        1, said(f"{block} and {block}"), said("A block without an end: " + block[: -len("</oai-mem-citation>")])
    )
    assert home.count() == UsageReport(searched=1, citing=2, counted=2)
    assert home.usage()[0] == 2


def test_what_users_tools_and_instructions_say_is_no_citation(home: UsageHome) -> None:
    text = citing(REMEMBERED)["content"][0]["text"]
    output = {"type": "function_call_output", "call_id": "c", "output": text}
    home.session(1, said(text, "user"), said(text, "developer"), output)
    assert home.count() == UsageReport(searched=1)


def test_a_message_whose_entries_all_fail_counts_nothing_and_says_why(home: UsageHome) -> None:
    home.session(1, citing(REMEMBERED, entries=("../../etc/passwd:1-2", "MEMORY.md:9-2", "MEMORY.md:2-4", "no.md:1-1")))
    report = home.count()
    assert (report.citing, report.counted, report.invalid_total) == (1, 0, 4)
    assert [(invalid.cited, invalid.reason) for invalid in report.invalid] == [
        ("../../etc/passwd:1-2", "no path inside of the memory folder"),
        ("MEMORY.md:9-2", "the range ends before it begins"),
        ("MEMORY.md:2-4", "the file has no such lines"),
        ("no.md:1-1", "there is no such file"),
    ]
    assert home.usage() == (0, None)
    assert home.count() == UsageReport()  # told once


def test_one_entry_that_holds_is_enough_and_ids_alone_count_too(home: UsageHome) -> None:
    home.session(1, citing(REMEMBERED, entries=("no.md:1-1", "MEMORY.md:3-3")))
    home.session(2, citing(REMEMBERED, entries=()))
    # As in Codex, entries alone name nobody.
    home.session(3, citing(entries=("MEMORY.md:1-1",)))
    report = home.count()
    assert (report.citing, report.counted, report.invalid_total) == (3, 2, 1)


def test_an_id_without_a_memory_is_told(home: UsageHome) -> None:
    home.session(1, citing(REMEMBERED, "7f000000-0000-4000-8000-000000000000", "no id"))
    report = home.count()
    assert (report.counted, report.invalid_total) == (1, 2)
    assert report.invalid[1] == Invalid(thread_id=SESSION, cited="no id", reason="no memory of such a thread")


def test_lines_of_the_version_that_the_session_was_given_count(home: UsageHome) -> None:
    (home.root / "MEMORY.md").write_text("short\n", encoding="utf-8")
    home.history.commit(home.root, "Shorten", now=NOW - DAY + 1000)
    home.session(1, citing(REMEMBERED, entries=("MEMORY.md:3-3",)), at=NOW - 2 * DAY)
    home.session(2, citing(REMEMBERED, entries=("MEMORY.md:3-3",)), at=NOW - DAY + 2000)
    home.session(3, citing(REMEMBERED, entries=("MEMORY.md:3-3",)), at=NOW - 9 * DAY)
    report = home.count()
    assert (report.citing, report.counted) == (3, 1)
    assert {invalid.thread_id[-1] for invalid in report.invalid if invalid.thread_id} == {"2", "3"}


def test_looking_up_older_versions_ends_somewhere(home: UsageHome) -> None:
    (home.root / "MEMORY.md").unlink()
    for number in range(1, 5):
        home.session(number, citing(REMEMBERED, entries=(f"gone{number}.md:1-1", "MEMORY.md:1-1")))
    report = home.count(citing=msgspec.structs.replace(CITING, max_version_lookups=2))
    assert (report.citing, report.counted) == (4, 4)
    assert report.invalid_total == 4


def test_paths_as_agents_write_them(home: UsageHome) -> None:
    (home.root / "skills" / "a b").mkdir(parents=True)
    (home.root / "skills" / "a b" / "SKILL.md").write_text("no newline", encoding="utf-8")
    (home.root / "link.md").symlink_to("MEMORY.md")
    (home.root / ".hidden.md").write_text("x\n", encoding="utf-8")
    (home.root / "empty.md").touch()
    good = ("skills/a b/SKILL.md:1-1", f"{home.root}/MEMORY.md:1-3", "./MEMORY.md:1-1", "skills//a b/./SKILL.md:1-1")
    bad = ("link.md:1-1", ".hidden.md:1-1", "skills:1-1", ":1-1", "/MEMORY.md:1-1", "skills/../MEMORY.md:1-1")
    bad += (
        "a\0b:1-1",
        "empty.md:1-1",
        "MEMORY.md:0-1",
        "phase2_workspace_diff.md:1-1",
        "\ud800:1-1",
        "MEMORY.md/x:1-1",
    )
    for number, entry in enumerate(good + bad, 1):
        home.session(number, citing(REMEMBERED, entries=(entry,)))
    report = home.count()
    assert (report.citing, report.counted, report.invalid_total) == (len(good + bad), len(good), len(bad))


def test_sub_agents_count_and_the_pipelines_own_sessions_do_not(home: UsageHome) -> None:
    home.session(1, citing(REMEMBERED), source='{"subagent":{"thread_spawn":{}}}')
    home.session(2, citing(REMEMBERED), source='{"internal":"memory_consolidation"}')
    home.session(3, citing(REMEMBERED), source='{"subagent":"memory_consolidation"}')
    home.session(4, citing(REMEMBERED), source="exec")
    home.session(5, citing(REMEMBERED), memory_mode="disabled")
    home.session(6, citing(REMEMBERED), at=NOW - 300 * DAY)  # far too old to be extracted
    assert home.count().citing == 4
    assert home.usage()[0] == 4


def test_a_fork_counts_nothing_of_what_it_copied(home: UsageHome) -> None:
    origin = home.session(1, citing(REMEMBERED), ran("cat memories/MEMORY.md"))
    fork = home.session(2)
    lines = fork.read_text(encoding="utf-8").splitlines(keepends=True)
    meta = json.loads(lines[0])
    meta["payload"]["forked_from_id"] = SESSION
    copied = origin.read_text(encoding="utf-8").replace("2026-0", "2027-0")
    fork.write_text(json.dumps(meta, separators=(",", ":")) + "\n" + copied, encoding="utf-8")
    home.append(fork, citing(REMEMBERED), citing("x", entries=("no.md:1-1",)))
    report = home.count()
    assert (report.searched, report.citing, report.counted, report.reads) == (2, 3, 2, {"memory_md": 1})
    assert report.invalid_total == 1
    # A fork of newer clients points at what it begins with, and says the same on its own.
    other = home.session(3)
    meta["payload"] |= {"id": other.stem[-36:], "history_base": {"thread_id": SESSION, "end_ordinal_exclusive": 9}}
    other.write_text(json.dumps(meta, separators=(",", ":")) + "\n", encoding="utf-8")
    home.append(other, citing(REMEMBERED))
    assert home.count() == UsageReport(searched=1, citing=1, counted=1)


def test_a_clock_that_ran_ahead_makes_no_use_of_the_future(home: UsageHome) -> None:
    home.append(home.session(1), citing(REMEMBERED), at=NOW + 90 * DAY)
    home.count()
    assert home.usage() == (1, NOW)


def test_commands_that_read_memory_are_counted_by_kind_tool_and_success(
    home: UsageHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = InMemoryMetricReader()
    monkeypatch.setattr(telemetry, "_meter", lambda: MeterProvider([reader]).get_meter("stillroom"))
    telemetry._instrument.cache_clear()
    shell = {
        "type": "local_shell_call",
        "call_id": "s",
        "action": {"command": ["bash", "-lc", "rg x memories/skills/"]},
    }
    home.session(
        1,
        ran("cat $HOME/.stillroom/memories/MEMORY.md", call_id="a"),
        ran("cat MEMORY.md", call_id="b", workdir=str(home.root)),
        ended(1, call_id="b"),
        ended(0, call_id="a"),
        shell,
        ran("make check", call_id="d"),
        ran("cat memories/MEMORY.md > x", call_id="e"),
    )
    report = home.count()
    telemetry._instrument.cache_clear()
    assert report.reads == {"memory_md": 2, "skills": 1}
    assert home.count().reads == {}
    data = reader.get_metrics_data()
    assert data is not None
    (metric,) = data.resource_metrics[0].scope_metrics[0].metrics
    assert metric.name == "stillroom.memories.usage"
    assert sorted(tuple(sorted(dict(point.attributes or {}).items())) for point in metric.data.data_points) == [
        (("kind", "memory_md"), ("success", "false"), ("tool", "exec_command")),
        (("kind", "memory_md"), ("success", "true"), ("tool", "exec_command")),
        (("kind", "skills"), ("success", "unknown"), ("tool", "local_shell")),
    ]
    assert home.usage() == (0, None)


def test_a_folder_of_another_name_is_known_in_commands(home: UsageHome) -> None:
    memories = msgspec.structs.replace(home.settings.memories, root=str(home.settings.home / "mem"))
    home.settings = msgspec.structs.replace(home.settings, memories=memories)
    home.session(1, ran(f"cat {home.settings.home}/mem/MEMORY.md"), ran("rg x $STILLROOM_HOME/mem/skills", call_id="b"))
    assert home.count().reads == {"memory_md": 1, "skills": 1}


def test_what_can_not_be_read_fails_alone_and_is_tried_again(home: UsageHome) -> None:
    gone = home.session(1, citing(REMEMBERED))
    home.session(2, citing(REMEMBERED))
    home.register()
    kept = gone.read_bytes()
    gone.unlink()
    report = count_usage(home.settings, home.store, home.clock)
    assert (report.searched, report.counted, len(report.broken)) == (1, 1, 1)
    assert str(gone) in report.broken[0].reason
    gone.write_bytes(kept)
    assert home.count().counted == 1


def test_many_processes_at_once_count_each_use_once(home: UsageHome) -> None:
    for number in range(1, 9):
        home.session(number, citing(REMEMBERED), ran("cat memories/MEMORY.md"))
    home.register()
    gate = threading.Barrier(4)

    def run(_: int) -> UsageReport:
        with Store.open(home.settings.database, clock=home.clock) as store:
            gate.wait()
            return count_usage(home.settings, store, home.clock)

    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(run, range(4)))
    assert sum(report.counted for report in reports) == 8
    assert sum(report.reads.get("memory_md", 0) for report in reports) == 8
    assert home.usage()[0] == 8


def test_what_is_too_much_for_one_pass_is_done_by_the_next(home: UsageHome) -> None:
    for number in range(1, 4):
        home.session(number, citing(REMEMBERED))
    little = msgspec.structs.replace(CITING, max_search_bytes=1)
    assert [(report.searched, report.left) for report in (home.count(citing=little) for _ in range(4))] == [
        (1, 2),
        (1, 1),
        (1, 0),
        (0, 0),
    ]
    assert home.usage()[0] == 3


def test_a_hostile_message_costs_little_and_counts_little(home: UsageHome) -> None:
    path = home.session(1)
    block = citing(REMEMBERED, *(f"id {n}" for n in range(2000)), entries=tuple(f"f{n}.md:1-1" for n in range(2000)))
    text = block["content"][0]["text"]
    home.append(path, said(text * 5 + "<" * 200_000 + "<oai-mem-citation>" * 10_000))
    with path.open("ab") as file:
        file.write(
            b'{"timestamp":"\xff","type":"response_item","payload":{"type":"message","role":"assistant","oai-mem-'
        )
        file.write(b"citation\n[" + b"[" * 5000 + b'"oai-mem-citation"\n\0\0oai-mem-citation\n')
    os.utime(path, ns=(NOW * 10**9, NOW * 10**9))
    report = home.count()
    assert (report.citing, report.counted) == (1, 0)
    assert len(report.invalid) == CITING.invalid_told < report.invalid_total


def test_a_citation_can_be_handed_in(home: UsageHome) -> None:
    path = home.session(1)
    home.count()
    text = citing(REMEMBERED, "unknown")["content"][0]["text"]
    receipt = record_citation(home.settings, home.store, home.clock, thread_id=SESSION, citation=text)
    assert receipt.counted == (REMEMBERED,)
    assert [(i.thread_id, i.cited) for i in receipt.invalid] == [(SESSION, "unknown")]
    assert home.usage() == (1, NOW)
    # The same in the session's own messages is no second use.
    home.append(path, citing(REMEMBERED, "unknown"))
    assert home.count().counted == 0
    # Nor is what is handed in when the session's messages were read already; it is known which memory counted.
    home.append(path, citing(REMEMBERED, words="Done as well."))
    assert home.count().counted == 1
    text = citing(REMEMBERED)["content"][0]["text"]
    receipt = record_citation(home.settings, home.store, home.clock, thread_id=SESSION, citation=text)
    assert (receipt.counted, receipt.invalid, home.usage()[0]) == ((REMEMBERED,), (), 2)
    receipt = record_citation(home.settings, home.store, home.clock, thread_id=SESSION, citation=text)
    assert (receipt.counted, home.usage()[0]) == ((REMEMBERED,), 3)
    # Without a session, and in parts.
    cited = MemoryCitation((CitationEntry("MEMORY.md", 1, 1, ""),), (REMEMBERED,))
    assert record_citation(home.settings, home.store, home.clock, thread_id=None, citation=cited).counted
    assert record_citation(home.settings, home.store, home.clock, thread_id=None, citation="nothing").counted == ()
    wrong = MemoryCitation((CitationEntry("MEMORY.md", 7, 7, ""),), (REMEMBERED,))
    refused = record_citation(home.settings, home.store, home.clock, thread_id=None, citation=wrong)
    assert (refused.counted, [i.reason for i in refused.invalid]) == ((), ["the file has no such lines"])
    assert home.usage()[0] == 4
    assert (home.root / "MEMORY.md").read_text(encoding="utf-8") == HANDBOOK
