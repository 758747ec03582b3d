"""What is forgotten is gone from every byte, is never learnt again, and leaves the rest as if it had never been."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import msgspec
import pytest
from undoing_house import HOUR_MS, NOW_MS, PARSE, SHOP, SPLIT, House, every_byte, run_and_die

from stillroom.cli.app import run_command
from stillroom.clock import FixedClock
from stillroom.config import Settings, Source
from stillroom.consolidate.outcome import Consolidated
from stillroom.errors import InvalidRequest, WorkspaceError
from stillroom.offline.folder.byhand import Record, key, split_record
from stillroom.recall.fulltext.ranked import RankedSearch
from stillroom.recall.projects.switched_off import is_switched_off
from stillroom.undoing import unfinished
from stillroom.undoing.alone import alone, beside_others
from stillroom.undoing.choosing import Choice
from stillroom.undoing.planning import plan_forgetting
from stillroom.undoing.projects import switch_project
from stillroom.workspace.git import Repository


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that went through two consolidations, a search, a session's start and a failure."""
    base = tmp_path_factory.mktemp("prepared")
    house = House(base)
    house.run(max_threads=2)
    house.run(hours=8)
    with RankedSearch(house.settings, clock=house.clock) as search:
        assert search.search("biome", cwd=None, cursor=None, max_results=5).hits
    (house.home / "hook.log").write_text(f"2026 codex session-start: {SHOP}: failed\nanother line\n", encoding="utf-8")
    return base


@pytest.fixture
def house(prepared: Path, tmp_path: Path) -> House:
    shutil.copytree(prepared / "home", tmp_path / "home")
    house = House(tmp_path)
    # The very files that were learnt from, wherever the copy of the examples is.
    house.settings = Settings(home=tmp_path / "home", sources=House(prepared).settings.sources)
    house.clock = FixedClock(NOW_MS + 9 * HOUR_MS)
    return house


@pytest.mark.parametrize("thread_id", [SPLIT, PARSE, SHOP])
def test_after_the_next_pass_everything_is_as_if_the_session_had_never_been(
    house: House, thread_id: str, tmp_path: Path
) -> None:
    done = house.forget(Choice(threads=(thread_id,)))
    assert done.is_complete and (done.threads, done.files) == (1, 1)
    assert thread_id not in every_byte(house.home)
    report = house.run(hours=8)
    assert isinstance(report.consolidate, Consolidated)
    assert report.threads is not None and (report.threads.forgotten, report.threads.found) == (1, 0)
    assert thread_id not in every_byte(house.home)

    other = House(tmp_path / "other")
    other.lose(thread_id)
    other.run(hours=8)
    expected = {
        name: text.replace(str(other.codex), house.settings.sources[0].root) for name, text in other.said().items()
    }
    assert house.said() == expected
    with house.store() as store:
        assert store.forgetting.is_forgotten(thread_id)
        assert store.threads.get(thread_id) is None


def test_what_went_before_the_session_is_still_the_history_and_what_came_after_is_without_it(house: House) -> None:
    repository = Repository(house.settings.history)
    before = repository.run("log", "--format=%s").decode().splitlines()
    house.forget(Choice(threads=(SHOP,)))
    after = repository.run("log", "--format=%s").decode().splitlines()
    assert after == ["Forget 1 session", *before]
    assert repository.is_whole()
    assert "biome" not in every_byte(house.home)
    assert "split_evenly" in every_byte(house.home)
    assert (house.home / "hook.log").read_text(encoding="utf-8") == "\nanother line\n"


def records(house: House) -> list[Record]:
    """In every version, the newest first, and the one that there is."""
    repository = Repository(house.settings.history)
    commits = repository.run("log", "--format=%H", "--", ".stillroom-lines").decode().split()
    texts = [repository.run("show", f"{commit}:.stillroom-lines").decode() for commit in commits]
    return [split_record(text)[1] for text in [(house.root / ".stillroom-lines").read_text(encoding="utf-8"), *texts]]


def keys(text: str) -> set[str]:
    return set(map(key, text.splitlines())) - {""}


def test_the_record_of_generated_lines_loses_those_of_forgotten_ones_and_no_other(house: House) -> None:
    before = {path: (house.root / path).read_text(encoding="utf-8") for path in ("MEMORY.md", "memory_summary.md")}
    house.forget(Choice(threads=(SHOP,)))
    after = {path: (house.root / path).read_text(encoding="utf-8") for path in before}
    gone = {path: keys(before[path]) - keys(after[path]) for path in before}
    assert all(gone.values())
    now, *versions = records(house)
    assert now.handbook == keys(after["MEMORY.md"]) and now.summary is not None
    assert keys(after["memory_summary.md"]) <= now.summary | keys("v1") and not now.summary & gone["memory_summary.md"]
    assert versions[0] == now
    assert not [record for record in versions if (record.handbook or set()) & gone["MEMORY.md"]]


def test_a_persons_own_lines_stay_and_so_does_what_a_note_says_too(house: House) -> None:
    handbook = house.root / "MEMORY.md"
    text = handbook.read_text(encoding="utf-8")
    assert "we use biome here" in text
    mine = "- Mine: the shop closes at six.\n"
    handbook.write_text(text.replace("## User preferences\n", f"## User preferences\n\n{mine}"), encoding="utf-8")
    notes = house.root / "extensions" / "ad_hoc" / "notes"
    notes.mkdir(parents=True, exist_ok=True)
    note = notes / "2026-11-30T09-00-00-biome.md"
    note.write_text("In future always run the tests with -q and show me only the failures\n", encoding="utf-8")
    done = house.forget(Choice(threads=(SHOP,)))
    assert done.is_complete
    kept = handbook.read_text(encoding="utf-8")
    assert mine in kept and "biome" not in kept
    assert note.exists()
    house.run(hours=8)
    assert mine in handbook.read_text(encoding="utf-8")


def test_a_project_a_text_and_a_time_choose_sessions_and_unknown_ones_are_refused(house: House) -> None:
    def planned(**choice: object) -> set[str]:
        with house.store() as store:
            plan = plan_forgetting(house.settings, store, Choice(**choice), now=house.clock.now())  # type: ignore[arg-type]
        return {thread.thread_id for thread in plan.preview.threads if thread.has_output}

    before = every_byte(house.home)
    assert planned(repository="shopfront") == {SHOP}
    assert planned(repository="/home/dev/work/ledgerkit") == {SPLIT, PARSE}
    assert planned(match="BIOME here") == {SHOP}
    assert planned(since_ms=0) == {SPLIT, PARSE, SHOP}
    assert planned(since_ms=NOW_MS) == set()
    assert planned(threads=(SPLIT[:16],)) == {SPLIT}
    for choice in ({"threads": ("nobody",)}, {"threads": ("01a2273c",)}, {"match": "a"}, {"repository": "nowhere"}):
        with pytest.raises(InvalidRequest):
            planned(**choice)
    assert every_byte(house.home) == before


def test_a_text_goes_from_everything_that_says_it(house: House) -> None:
    (house.root / "skills" / "shop").mkdir(parents=True)
    (house.root / "skills" / "shop" / "SKILL.md").write_text(
        "# Shop\n\n- never use Biome here\n- else\n", encoding="utf-8"
    )
    done = house.forget(Choice(match="biome"))
    assert done.is_complete
    assert "biome" not in every_byte(house.home).lower()
    assert (house.root / "skills" / "shop" / "SKILL.md").read_text(encoding="utf-8") == "# Shop\n\n- else\n"


def test_of_what_is_nowhere_nobody_is_asked_and_of_what_stands_in_a_log_they_are(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["forget", "--match", "marmalade", "--home", str(house.home)]
    assert run_command(words) == 0
    assert "nothing of it is remembered" in capsys.readouterr().err
    (house.home / "hook.log").write_text("failed on marmalade\n", encoding="utf-8")
    assert run_command(words) == 2  # nobody can be asked
    assert "hook.log" in capsys.readouterr().err
    assert run_command([*words, "--yes"]) == 0
    assert "marmalade" not in every_byte(house.home)


def test_a_copy_under_another_id_and_a_sub_agent_are_not_learnt_either(house: House) -> None:
    with house.store() as store:
        thread = store.threads.get(SHOP)
        assert thread is not None
        stamp = store.threads.file_stamps("codex")[thread.rollout_path]
        copy = msgspec.structs.replace(thread, thread_id="copy", rollout_path="/elsewhere/copy.jsonl")
        below = msgspec.structs.replace(
            thread, thread_id="below", parent_thread_id=SHOP, preview="x", rollout_path="/b.jsonl"
        )
    house.forget(Choice(threads=(SHOP,)))
    with house.store() as store:
        assert store.threads.save([(copy, stamp), (below, stamp), (thread, stamp)]) == 3
        assert store.threads.get("copy") is None and store.threads.get("below") is None


def test_of_a_fork_only_the_new_part_is_learnt_once_its_origin_is_forgotten_and_gone(house: House) -> None:
    house.settings = msgspec.structs.replace(house.settings, sources=(Source(format="codex", root=str(house.codex)),))
    (origin,) = house.codex.rglob(f"*{SHOP}*")
    fork_id = SHOP.replace("0761", "f00d")
    new = []
    for role, text in (("user", "From now on name branches after the ticket, please."), ("assistant", "Noted.")):
        content = [{"type": "input_text" if role == "user" else "output_text", "text": text}]
        new.append({"type": "message", "role": role, "content": content})
    meta, *copied = origin.read_text(encoding="utf-8").splitlines()
    payload = {**json.loads(meta)["payload"], "id": fork_id, "session_id": fork_id, "timestamp": "2026-11-29T13:00:00Z"}
    again = [{**json.loads(line), "timestamp": "2026-11-29T13:00:00.000Z"} for line in copied]
    own = [{"timestamp": "2026-11-29T14:00:00.000Z", "type": "response_item", "payload": item} for item in new]
    lines = [{"timestamp": "2026-11-29T13:00:00Z", "type": "session_meta", "payload": payload}, *again, *own]
    house.forget(Choice(threads=(SHOP,)))
    origin.unlink()
    fork = origin.with_name(origin.name.replace(SHOP, fork_id))
    fork.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    report = house.run(hours=30)
    assert report.extract is not None and report.extract.with_output == 1
    assert "ticket" in str(house.said())
    stored = every_byte(house.home)
    assert "biome" not in stored
    assert "npm test fails in shopfront" not in stored


def test_what_cannot_be_cleaned_is_told_by_its_place_only(house: House) -> None:
    (house.home / "backup.txt").write_text(f"copied by hand: {SHOP}\n", encoding="utf-8")
    aside = house.home / "history.git.broken-1"
    shutil.copytree(house.settings.history, aside)
    next((aside / "objects").rglob("*.pack"), next((aside / "objects").rglob("??" + "?" * 36))).write_bytes(b"broken")
    done = house.forget(Choice(threads=(SHOP,)))
    assert not done.is_complete
    assert {(left.place, left.kind) for left in done.left} == {
        (str(house.home / "backup.txt"), "content"),
        (str(aside), "unreadable"),
    }


def test_a_project_that_is_switched_off_can_be_forgotten_and_stays_off(house: House) -> None:
    project = Path("/home/dev/work/shopfront")
    switch_project(house.settings, project, on=False)
    (house.home / "config.toml").write_text(f"# not {project}\n", encoding="utf-8")
    done = house.forget(Choice(repository=str(project)))
    assert (done.threads, done.is_complete) == (1, True)
    assert {(left.place, left.kind) for left in done.left} == {
        (str(house.home / "memories-off.json"), "said"),
        (str(house.home / "config.toml"), "said"),
    }
    assert is_switched_off(str(house.home), str(project))


def test_while_a_pass_works_nothing_is_forgotten_and_the_other_way_round(house: House) -> None:
    with beside_others(house.home) as may_work:
        assert may_work
        with pytest.raises(WorkspaceError, match="a pass is at work"), alone(house.home, wait_seconds=0):
            raise AssertionError
    with alone(house.home, wait_seconds=0):
        assert house.run().skipped == "taking_back"
    assert house.run().skipped is None


def test_no_deleted_text_is_left_in_the_pages_of_the_database(house: House) -> None:
    house.forget(Choice(threads=(SHOP,)))
    raw = house.settings.database.read_bytes()
    assert SHOP.encode() not in raw and b"biome" not in raw
    db = sqlite3.connect(house.settings.database)
    assert db.execute("PRAGMA freelist_count").fetchone() == (0,)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    reports = [json.loads(row[0]) for row in db.execute("SELECT report_json FROM passes")]
    db.close()
    assert len(reports) == 2 and all(report["threads"] for report in reports)


def _without_placeholders(files: dict[str, str]) -> dict[str, str]:
    """A section that nothing is left of says so, or is empty when nothing had to be consolidated after the mending."""
    return {name: text.replace("- none yet\n", "") for name, text in files.items()}


@pytest.mark.timeout(600)
def test_killed_at_any_step_the_next_pass_finishes_it(prepared: Path, tmp_path: Path) -> None:
    words = (House(prepared).codex, SHOP, NOW_MS + 9 * HOUR_MS)
    whole = tmp_path / "whole"
    shutil.copytree(prepared / "home", whole)
    undisturbed = run_and_die("forget_and_die.py", whole, *words, 0)
    *steps, status = undisturbed.stdout.splitlines()
    assert status == "complete", undisturbed.stderr
    assert len(steps) > 10
    finished = House(tmp_path, home="whole")
    finished.settings = Settings(home=whole, sources=House(prepared).settings.sources)
    finished.clock = FixedClock(NOW_MS + 10 * HOUR_MS)
    finished.run()  # the next pass writes the folder anew, as every one does below
    expected = _without_placeholders(finished.said())
    for number, step in enumerate(steps, 1):
        shutil.copytree(prepared / "home", tmp_path / "killed")
        assert run_and_die("forget_and_die.py", tmp_path / "killed", *words, number).returncode == 9, step
        house = House(tmp_path, home="killed")
        house.settings = Settings(home=tmp_path / "killed", sources=House(prepared).settings.sources)
        house.clock = FixedClock(NOW_MS + 10 * HOUR_MS)
        report = house.run()
        assert report.skipped is None, step
        assert (report.finished is not None) == (step.partition(" ")[2] != "ended"), step
        assert not (house.home / unfinished.FILE).exists()
        everything = every_byte(house.home)
        assert SHOP not in everything and "biome" not in everything, step
        assert _without_placeholders(house.said()) == expected, step
        assert Repository(house.settings.history).is_whole(), step
        shutil.rmtree(house.home)
