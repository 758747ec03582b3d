"""From a line of the memory back to who wrote it and who said so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stillroom.clock import FixedClock
from stillroom.config import Settings
from stillroom.errors import InvalidRequest, NotFound, PathRefused
from stillroom.insight.why.answer import Answer, Why
from stillroom.insight.why.explaining import explain
from stillroom.release import VERSION
from stillroom.spending import ModelCall, Phase, Usage
from stillroom.store import Store
from stillroom.store.records import LineSource, Stage1Draft, Use
from stillroom.testing.sessions import sample_rollout
from stillroom.thread import FileStamp, Thread
from stillroom.workspace.history import History
from stillroom.workspace.trailers import EDITS, with_trailers

NOW = 1_796_029_200  # 2026-11-30T09:00:00Z
SAID = "Never push on Fridays; wait for Zephyrine to be back, ghp_0123456789abcdefghijABCDEFGHIJ012345 is hers."
LINE = '- the user asked: "Never push on Fridays; wait for Zephyrine" -> default in shop [Task 1]'
BY_MODEL = "- Deploys wait for Zephyrine and are never pushed on a Friday. [Task 1]"
INVENTED = "- The quantum flux capacitor overheats under moonlight. [Task 1]"
MINE = "- Releases are tagged by Ottokar himself."

WISH = LINE.removesuffix(" [Task 1]")
DRAFT = Stage1Draft(
    raw_memory=f"{WISH}\n{INVENTED.removesuffix(' [Task 1]')}",
    rollout_summary="s",
    rollout_slug="s",
    sources=(LineSource(line=WISH.removeprefix("- "), speaker="user", line_no=5, quote=SAID),),
)


class House:
    """A home with one session, what was made of it, and a history of two versions."""

    def __init__(self, home: Path, draft: Stage1Draft = DRAFT) -> None:
        self.settings = Settings(home=home)
        self.clock = FixedClock(NOW * 1000)
        self.store = Store.open(self.settings.database, clock=self.clock)
        self.rollout = sample_rollout(home / "codex", size_bytes=9000, messages=("Hello.", SAID), cwd="/shop")
        self.thread_id = self.rollout.stem[-36:]
        self._extract(draft)
        self.root.mkdir()
        self.write(LINE, BY_MODEL, INVENTED)
        told = {"Stillroom-Release": "9.9", "Stillroom-Engine": "test:large", "Stillroom-Prompt": "abc123"}
        message = with_trailers("Consolidate 1 threads", {**told, "Stillroom-Run": f"{NOW}-ab"})
        self.history = History(self.settings.history)
        self.history.repository.create()
        self.commit = self.history.commit(self.root, message, now=NOW + 60)

    @property
    def root(self) -> Path:
        return self.settings.root

    def write(self, *bullets: str, handbook: str = "MEMORY.md") -> None:
        head = ["# Task Group: shop", "", "scope: shop", "applies_to: cwd=/shop", "", "## Task 1: push (success)", ""]
        source = f"- rollout_summaries/a.md (cwd=/shop, thread_id={self.thread_id})"
        body = [
            "### rollout_summary_files",
            "",
            source,
            "",
            "### keywords",
            "",
            "- push",
            "",
            "## Reusable knowledge",
            "",
        ]
        (self.root / handbook).write_text("\n".join([*head, *body, *bullets, ""]), encoding="utf-8")

    def why(self, asked: str) -> Answer:
        answer = explain(self.settings, self.store, asked)
        assert "ghp_" not in repr(answer)
        return answer

    def one(self, asked: str) -> Why:
        (line,) = self.why(asked).lines
        return line

    def line(self, text: str) -> str:
        lines = (self.root / "MEMORY.md").read_text(encoding="utf-8").split("\n")
        return f"MEMORY.md:{lines.index(text) + 1}"

    def _extract(self, draft: Stage1Draft) -> None:
        status = self.rollout.stat()
        thread = Thread(
            thread_id=self.thread_id,
            agent="codex",
            rollout_path=str(self.rollout),
            source="cli",
            cwd="/shop",
            created_at_ms=(NOW - 90_000) * 1000,
            updated_at_ms=(NOW - 90_000) * 1000,
            preview="Hello.",
        )
        self.store.threads.save([(thread, FileStamp(size=status.st_size, mtime_ns=status.st_mtime_ns))])
        (claim,) = self.store.extraction.claim(
            worker_id="w",
            current_thread_id=None,
            memories=self.settings.memories,
            stage=self.settings.stage_one,
            max_claims=1,
        )
        self.store.extraction.finish(claim, draft, engine="test:small", prompt="def456")
        self._call(NOW - 5, "extract", 0.25, self.thread_id)
        self._call(NOW + 30, "consolidate", 0.5, None)
        self._call(NOW + 40, "consolidate", 0.75, None)
        self._call(NOW + 4000, "consolidate", 9.0, None)

    def _call(self, at: int, phase: Phase, cost: float, thread_id: str | None) -> None:
        call = ModelCall(
            at=at, phase=phase, model="test:large", outcome="ok", usage=Usage(), thread_id=thread_id, cost_usd=cost
        )
        self.store.ledger.record_call(call)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    yield house
    house.store.close()


def test_a_quoted_line_leads_to_the_consolidation_its_cost_and_the_words_of_the_person(house: House) -> None:
    why = house.one(house.line(LINE))
    origin = why.origin
    assert (origin.by, origin.commit, origin.run) == ("consolidation", house.commit, f"{NOW}-ab")
    assert (origin.engine, origin.prompt, origin.release) == ("test:large", "abc123", "9.9")
    assert (origin.calls, origin.cost_usd) == (2, 1.25)
    (rests,) = why.rests_on
    assert (rests.thread_id, rests.by_task) == (house.thread_id, False)
    assert (rests.engine, rests.prompt, rests.release, rests.cost_usd) == ("test:small", "def456", VERSION, 0.25)
    assert why.support == "quoted"
    (quote,) = why.quotes
    assert (quote.who, quote.line) == ("user", 5)
    assert quote.text.startswith("Never push on Fridays; wait for Zephyrine to be back, [REDACTED_SECRET")


def test_of_lines_that_fit_a_phrase_those_come_first_that_claim_something(house: House) -> None:
    house.write("# Zebra", "- rollout_summaries/zebra-crossing.md (cwd=/shop)", "- mind the zebra crossing")
    assert [each.place.text[:6] for each in house.why("zebra").lines] == ["- mind", "# Zebr", "- roll"]


def test_a_session_that_is_switched_off_since_is_said_to_be(house: House) -> None:
    house.store.threads.set_memory_mode(house.thread_id, "disabled")
    (rests,) = house.one(house.line(LINE)).rests_on
    assert (rests.switched_off, rests.engine) == (True, None)


def test_a_line_that_nothing_says_is_said_to_be_so(house: House) -> None:
    why = house.one(house.line(INVENTED))
    assert (why.support, why.quotes) == ("unfound", ())
    assert [each.thread_id for each in why.rests_on] == [house.thread_id]


def test_of_a_line_of_which_nothing_was_noted_the_task_names_the_session(house: House) -> None:
    why = house.one(house.line(BY_MODEL))
    assert (why.support, why.quotes) == ("unknown", ())
    assert [(each.thread_id, each.by_task) for each in why.rests_on] == [(house.thread_id, True)]


def test_a_session_whose_file_is_gone_is_quoted_all_the_same(house: House) -> None:
    house.rollout.unlink()
    assert house.one(house.line(LINE)).support == "quoted"


def test_of_what_was_there_when_the_history_began_nobody_knows_the_writer(house: House) -> None:
    house.settings.history.rename(house.settings.home / "gone.git")
    origin = house.one(house.line(LINE)).origin
    assert (origin.by, origin.note) == ("unknown", "there is no history of the folder")
    History(house.settings.history).ensure(house.root, now=NOW + 1)
    origin = house.one(house.line(LINE)).origin
    assert (origin.by, origin.note) == ("unknown", "it was in the folder when this history began")


def test_what_a_person_wrote_is_said_to_be_theirs_before_and_after_the_next_version(house: House) -> None:
    house.write(LINE, MINE)
    assert (house.one(house.line(MINE)).origin.by, house.one(house.line(MINE)).support) == ("person", "unknown")
    house.history.commit(house.root, with_trailers(EDITS, {"Stillroom-Run": "9-x"}), now=NOW + 90)
    house.write(MINE, LINE)  # the next consolidation moves it
    house.history.commit(house.root, with_trailers("Consolidate 1 threads", {"Stillroom-Run": "10-x"}), now=NOW + 99)
    assert house.one(house.line(MINE)).origin.by == "person"
    assert house.one(house.line(LINE)).origin.run == f"{NOW}-ab"


def test_what_an_undo_brought_back_leads_to_who_wrote_it_first(house: House) -> None:
    house.write(BY_MODEL)
    house.history.commit(house.root, with_trailers("Consolidate 1 threads", {"Stillroom-Run": "9-x"}), now=NOW + 90)
    house.write(LINE, BY_MODEL)
    house.history.commit(house.root, with_trailers("Undo 9-x", {"Stillroom-Undoes": "9-x"}), now=NOW + 95)
    origin = house.one(house.line(LINE)).origin
    assert (origin.by, origin.run, origin.note) == ("consolidation", f"{NOW}-ab", "an undo brought it back")
    assert house.one(house.line(BY_MODEL)).origin.run == f"{NOW}-ab"


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_lines_of_one_phrase_each_lead_to_the_version_that_brought_them(
    house: House, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stillroom.insight.why.origin._VERSIONS_AT_ONCE", at_once)
    bullets = ["- lanterns: trim the wick daily", "- lanterns: trim the wick daily, at dusk", "- lanterns hang high"]
    for number in range(len(bullets)):
        house.write(LINE, *bullets[: number + 1])
        message = with_trailers("Consolidate 1 threads", {"Stillroom-Run": f"{number}-x"})
        house.history.commit(house.root, message, now=NOW + 90 + number)
    assert [each.origin.run for each in house.why("lanterns").lines] == ["0-x", "1-x", "2-x"]
    house.write(LINE, bullets[0], bullets[2])  # what only the longer one said is gone
    assert [each.origin.run for each in house.why("lanterns").lines] == ["0-x", "2-x"]


def test_citations_since_the_line_was_written_are_counted_for_its_sessions(house: House) -> None:
    for at in (NOW, NOW + 100, NOW + 200):
        use = Use(kind="citation", digest=str(at).encode(), nth=1, at=at, used=(house.thread_id,))
        house.store.uses.record("later", [use])
    why = house.one(house.line(LINE))
    assert (why.cited, why.last_cited) == (2, NOW + 200)


def test_a_phrase_finds_the_line_once_and_several_that_fit_as_well(house: House) -> None:
    again = LINE.removesuffix(" [Task 1]")
    (house.root / "memory_summary.md").write_text(f"v1\n\n{again}\n", encoding="utf-8")
    assert house.one("never PUSH on  fridays; wait").place.path == "MEMORY.md"
    skill = house.root / "skills" / "deploy" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("# Deploy\n\nAsk Zephyrine first.\n", encoding="utf-8")
    places = [(each.place.path, each.place.line) for each in house.why("zephyrine").lines]
    assert places == [("MEMORY.md", 18), ("MEMORY.md", 19), ("skills/deploy/SKILL.md", 3)]
    assert house.one("skills/deploy/SKILL.md:3").support == "unknown"


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("ＮＥＶＥＲ  push\ton fridays", 18),  # letters of another width, and other space
        ("zephyrine asked on fridays", 18),  # not in a row: the line that has most of the words
        ("flux capacitor overheats", 20),
    ],
)
def test_a_phrase_is_found_in_any_spelling_and_else_by_most_of_its_words(house: House, asked: str, found: int) -> None:
    (house.root / "memory_summary.md").write_text("v1\n\nGrüße\u2028an\x0ballé\n", encoding="utf-8")
    assert [(each.place.path, each.place.line) for each in house.why(asked).lines] == [("MEMORY.md", found)]
    assert house.one("grüße an").place.line == 3


def test_the_summary_leads_to_what_the_handbook_says(house: House) -> None:
    short = f"{WISH} (in shop)"
    (house.root / "memory_summary.md").write_text(f"v1\n\n{short}\n", encoding="utf-8")
    why = house.one("memory_summary.md:3")
    assert [(each.thread_id, each.by_task) for each in why.rests_on] == [(house.thread_id, False)]
    assert why.support == "quoted"


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ("MEMORY.md:999", InvalidRequest),
        ("MEMORY.md:2", InvalidRequest),
        ("../state.sqlite3:1", PathRefused),
        ("skills:1", PathRefused),
        ("xyzzy plugh", NotFound),
        ("NOPE.md:3", NotFound),
        ("   ", InvalidRequest),
    ],
)
def test_what_is_no_line_is_refused_by_name(house: House, asked: str, error: type[Exception]) -> None:
    (house.root / "skills").symlink_to("/etc")
    with pytest.raises(error):
        house.why(asked)


def test_headings_and_records_claim_nothing(house: House) -> None:
    assert house.one("MEMORY.md:1").support == "format"
    assert house.one("MEMORY.md:16").support == "format"


def test_without_history_or_outputs_the_answer_says_so(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    settings.root.mkdir()
    (settings.root / "MEMORY.md").write_text(f"{BY_MODEL}\n", encoding="utf-8")
    with Store.open(settings.database, clock=FixedClock(NOW * 1000)) as store:
        (why,) = explain(settings, store, "MEMORY.md:1").lines
    assert (why.origin.by, why.support, why.rests_on) == ("unknown", "unknown", ())


@pytest.mark.parametrize("damage", [lambda p: p.write_bytes(b"\0" * 50), lambda p: p.unlink()])
def test_a_damaged_history_costs_the_origin_only(house: House, damage: Callable[[Path], object]) -> None:
    damage(house.settings.history / "refs" / "heads" / "main")
    why = house.one(house.line(LINE))
    assert (why.origin.by, why.support) == ("unknown", "quoted")
