"""How long a memory lives: preferences hold, what sessions are given stays, and what leaves is named."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
from life_house import DAY, HOUR, NOW, LifeHouse, thread_id

from stillroom import Recorder
from stillroom.cli.report import _lines
from stillroom.cli.status import _lines as status_lines
from stillroom.config import Memories
from stillroom.consolidate.outcome import Consolidated
from stillroom.ending import ended_sessions, mark_ended
from stillroom.extract.register import register_threads
from stillroom.insight.status import read_status
from stillroom.pipeline import Options, run_pipeline
from stillroom.recall.browse.notes import add_note, remove_note
from stillroom.recall.injection.instructions import Instructions, instructions
from stillroom.undoing.versions import open_history, versions

WISH = "From now on never commit to main directly; open a pull request."
GERMAN = "From now on always answer in German."
FACT = "How do I run the tests?"


def told(lines: object) -> str:
    return "\n".join(text for _, text in lines)  # type: ignore[attr-defined]


async def _register(house: LifeHouse) -> None:
    with house.store() as store:
        await register_threads(house.settings, store)


def plain_output(house: LifeHouse, number: int, *, cwd: str = "/home/a/shop") -> None:
    """An output without a preference, as a session without one leaves it, in the memory folder."""
    from stillroom.store.records import Stage1Claim, Stage1Draft

    house.said(number, FACT, cwd=cwd)
    asyncio.run(_register(house))
    with house.store() as store:
        claim = store.extraction.try_claim(
            thread_id(number), worker_id="w", source_updated_at=house.now, stage=house.settings.stage_one, max_running=9
        )
        assert isinstance(claim, Stage1Claim)
        text = f"### Task 1: number {number}\n\nReusable knowledge:\n- `make test{number}` runs the tests of shop\n"
        draft = Stage1Draft(raw_memory=text, rollout_summary=text, rollout_slug=f"run-tests-{number}")
        assert store.extraction.finish(claim, draft, engine="offline")


def test_a_preference_said_once_holds_however_long_nobody_cites_it(tmp_path: Path) -> None:
    """A wish was gone after 30 days."""
    house = LifeHouse(tmp_path)
    house.said(1, WISH, at=house.now - 2 * DAY)
    house.run()
    for number in range(2, 7):
        house.said(number, f"Please always write test number {number} first.", at=house.now + 8 * DAY - 20 * HOUR)
        house.run(later=8 * DAY)
        assert "never commit to main" in house.summary
    house.run(later=400 * DAY)
    house.run(later=DAY)
    assert "never commit to main" in house.summary
    assert set(house.states().values()) == {"extracted"}


def test_a_backfill_keeps_all_that_it_extracts_and_the_forecast_says_how_much(tmp_path: Path) -> None:
    """What a backfill extracted was pruned by the next run."""
    house = LifeHouse(tmp_path)
    for number, days in enumerate((5, 20, 45, 90, 200, 400), 1):
        wish = f"From now on always use tool number {number} for building, never make."
        house.said(number, wish, at=house.now - days * DAY, cwd=f"/home/a/p{number}")
    forecast = house.run(backfill=True, dry_run=True).forecast
    assert forecast is not None and forecast.consolidate is not None
    assert (forecast.threads, forecast.consolidate.inputs) == (6, 6)
    done = house.run(backfill=True)
    assert isinstance(done.consolidate, Consolidated) and done.consolidate.inputs == 6
    again = house.run(later=HOUR)
    assert again.expired == ()
    assert set(house.states().values()) == {"extracted"}
    assert all(f"tool number {number} for" in house.handbook for number in range(1, 7))


def test_the_forecast_promises_no_more_than_a_consolidation_takes(tmp_path: Path) -> None:
    house = LifeHouse(tmp_path, max_raw_memories_for_consolidation=3)
    for number in range(1, 3):
        house.said(number, f"From now on always use tool number {number}.", at=NOW - 90 * DAY)
    house.run(backfill=True)
    for number in range(3, 6):
        house.said(number, f"From now on always use tool number {number}.")
    forecast = house.run(backfill=True, dry_run=True).forecast
    done = house.run(backfill=True).consolidate
    assert forecast is not None and forecast.consolidate is not None and isinstance(done, Consolidated)
    assert forecast.consolidate.inputs == done.inputs == 3
    assert {each.reason for each in done.leaving} == {"rank"} and len(done.leaving) == 2


def test_what_leaves_is_named_before_while_and_after_it_does(tmp_path: Path) -> None:
    house = LifeHouse(tmp_path)
    house.said(1, WISH)
    house.run()
    plain_output(house, 2)
    house.said(3, FACT)
    plain_output(house, 3, cwd="/home/a/blog")
    house.run(later=7 * HOUR, backfill=True)
    assert "make test2" in house.handbook
    house.clock.advance(seconds=25 * DAY)
    house.give("/home/a/blog")  # the session of another project is given what is known of that
    house.run(backfill=True)
    with house.store() as store:
        status = read_status(house.settings, store, house.clock)
    assert [(each.name, each.cwd) for each in status.leaving] == [("run-tests-2", "/home/a/shop")]
    brief = told(status_lines(status, verbose=False))
    assert (
        "1 memory leaves within a week unless a session is given them, from 4 days on (`stillroom status -v`" in brief
    )
    assert "run-tests-2 (shop): not used for too long" in told(status_lines(status, verbose=True))

    house.said(4, "Always answer in short sentences.", at=house.now + 4 * DAY)
    report = house.run(later=6 * DAY, backfill=True)
    assert isinstance(report.consolidate, Consolidated)
    assert [each.name for each in report.consolidate.leaving] == ["run-tests-2"]
    assert "run-tests-2 (shop): not used for too long" in told(_lines(report, house.settings))
    assert versions(open_history(house.settings), limit=1)[0].left == ("run-tests-2 (shop): not used for too long",)
    gone = house.run(later=7 * HOUR, backfill=True)
    assert [each.name for each in gone.expired] == ["run-tests-2"]
    assert "run-tests-2 (shop)" in told(_lines(gone, house.settings))
    house.run(later=7 * HOUR, backfill=True)
    assert "make test2" not in house.handbook and "make test3" in house.handbook
    assert house.states()["2"] == "expired"


def test_a_session_s_date_from_the_future_keeps_nothing_for_ever(tmp_path: Path) -> None:
    house = LifeHouse(tmp_path)
    house.said(1, FACT)
    house.run()
    plain_output(house, 1)
    house.run(later=7 * HOUR, backfill=True)
    house.give("/home/a/shop", at=NOW + 3000 * DAY)
    house.run(later=HOUR, backfill=True)
    assert "make test1" in house.handbook
    for _ in range(3):
        house.said(9, WISH, at=house.now + 30 * DAY, cwd="/home/a/other")
        house.run(later=31 * DAY, backfill=True)
    with house.store() as store:
        assert thread_id(1) in {output.thread_id for output in store.outputs.latest()}
    (house.settings.home / "sessions.jsonl").unlink()
    for _ in range(3):
        house.run(later=31 * DAY, backfill=True)
    assert house.states()["1"] == "expired"


def test_a_session_that_its_client_ended_is_extracted_at_once(tmp_path: Path) -> None:
    """A note waited for the next consolidation."""
    house = LifeHouse(tmp_path, offline_idle_minutes=60)
    ended, open_ = house.said(1, WISH, at=NOW - 2), house.said(2, GERMAN, at=NOW - 2)
    assert house.run().extract.claimed == 0  # type: ignore[union-attr]
    mark_ended(str(house.settings.home), ended, at_ms=NOW * 1000)
    report = house.run()
    assert report.extract is not None and (report.extract.with_output, report.extract.left.not_idle) == (1, 1)
    assert "never commit to main" in house.summary and "German" not in house.summary
    # What is said later makes it go on.
    house.said(1, WISH, "From now on also squash the commits.", at=NOW + 2 * 60)
    assert house.run(later=3 * 60).extract.claimed == 0  # type: ignore[union-attr]
    assert house.run(later=3600).extract.claimed == 2  # type: ignore[union-attr]
    assert "squash" in house.handbook and open_


def test_without_a_model_everything_finished_is_taken_and_consolidated_at_once(tmp_path: Path) -> None:
    house = LifeHouse(tmp_path)
    for number in range(1, 8):
        house.said(
            number, f"Please always write test number {number} first.", at=NOW - 6 * 60, cwd=f"/home/a/p{number}"
        )
    house.said(8, GERMAN, at=NOW - 4 * 60)
    first = house.run()
    assert first.extract is not None and (first.extract.with_output, first.extract.left.not_idle) == (7, 1)
    second = house.run(later=2 * 60)
    assert isinstance(second.consolidate, Consolidated) and second.consolidate.inputs == 8
    assert "answer in German" in house.summary


def test_a_model_keeps_the_pauses_and_the_cap_of_the_seeds(tmp_path: Path) -> None:
    house = LifeHouse(tmp_path, extract_model="provider:model", consolidation_model="provider:model")
    for number in range(1, 6):
        house.said(number, WISH, at=NOW - 7 * HOUR)
    house.said(6, WISH, at=NOW - HOUR)
    memories, stage = house.settings.memories, house.settings.consolidating
    assert (memories.idle_seconds, memories.threads_per_pass, stage.success_cooldown_seconds) == (6 * HOUR, 2, 6 * HOUR)
    house.settings = msgspec.structs.replace(house.settings, memories=Memories(enabled=True))
    offline = house.settings
    assert (offline.memories.idle_seconds, offline.memories.threads_per_pass) == (300, None)
    assert offline.consolidating.success_cooldown_seconds == 0


def test_one_session_is_extracted_because_a_person_asks(tmp_path: Path) -> None:
    house = LifeHouse(tmp_path)
    old = house.said(1, WISH, at=NOW - 300 * DAY)
    fresh = house.said(2, GERMAN, at=NOW - 5)
    house.said(3, "From now on always squash the commits.", at=NOW - DAY)
    report = house.run(sessions=(old, fresh[:-1] + "2"))
    assert report.extract is not None and report.extract.with_output == 2
    assert "commit to main" in house.summary and "German" in house.summary and "squash" not in house.summary
    again = house.run(sessions=(old,))
    assert again.extract is not None and again.extract.claimed == 0


def test_a_session_that_is_not_known_is_said_and_nothing_is_done(tmp_path: Path) -> None:
    house = LifeHouse(tmp_path)
    house.said(1, WISH)
    for name, words in (("nobody", "no session `nobody` is known"), ("019a", "more than one session begins with")):
        house.said(2, WISH)
        pipeline = run_pipeline(house.settings, options=Options(sessions=(name,)), clock=house.clock)
        report = asyncio.run(pipeline)
        assert report.failed and report.stopped is not None and words in report.stopped.reason
        assert report.extract is None


def test_what_expired_comes_back_when_its_session_is_asked_for(tmp_path: Path) -> None:
    house = LifeHouse(tmp_path)
    house.said(2, WISH)
    plain_output(house, 1)
    house.run()
    for _ in range(3):
        house.run(later=40 * DAY)
    assert house.states()["1"] == "expired"
    report = house.run(sessions=(thread_id(1),))
    assert report.extract is not None and (report.reopened, report.extract.claimed) == (1, 1)
    assert house.states()["1"] in ("extracted", "no_output")


def test_a_recorder_that_is_closed_has_a_finished_session(tmp_path: Path) -> None:
    house = LifeHouse(tmp_path, offline_idle_minutes=60)
    home = house.settings.home
    with Recorder("mine", cwd="/home/a/shop", home=home, clock=house.clock) as recorder:
        recorder.user(WISH)
        recorder.assistant("Understood.")
    other = Recorder("mine", cwd="/home/a/shop", home=home, clock=house.clock)
    other.user(GERMAN)
    other.assistant("Understood.")
    other.close(over=False)
    Recorder("mine", home=home).close()  # nothing was recorded
    assert list(ended_sessions(str(home))) == [recorder.thread_id]
    report = house.run()
    assert report.extract is not None and report.extract.with_output == 1
    assert "commit to main" in house.summary and "German" not in house.summary


def test_marks_that_can_not_be_read_are_passed_over_and_the_file_stays_small(tmp_path: Path) -> None:
    home = str(tmp_path)
    (tmp_path / "ended.jsonl").write_bytes(
        b'{"at_ms":1\n[]\n{"thread_id":"x","at_ms":"y"}\n\xff\n{"at_ms":5,"thread_id":"a"}\n'
    )
    assert ended_sessions(home) == {"a": 5}
    for number in range(9000):
        mark_ended(home, f"thread-{number % 50}", at_ms=number)
    assert ended_sessions(home)["thread-49"] == 8999
    assert (tmp_path / "ended.jsonl").stat().st_size < 300_000


def test_a_note_is_in_the_memory_after_the_next_pass_and_never_expires(tmp_path: Path) -> None:
    """A session that its client had ended waited for hours."""
    house = LifeHouse(tmp_path)
    house.said(1, WISH)
    house.run()
    add_note(house.settings.root, "Releases go out on Fridays.", clock=house.clock)
    given = instructions(house.settings, str(tmp_path))
    assert isinstance(given, Instructions) and "Fridays" in given.text
    report = house.run(later=60)
    assert isinstance(report.consolidate, Consolidated) and "Fridays" in house.handbook
    house.run(later=500 * DAY)
    house.run(later=DAY)
    assert "Fridays" in house.handbook and "Fridays" in house.summary
    remove_note(house.settings.root, "releases")
    house.run(later=60)
    assert "Fridays" not in house.handbook + house.summary
