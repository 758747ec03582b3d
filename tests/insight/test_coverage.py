"""What of the sessions the memory has: counted by words, by commands that failed, by files that were changed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from stillroom.clock import FixedClock
from stillroom.config import Settings
from stillroom.insight.coverage.counted import FILE, Count, load_counts
from stillroom.insight.coverage.coverage import Coverage, read_coverage
from stillroom.insight.coverage.units import units_of, vocabulary_of
from stillroom.insight.why.claims import claim_of
from stillroom.progress import Progress
from stillroom.rollouts.events import Edit, Ran, Said
from stillroom.store import Store
from stillroom.store.records import Stage1Draft
from stillroom.testing.sessions import sample_rollout
from stillroom.thread import FileStamp, Thread

NOW = 1_796_029_200  # 2026-11-30T09:00:00Z
DAY = 24 * 3600


class House:
    def __init__(self, home: Path) -> None:
        self.settings = Settings(home=home)
        self.clock = FixedClock(NOW * 1000)
        self.store = Store.open(self.settings.database, clock=self.clock)
        self.read: list[int] = []

    def session(self, number: int, said: str, *, days_ago: int = 2, source: str = "cli", cwd: str = "/shop") -> str:
        path = sample_rollout(self.settings.home / "codex", size_bytes=3000, number=number, messages=(said,))
        thread_id = path.stem[-36:]
        moment = (NOW - days_ago * DAY) * 1000
        thread = Thread(
            thread_id=thread_id,
            agent="codex",
            rollout_path=str(path),
            source=source,
            cwd=cwd,
            created_at_ms=moment,
            updated_at_ms=moment,
            preview=said,
        )
        self.store.threads.save([(thread, FileStamp(size=path.stat().st_size, mtime_ns=1))])
        return thread_id

    def extract(self, thread_id: str, raw: str) -> None:
        claims = self.store.extraction.claim(
            worker_id="w",
            current_thread_id=None,
            memories=self.settings.memories,
            stage=self.settings.stage_one,
            max_claims=9,
        )
        for claim in claims:
            if claim.thread_id == thread_id:
                self.store.extraction.finish(claim, Stage1Draft(raw_memory=raw, rollout_summary="-"), engine="offline")
            else:
                self.store.extraction.release(claim)

    def folder(self, text: str) -> None:
        self.settings.root.mkdir(exist_ok=True)
        (self.settings.root / "MEMORY.md").write_text(text, encoding="utf-8")

    def coverage(self, days: int = 30) -> Coverage:
        def listen(progress: Progress) -> None:
            assert progress.stage == "count"

        found = read_coverage(self.settings, self.store, self.clock, days=days, on_progress=listen)
        assert msgspec.json.decode(msgspec.json.encode(found), type=Coverage) == found
        return found


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    yield house
    house.store.close()


def test_words_are_counted_in_what_was_extracted_and_in_the_folder(house: House) -> None:
    known = house.session(1, "Always deploy the zebra through Frankfurt")
    lost = house.session(2, "The unicorn needs marmalade, please", cwd="/bakery")
    house.extract(known, "deploys the zebra")
    house.folder("# Memory\n\n- Frankfurt is where zebras go when deployed.\n")
    found = house.coverage()
    assert found.threads == 2
    words = {part.name: part.amounts.words for part in found.projects}
    assert words == {"/shop": Count(4, 2, 3), "/bakery": Count(4, 0, 0)}
    assert [each.thread_id for each in found.worst] == [lost, known]
    assert (found.worst[0].state, found.worst[0].project) == ("next", "/bakery")


def test_sessions_that_are_not_to_be_remembered_or_are_older_are_not_looked_at(house: House) -> None:
    house.session(1, "Words of a person")
    house.session(2, "Words of a script", source="exec")
    house.session(3, "Words of long ago", days_ago=40)
    off = house.session(4, "Words of a secret project")
    house.store.threads.set_memory_mode(off, "disabled")
    found = house.coverage()
    assert (found.threads, found.not_looked_at) == (1, {"mode": 1, "source": 1})
    assert house.coverage(days=50).threads == 2


def test_a_session_is_read_once_until_something_changes(house: House) -> None:
    thread_id = house.session(1, "Always deploy the zebra")
    first = house.coverage()
    (path,) = (house.settings.home / "codex").rglob("*.jsonl")
    path.rename(path.with_suffix(".gone"))
    assert house.coverage() == first
    assert set(load_counts(house.settings.home)) == {thread_id}
    house.folder("zebra")
    assert (house.coverage().threads, house.coverage().lost.unreadable) == (0, 1)
    path.with_suffix(".gone").rename(path)
    assert house.coverage().amounts.words == Count(2, 0, 1)


def test_what_was_extracted_and_did_not_come_into_the_folder_is_lost_too(house: House) -> None:
    thread_id = house.session(1, "Always deploy the zebra with the okapi")
    house.extract(thread_id, "- deploy the zebra\n- a page knows the okapi [lane: web; instruction]")
    found = house.coverage()
    assert (found.lost.not_in_folder, found.lost.withheld) == (1, 1)
    assert found.amounts.words == Count(3, 2, 0)  # of the okapi only the page's line speaks
    house.folder(f"- deploy the zebra (thread_id={thread_id})")
    assert house.coverage().lost.not_in_folder == 0


def test_what_was_cut_is_counted_and_named(house: House) -> None:
    thread_id = house.session(1, "Hello there")
    (path,) = (house.settings.home / "codex").rglob("*.jsonl")
    with path.open("ab") as file:
        file.write(b'{"broken": \n')
        file.write(
            b'{"timestamp":"2026-11-28T00:00:00Z","type":"response_item","payload":{"type":"message","role":"user",'
        )
        file.write(b'"content":[{"type":"input_text","text":"' + b"x" * (9 * 1024 * 1024) + b'"}]}}\n')
    report = {"extract": {"outcomes": [{"outcome": "with_output", "thread_id": thread_id, "cut": True}]}}
    house.store.ledger.record_pass(NOW, msgspec.json.encode(report))
    house.store.ledger.record_pass(NOW - 9, b"\xff")
    lost = house.coverage().lost
    assert (lost.bad_lines, lost.long_lines, lost.shortened) == (1, 1, (thread_id,))
    assert lost.cut_bytes > 1024 * 1024


def test_failures_and_files_are_counted_once_each() -> None:
    failed = Ran(tool="shell", command="python -m pytest tests/unit", exit_code=1, ok=False)
    edit = Ran(tool="apply_patch", edits=(Edit("src/cart.js", "update", ""),), ok=True)
    broken = Ran(tool="apply_patch", edits=(Edit("src/other.js", "update", ""),), ok=False)
    units = units_of(
        [Said(who="user", text="Fix cart"), Said(who="harness", text="noise"), failed, failed, edit, broken]
    )
    assert (units.words, units.files) == ({"cart"}, {"cart.js"})
    assert len(units.failures) == 2
    assert vocabulary_of("`python -m pytest tests/unit` failed; see src/cart.js").counts(units) == (1, 1, 1)
    assert vocabulary_of("").counts(units) == (0, 0, 0)


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"format": 9}', b"\xff"])
def test_damaged_counts_are_counted_anew(house: House, damage: bytes) -> None:
    house.session(1, "Always deploy the zebra")
    (house.settings.home / FILE).write_bytes(damage)
    assert house.coverage().amounts.words.total == 2


def test_what_is_no_text_or_a_link_is_passed_over(house: House) -> None:
    house.session(1, "Always deploy the zebra")
    house.folder("zebra")
    (house.settings.root / "memory_summary.md").write_bytes(b"\xff")
    (house.settings.root / "skills").symlink_to("/etc")
    assert house.coverage().amounts.words == Count(2, 0, 1)


def test_without_sessions_there_is_nothing(house: House) -> None:
    found = house.coverage()
    assert (found.threads, found.states, found.worst) == (0, {}, ())


def test_hostile_texts_take_no_longer_than_others() -> None:
    started = time.process_time()
    for text in ("a" * 200_000, "a." * 90_000, "_" * 200_000, "(supersedes: " * 20_000, "“" * 90_000):
        vocabulary_of(text)
        claim_of(f"- {text}")
    assert time.process_time() - started < 3
