"""How long a memory lives: preferences hold, what sessions are given stays, and what leaves is named."""

from __future__ import annotations

from pathlib import Path

from life_house import DAY, HOUR, NOW, LifeHouse, thread_id

from stillroom.cli.report import _lines
from stillroom.cli.status import _lines as status_lines
from stillroom.consolidate.outcome import Consolidated
from stillroom.insight.status import read_status
from stillroom.undoing.versions import open_history, versions

WISH = "From now on never commit to main directly; open a pull request."
FACT = "How do I run the tests?"


def told(lines: object) -> str:
    return "\n".join(text for _, text in lines)  # type: ignore[attr-defined]


def plain_output(house: LifeHouse, number: int, *, cwd: str = "/home/a/shop") -> None:
    """An output without a preference, as a session without one leaves it, in the memory folder."""
    from stillroom.store.records import Stage1Claim, Stage1Draft

    house.said(number, FACT, cwd=cwd)
    with house.store() as store:
        claim = store.extraction.try_claim(
            thread_id(number), worker_id="w", source_updated_at=house.now, stage=house.settings.stage_one, max_running=9
        )
        assert isinstance(claim, Stage1Claim)
        text = f"### Task 1: number {number}\n\nReusable knowledge:\n- `make test{number}` runs the tests of shop\n"
        draft = Stage1Draft(raw_memory=text, rollout_summary=text, rollout_slug=f"run-tests-{number}")
        assert store.extraction.finish(claim, draft, engine="offline")


def test_a_preference_said_once_holds_however_long_nobody_cites_it(tmp_path: Path) -> None:
    """`shared/cases/users/wish_expires_after_30_days.py`"""
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
    """`shared/cases/users/backfill_older_than_30_days.py`"""
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
