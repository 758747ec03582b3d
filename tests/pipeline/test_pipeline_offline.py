"""Whole passes without a model, on sessions that Codex CLI recorded."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest
from blockbuster import blockbuster_ctx

from stillroom.clock import FixedClock
from stillroom.config import Memories, Settings, Source
from stillroom.consolidate.outcome import Consolidated, NoChanges, Skipped
from stillroom.extract.guard import GuardDecision
from stillroom.extract.register import register_threads
from stillroom.pipeline import Options, PipelineReport, Trigger, encode_report, run_pipeline
from stillroom.store import Store
from stillroom.undoing.projects import switch_project

CODEX_HOME = Path(__file__).parents[2] / "examples" / "codex-home"
DAY_AFTER = 1_796_029_200_000  # 2026-11-30T09:00:00Z
HOUR = 3600


@pytest.fixture
def codex_home(tmp_path: Path) -> Path:
    home = tmp_path / "codex"
    shutil.copytree(CODEX_HOME, home)
    return home


@pytest.fixture
def settings(tmp_path: Path, codex_home: Path) -> Settings:
    return Settings(home=tmp_path / "home", sources=(Source(format="codex", root=str(codex_home)),))


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(DAY_AFTER)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


async def backfill(settings: Settings, clock: FixedClock) -> PipelineReport:
    return await run_pipeline(settings, options=Options(backfill=True), clock=clock)


@pytest.mark.anyio
async def test_a_backfill_makes_a_memory_folder_of_the_sessions(settings: Settings, clock: FixedClock) -> None:
    report = await backfill(settings, clock)
    assert not report.failed
    assert report.threads is not None
    assert report.threads.found == 6
    assert isinstance(report.consolidate, Consolidated)
    found = files(settings.root)
    assert {"MEMORY.md", "memory_summary.md", "raw_memories.md", "extensions/ad_hoc/instructions.md"} <= found.keys()
    assert found["memory_summary.md"].startswith(b"v1\n")
    assert b"biome" in found["MEMORY.md"]
    for pasted in (b"ghp_MADE-UP-TOKEN", b"sk-proj-MADE-UP-KEY"):
        assert pasted not in b"".join(files(settings.home).values())
    assert settings.root.stat().st_mode & 0o777 == 0o700


@pytest.mark.anyio
async def test_a_secret_in_the_name_of_a_folder_stays_where_files_are_opened_by_it(
    settings: Settings, clock: FixedClock, codex_home: Path
) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    for rollout in codex_home.rglob("*.jsonl"):
        renamed = rollout.read_text("utf-8").replace("work/ledgerkit", f"work/{secret}")
        rollout.write_text(renamed.replace('"branch":"main"', f'"branch":"{secret}"'), encoding="utf-8")
    codex_home.rename(codex_home.with_name(secret))
    sources = (Source(format="codex", root=str(codex_home.with_name(secret))),)
    report = await backfill(msgspec.structs.replace(settings, sources=sources), clock)
    assert isinstance(report.consolidate, Consolidated)
    holding = {name for name, data in files(settings.home).items() if secret.encode() in data}
    assert {name.partition(".sqlite3")[0] for name in holding} <= {"state"}
    raw = files(settings.root)["raw_memories.md"]
    assert b"cwd: /home/dev/work/[REDACTED_SECRET:github_token]\nrollout_path: /" in raw


@pytest.mark.anyio
async def test_without_a_model_no_pause_follows_a_consolidation(settings: Settings, clock: FixedClock) -> None:
    hook = await run_pipeline(settings, options=Options(max_threads=3), clock=clock)
    assert isinstance(hook.consolidate, Consolidated)
    clock.advance(seconds=60)
    again = await run_pipeline(settings, clock=clock)
    assert isinstance(again.consolidate, Consolidated)
    assert again.consolidate.inputs > hook.consolidate.inputs


@pytest.mark.anyio
async def test_a_pass_never_blocks_the_event_loop(settings: Settings, clock: FixedClock) -> None:
    with blockbuster_ctx():
        report = await backfill(settings, clock)
    assert isinstance(report.consolidate, Consolidated)


@pytest.mark.anyio
async def test_the_sessions_are_not_touched(settings: Settings, clock: FixedClock, codex_home: Path) -> None:
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in codex_home.rglob("*.jsonl")}
    await backfill(settings, clock)
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in codex_home.rglob("*.jsonl")} == before
    assert {path for path in codex_home.rglob("*") if path.is_file()} == set(before)


@pytest.mark.anyio
async def test_a_second_pass_changes_nothing(settings: Settings, clock: FixedClock) -> None:
    await backfill(settings, clock)
    before = files(settings.root)
    again = await run_pipeline(settings, clock=clock)
    assert isinstance(again.consolidate, NoChanges)
    assert isinstance((await backfill(settings, clock)).consolidate, NoChanges)
    clock.advance(seconds=7 * HOUR)
    later = await backfill(settings, clock)
    assert isinstance(later.consolidate, NoChanges)
    assert later.extract is not None
    assert later.extract.claimed == 0
    assert files(settings.root) == before


@pytest.mark.anyio
async def test_a_folder_that_outlived_its_database_is_not_emptied_while_another_pass_extracts(
    settings: Settings, clock: FixedClock
) -> None:
    await backfill(settings, clock)
    before = files(settings.root)
    settings.database.unlink()
    with Store.open(settings.database, clock=clock) as store:
        await register_threads(settings, store)
        claims = store.extraction.claim(
            worker_id="another",
            current_thread_id=None,
            memories=settings.memories,
            stage=settings.stage_one,
            backfill=True,
            max_claims=8,
        )
        assert len(claims) == 6
        report = await backfill(settings, clock)
        assert report.consolidate == Skipped(status="skipped_running")
        assert files(settings.root) == before


@pytest.mark.anyio
async def test_a_project_that_was_off_before_its_sessions_were_known_is_not_learnt_from(
    settings: Settings, clock: FixedClock
) -> None:
    switch_project(settings, Path("/home/dev/work/ledgerkit"), on=False)
    report = await backfill(settings, clock)
    assert report.extract is not None
    assert report.extract.claimed == 3
    assert "ledgerkit" not in "".join(data.decode() for data in files(settings.root).values())


@pytest.mark.anyio
async def test_without_a_model_everything_finished_is_taken(settings: Settings, clock: FixedClock) -> None:
    report = await run_pipeline(settings, clock=clock)
    assert report.extract is not None
    assert report.extract.claimed == 6


@pytest.mark.anyio
async def test_the_triggering_thread_is_left_alone(settings: Settings, clock: FixedClock) -> None:
    newest = "01a2273c-30a7-7532-bf2e-fcb5d6eb6c9f"
    await run_pipeline(settings, trigger=Trigger(thread_id=newest), options=Options(backfill=True), clock=clock)
    with Store.open(settings.database, clock=clock) as store:
        assert store.extraction.job(newest) is None


@pytest.mark.parametrize(
    ("trigger", "reason"),
    [
        (Trigger(ephemeral=True), "ephemeral"),
        (Trigger(kind="sub_agent"), "sub_agent"),
        (Trigger(kind="memory_worker"), "memory_worker"),
    ],
)
@pytest.mark.anyio
async def test_a_pass_is_skipped_with_its_reason(
    settings: Settings, clock: FixedClock, trigger: Trigger, reason: str
) -> None:
    report = await run_pipeline(settings, trigger=trigger, clock=clock)
    assert (report.skipped, report.failed) == (reason, False)
    assert not settings.home.exists()


@pytest.mark.anyio
async def test_a_pass_is_skipped_when_the_feature_is_off(settings: Settings, clock: FixedClock) -> None:
    off = msgspec.structs.replace(settings, memories=Memories(enabled=False))
    assert (await run_pipeline(off, clock=clock)).skipped == "feature_off"


@pytest.mark.parametrize(
    ("source", "skipped"),
    [
        ({"subagent": {"thread_spawn": {"parent_thread_id": "p", "depth": 1}}}, "sub_agent"),
        ({"internal": "memory_consolidation"}, "memory_worker"),
    ],
)
@pytest.mark.anyio
async def test_a_sub_agent_or_a_worker_is_known_by_its_own_record(
    settings: Settings, clock: FixedClock, codex_home: Path, source: dict[str, object], skipped: str
) -> None:
    rollout = next(codex_home.rglob("*01a2273c-0036*.jsonl"))
    head, _, rest = rollout.read_text(encoding="utf-8").partition("\n")
    meta = json.loads(head)
    meta["payload"]["source"] = source
    rollout.write_text(json.dumps(meta) + "\n" + rest, encoding="utf-8")
    trigger = Trigger(thread_id="01a2273c-0036-7133-90f0-7698c74b216a")
    assert (await run_pipeline(settings, trigger=trigger, clock=clock)).skipped == skipped


@pytest.mark.anyio
async def test_what_nobody_used_is_pruned_even_where_a_quota_is_short(settings: Settings, clock: FixedClock) -> None:
    first = await backfill(settings, clock)
    assert first.extract is not None and first.extract.with_output == 3
    with Store.open(settings.database, clock=clock) as store:  # preferences don't expire
        store.forgetting.rewrite_texts(lambda text: text.replace("Preference signals:", "Reusable knowledge:"))
    clock.advance(seconds=40 * 24 * HOUR)
    second = await backfill(settings, clock)  # the memory rests on it up to here
    assert second.expired == ()
    third = await run_pipeline(settings, clock=clock, guard=lambda: GuardDecision(allowed=False, reason="short"))
    assert (len(third.expired), third.extract) == (3, None)
    with Store.open(settings.database, clock=clock) as store:
        assert store.outputs.latest() == []


@pytest.mark.anyio
async def test_a_damaged_database_skips_the_pass_and_is_left_as_it_is(settings: Settings, clock: FixedClock) -> None:
    settings.home.mkdir(parents=True)
    settings.database.write_bytes(b"this is no database" * 100)
    report = await run_pipeline(settings, clock=clock)
    assert report.skipped == "no_state_db"
    assert report.failed
    assert settings.database.read_bytes() == b"this is no database" * 100


@pytest.mark.anyio
async def test_one_broken_session_fails_alone(settings: Settings, clock: FixedClock, codex_home: Path) -> None:
    folder = codex_home / "sessions" / "2026" / "11" / "29"
    broken = folder / "rollout-2026-11-29T12-20-00-01a2273c-4000-7000-8000-000000000000.jsonl"
    broken.write_bytes(b"\x00\xff\xfe" * 500)
    report = await backfill(settings, clock)
    assert report.threads is not None
    assert [item.path for item in report.threads.broken] == [str(broken)]
    assert isinstance(report.consolidate, Consolidated)


@pytest.mark.anyio
async def test_the_report_is_json(settings: Settings, clock: FixedClock) -> None:
    report = json.loads(encode_report(await backfill(settings, clock)))
    assert report["consolidate"]["outcome"] == "consolidated"
    with Store.open(settings.database, clock=clock) as store:
        assert json.loads(store.ledger.last_passes()[0].report_json) == report


@pytest.mark.anyio
async def test_what_a_person_wrote_survives_the_next_consolidation(settings: Settings, clock: FixedClock) -> None:
    await run_pipeline(settings, options=Options(backfill=True, max_threads=3), clock=clock)
    handbook = settings.root / "MEMORY.md"
    mine = "\n- Mine: releases are cut on Tuesdays.\n"
    handbook.write_text(handbook.read_text(encoding="utf-8") + mine, encoding="utf-8")
    clock.advance(seconds=7 * HOUR)
    report = await backfill(settings, clock)
    assert isinstance(report.consolidate, Consolidated)
    assert "Mine: releases are cut on Tuesdays." in handbook.read_text(encoding="utf-8")
