"""Whole passes with a model: real HTTP to a loopback server, the real jail, real git."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from stillroom.clock import FixedClock
from stillroom.config import Memories, Settings, Source, StageTwo
from stillroom.consolidate.outcome import Consolidated, Failed, NoChanges, Phase2Report, Skipped
from stillroom.consolidate.run import run_phase2
from stillroom.pipeline import Options, PipelineReport, run_pipeline
from stillroom.sandbox import probe
from stillroom.store import Store
from stillroom.store.records import ConsolidationClaim
from stillroom.testing import (
    SAMPLE_MEMORY,
    CallTool,
    LoopbackModel,
    RecordedRequest,
    Reply,
    Say,
    Status,
    sample_rollout,
)
from stillroom.undoing.undo import plan_undo, undo
from stillroom.undoing.versions import open_history

CODEX_HOME = Path(__file__).parents[2] / "examples" / "codex-home"
DAY_AFTER = 1_796_029_200_000  # 2026-11-30T09:00:00Z
HOUR = 3600
Turn = Reply | Callable[[], Reply]

LEVELS = probe(until_one_works=True)
STRONGEST = LEVELS[-1]
needs_shell = pytest.mark.skipif(
    STRONGEST.level == "files",
    reason="no jail with a shell here: " + "; ".join(f"{level.level}: {level.reason}" for level in LEVELS),
)

HANDBOOK = """\
# Task Group: ledgerkit

scope: the ledgerkit library
applies_to: cwd=/home/dev/work/ledgerkit; reuse_rule=safe in every checkout

## Task 1: what the agent wrote

### rollout_summary_files

- rollout_summaries/$f (cwd=/home/dev/work/ledgerkit, rollout_path=unknown, updated_at=2026-11-29)

### keywords

- ledgerkit, split_evenly
"""
SUMMARY = "v1\n\n## User Profile\n\n## User preferences\n\n## General Tips\n\n## What's in Memory\n\n### ledgerkit\n"


def write_both(handbook: str = HANDBOOK, *, more: str = "true") -> CallTool:
    script = (
        f"f=$(ls rollout_summaries | head -1); {more}\n"
        f"cat > MEMORY.md <<END\n{handbook}END\ncat > memory_summary.md <<'END'\n{SUMMARY}END\n"
    )
    return CallTool("shell", {"command": script})


class Script:
    """Extraction always answers the sample; the agent plays its turns, the last one for ever."""

    def __init__(self, *turns: Turn) -> None:
        self.turns = list(turns)
        self.agent_requests: list[RecordedRequest] = []
        self.extractions: list[RecordedRequest] = []

    def __call__(self, request: RecordedRequest) -> Reply:
        if not request.json.get("tools"):
            self.extractions.append(request)
            return Say(SAMPLE_MEMORY)
        self.agent_requests.append(request)
        turn = self.turns.pop(0) if len(self.turns) > 1 else self.turns[0]
        return turn() if callable(turn) else turn


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(DAY_AFTER)


@pytest.fixture
def codex_home(tmp_path: Path) -> Path:
    return Path(shutil.copytree(CODEX_HOME, tmp_path / "codex"))


def settings_for(tmp_path: Path, server: LoopbackModel, **stage_two: int) -> Settings:
    return Settings(
        home=tmp_path / "home",
        memories=Memories(extract_model="loopback:gpt-5-mini", consolidation_model="loopback:gpt-5"),
        providers={"loopback": server.provider()},
        sources=(Source(format="codex", root=str(tmp_path / "codex")),),
        stage_two=StageTwo(**stage_two),
    )


async def run(settings: Settings, clock: FixedClock, **options: bool) -> PipelineReport:
    return await run_pipeline(settings, options=Options(backfill=True, **options), clock=clock)


def consolidated(report: Phase2Report | None) -> Consolidated:
    assert isinstance(report, Consolidated), report
    return report


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@needs_shell
@pytest.mark.anyio
async def test_a_model_extracts_and_an_agent_consolidates(tmp_path: Path, codex_home: Path, clock: FixedClock) -> None:
    script = Script(write_both(), Say("done"))
    with LoopbackModel(script) as server:
        settings = settings_for(tmp_path, server)
        report = await run(settings, clock)
    assert consolidated(report.consolidate).engine == "loopback:gpt-5"
    assert consolidated(report.consolidate).jail in ("bwrap", "landlock", "seatbelt")
    assert "what the agent wrote" in (settings.root / "MEMORY.md").read_text(encoding="utf-8")
    assert not (settings.root / "phase2_workspace_diff.md").exists()
    assert len(script.extractions) == 6
    for request in script.extractions:
        assert not request.json.get("tools")
        assert request.json["text"]["format"]["strict"] is True
        assert request.json["reasoning"] == {"effort": "low"}
    names = {tool["name"] for tool in script.agent_requests[0].json["tools"]}
    assert names == {"list", "read", "search", "write", "apply_patch", "shell"}
    assert script.agent_requests[0].json["reasoning"]["effort"] == "medium"
    with Store.open(settings.database, clock=clock) as store:
        calls = store.ledger.calls(limit=100)
    assert [call.phase for call in calls].count("extract") == 6
    assert [call.phase for call in calls].count("consolidate") == 2
    assert all(call.outcome == "ok" and call.usage.input_tokens for call in calls)


@needs_shell
@pytest.mark.anyio
async def test_a_line_that_an_agent_words_anew_rests_on_what_it_was_made_of(
    tmp_path: Path, codex_home: Path, clock: FixedClock
) -> None:
    anew = "Always run the tests with -q and show only the failures, not the full log."
    handbook = f"{HANDBOOK}\n## User preferences\n\n- {anew} [Task 1]\n- Nobody ever said this sentence. [Task 1]\n"
    with LoopbackModel(Script(write_both(handbook), Say("done"))) as server:
        settings = settings_for(tmp_path, server)
        memories = msgspec.structs.replace(settings.memories, extract_model="offline")
        settings = msgspec.structs.replace(settings, memories=memories)
        done = consolidated((await run(settings, clock)).consolidate)
    assert done.fallback_reason is None
    with Store.open(settings.database, clock=clock) as store:
        rows = store.memory_lines.of(f"- {anew} [Task 1]")
        assert {row.speaker for row in rows} == {"user"}
        assert any("always run the tests with -q" in row.quote for row in rows)
        assert store.memory_lines.of("- Nobody ever said this sentence. [Task 1]") == []


@pytest.mark.anyio
async def test_an_agent_that_can_not_be_started_is_told_apart_from_one_that_failed(
    tmp_path: Path, codex_home: Path, clock: FixedClock
) -> None:
    with LoopbackModel(Script(Say("done"))) as server:
        settings = settings_for(tmp_path, server)
        provider = msgspec.structs.replace(server.provider(), api_key_env="A_KEY_THAT_WENT_AWAY_MEANWHILE")
        await run(msgspec.structs.replace(settings, memories=Memories()), clock)
        clock.advance(seconds=7 * HOUR)
        (settings.root / "MEMORY.md").write_text("# Mine\n", encoding="utf-8")
        with Store.open(settings.database, clock=clock) as store:
            settings = msgspec.structs.replace(settings, providers={"loopback": provider})
            report = await run_phase2(settings, store, clock, worker_id="w")
        assert server.count == 0
    reason = consolidated(report).fallback_reason
    assert reason is not None and reason.startswith("failed_spawn_agent: ")
    assert "A_KEY_THAT_WENT_AWAY_MEANWHILE" in reason and "(hint: " in reason
    assert "# Mine\n" in (settings.root / "MEMORY.md").read_text(encoding="utf-8")


@needs_shell
@pytest.mark.anyio
async def test_an_agent_with_a_small_window_reads_much_more_than_fits_into_it(
    tmp_path: Path, codex_home: Path, clock: FixedClock
) -> None:
    window = 24_000
    reads = [CallTool("shell", {"command": f"echo {n}; head -c 30000 /dev/zero | tr '\\0' x"}) for n in range(8)]
    script = Script(*reads, write_both(), Say("done"))
    with LoopbackModel(script, context_window=window) as server:
        settings = settings_for(tmp_path, server)
        provider = server.provider("openai-chat", context_window=window)
        report = await run(msgspec.structs.replace(settings, providers={"loopback": provider}), clock)
    assert consolidated(report.consolidate).written
    # An answer has an end, under the name that local servers know.
    assert {request.json["max_tokens"] for request in script.agent_requests} == {window // 5}


@needs_shell
@pytest.mark.anyio
async def test_what_is_undone_is_not_made_again_by_a_model_either(
    tmp_path: Path, codex_home: Path, clock: FixedClock
) -> None:
    script = Script(write_both(), Say("done"), write_both(), Say("done"))
    with LoopbackModel(script) as server:
        settings = settings_for(tmp_path, server)
        await run(settings, clock)
        asked = len(server.requests)
        history = open_history(settings)
        with Store.open(settings.database, clock=clock) as store:
            assert undo(settings, store, plan_undo(settings, history, None, now=clock.now())).held_out == 6
        clock.advance(seconds=8 * HOUR)
        again = await run(settings, clock)
        assert (len(server.requests), again.failed) == (asked, False)
        assert not (settings.root / "MEMORY.md").exists()
        # Nor by a model that is to do what another did.
        other = msgspec.structs.replace(
            settings.memories, extract_model="loopback:gpt-5", consolidation_model="offline"
        )
        await run(msgspec.structs.replace(settings, memories=other), clock)
        assert len(server.requests) == asked
        with Store.open(settings.database, clock=clock) as store:
            assert store.consolidation.redo() == 6
        assert consolidated((await run(settings, clock)).consolidate).inputs == 6
        assert len(server.requests) > asked


@pytest.mark.slow
@needs_shell
@pytest.mark.parametrize(
    "more",
    [
        "mkdir -p skills/x; head -c 3000 /dev/urandom > skills/x/SKILL.md",
        "f=no_such_file.md",
        "rm -rf ./*; f=none.md",
    ],
)
@pytest.mark.anyio
async def test_in_place_of_a_bad_result_there_is_the_offline_engines(
    tmp_path: Path, codex_home: Path, clock: FixedClock, more: str
) -> None:
    script = Script(write_both(more=more), Say("done"))
    with LoopbackModel(script) as server:
        settings = settings_for(tmp_path, server)
        settings.root.mkdir(parents=True)
        (settings.root / "MEMORY.md").write_text("# Mine\n", encoding="utf-8")
        report = await run(settings, clock)
        before = files(settings.root)
        asked = len(script.agent_requests)
        again = await run_pipeline(settings, clock=clock)
        assert len(script.agent_requests) == asked
    done = consolidated(report.consolidate)
    assert done.engine == "offline" and done.fallback_reason is not None
    assert done.fallback_reason.startswith("failed_invalid_artifacts: ")
    assert report.failed
    assert b"# Mine\n" in before["MEMORY.md"]
    assert {path.split("/")[0] for path in before} == {
        "MEMORY.md", "memory_summary.md", "raw_memories.md", "rollout_summaries", "extensions", ".stillroom-lines",
    }  # fmt: skip
    assert isinstance(again.consolidate, Skipped)
    assert again.consolidate.status == "skipped_cooldown"
    assert files(settings.root) == before
    assert list(settings.staging.glob("*-*")) == []


@needs_shell
@pytest.mark.anyio
async def test_a_link_that_the_agent_tries_to_make_never_comes_to_be(
    tmp_path: Path, codex_home: Path, clock: FixedClock
) -> None:
    with LoopbackModel(Script(write_both(more="ln -s /etc/passwd skills"), Say("done"))) as server:
        settings = settings_for(tmp_path, server)
        await run(settings, clock)
    assert [path for path in settings.home.rglob("*") if path.is_symlink()] == []


@pytest.mark.anyio
async def test_an_agent_that_never_ends_is_stopped(tmp_path: Path, codex_home: Path, clock: FixedClock) -> None:
    script = Script(CallTool("list", {"path": "."}))
    with LoopbackModel(script) as server:
        report = await run(settings_for(tmp_path, server, max_requests=6), clock)
    done = consolidated(report.consolidate)
    assert done.fallback_reason is not None and done.fallback_reason.startswith("failed_agent: ")
    assert len(script.agent_requests) <= 6


@needs_shell
@pytest.mark.anyio
async def test_what_the_offline_engine_did_for_a_model_that_failed_is_replaced_by_its_next_success(
    tmp_path: Path, codex_home: Path, clock: FixedClock
) -> None:
    script = Script(Status(status=400, message="no such model"), write_both(), Say("done"))
    with LoopbackModel(script) as server:
        settings = settings_for(tmp_path, server)
        first = await run(settings, clock)
        assert consolidated(first.consolidate).engine == "offline"
        clock.advance(seconds=7 * HOUR)
        rested = await run_pipeline(settings, clock=clock)  # the model is not paid for at every pause's end
        assert isinstance(rested.consolidate, NoChanges) and len(script.agent_requests) == 1
        clock.advance(seconds=24 * HOUR)
        report = await run_pipeline(settings, clock=clock)
        assert "Mode: INIT" in script.agent_requests[1].body.decode()
        clock.advance(seconds=48 * HOUR)
        later = await run_pipeline(settings, clock=clock)
    assert consolidated(report.consolidate).engine == "loopback:gpt-5"
    assert consolidated(report.consolidate).fallback_reason is None
    text = (settings.root / "MEMORY.md").read_text(encoding="utf-8")
    assert "what the agent wrote" in text and "Task Group: loopback" not in text
    assert isinstance(later.consolidate, NoChanges)


@needs_shell
@pytest.mark.anyio
async def test_what_a_model_wrote_stays_when_it_fails_later(
    tmp_path: Path, codex_home: Path, clock: FixedClock
) -> None:
    script = Script(write_both(), Say("done"), Status(status=400, message="no such model"))
    with LoopbackModel(script) as server:
        settings = settings_for(tmp_path, server)
        await run(settings, clock)
        before = files(settings.root)
        (settings.root / "MEMORY.md").write_text("# Mine\n", encoding="utf-8")
        clock.advance(seconds=7 * HOUR)
        report = await run_pipeline(settings, clock=clock)
    assert isinstance(report.consolidate, Failed)
    assert "no such model" in report.consolidate.reason
    assert files(settings.root) == {**before, "MEMORY.md": b"# Mine\n"}


@needs_shell
@pytest.mark.anyio
async def test_a_secret_that_the_agent_writes_does_not_reach_the_folder(
    tmp_path: Path, codex_home: Path, clock: FixedClock
) -> None:
    secret = "ghp_" + "a1B2c3" * 6
    script = Script(write_both(HANDBOOK + f"\n## Reusable knowledge\n\n- the token is {secret}\n"), Say("done"))
    with LoopbackModel(script) as server:
        settings = settings_for(tmp_path, server)
        report = await run(settings, clock)
    assert secret.encode() not in b"".join(files(settings.home).values())
    assert "[REDACTED_SECRET:github_token]" in (settings.root / "MEMORY.md").read_text(encoding="utf-8")
    assert any("github_token" in warning for warning in consolidated(report.consolidate).warnings)


@needs_shell
@pytest.mark.anyio
async def test_what_a_person_edits_meanwhile_stays_and_is_taken_up_next_time(
    tmp_path: Path, codex_home: Path, clock: FixedClock
) -> None:
    mine = "# Mine, written while the agent worked\n"

    def edit() -> Reply:
        (settings.root / "MEMORY.md").write_text(mine, encoding="utf-8")
        return Say("done")

    changed = HANDBOOK.replace("what the agent wrote", "what it wrote then")
    read_diff = CallTool("read", {"path": "phase2_workspace_diff.md"})
    script = Script(write_both(), Say("done"), write_both(changed), edit, read_diff, Say("nothing to do"))
    with LoopbackModel(script) as server:
        settings = settings_for(tmp_path, server)
        await run(settings, clock)
        clock.advance(seconds=7 * HOUR)
        (settings.root / "extensions/ad_hoc/notes").mkdir()
        (settings.root / "extensions/ad_hoc/notes/2026-11-30T09-00-00-a.md").write_text("a note", encoding="utf-8")
        second = await run(settings, clock)
        assert consolidated(second.consolidate).kept_for_user == ("MEMORY.md",)
        assert (settings.root / "MEMORY.md").read_text(encoding="utf-8") == mine
        clock.advance(seconds=7 * HOUR)
        await run(settings, clock)
    assert "+# Mine, written while the agent worked" in script.agent_requests[-1].body.decode()


@needs_shell
@pytest.mark.anyio
async def test_a_lost_lease_stops_the_agent_and_leaves_the_folder(
    tmp_path: Path, codex_home: Path, clock: FixedClock
) -> None:
    def be_robbed() -> Reply:
        clock.advance(seconds=2 * HOUR)
        with Store.open(settings.database, clock=clock) as other:
            claim = other.consolidation.claim(worker_id="other", stage=settings.stage_two)
        assert isinstance(claim, ConsolidationClaim)
        return write_both()

    with LoopbackModel(Script(be_robbed, Say("done"))) as server:
        settings = settings_for(tmp_path, server)
        report = await run(settings, clock)
        with Store.open(settings.database, clock=clock) as store:
            job = store.consolidation.job()
    assert isinstance(report.consolidate, Failed)
    assert report.consolidate.status in ("failed_confirm_ownership", "failed_agent")
    assert not (settings.root / "MEMORY.md").exists()
    assert job is not None
    assert (job.status, job.worker_id) == ("running", "other")


@pytest.mark.anyio
async def test_a_short_quota_sends_nothing(tmp_path: Path, codex_home: Path, clock: FixedClock) -> None:
    limits = {"limit_id": "codex", "primary": {"used_percent": 75.1, "window_minutes": 300, "resets_at": 1_800_000_000}}
    script = Script(Say("done"))
    with LoopbackModel(script) as server:
        settings = settings_for(tmp_path, server)
        provider = settings.memories.extract_model.partition(":")[0]
        with Store.open(settings.database, clock=clock) as store:
            store.ledger.save_rate_limits(provider, json.dumps(limits).encode(), clock.now())
        report = await run(settings, clock)
        assert server.requests == []
    assert report.guard is not None
    assert not report.guard.allowed
    assert report.extract is None
    assert not report.failed


@pytest.mark.anyio
async def test_a_retry_takes_all_that_failed_however_old_it_is_and_nothing_else(
    tmp_path: Path, codex_home: Path, clock: FixedClock
) -> None:
    replies = iter([Status(status=400), Status(status=400), *[Say(SAMPLE_MEMORY)] * 9])
    with LoopbackModel(lambda request: next(replies)) as server:
        settings = settings_for(tmp_path, server)
        settings = msgspec.structs.replace(
            settings, memories=msgspec.structs.replace(settings.memories, consolidation_model="offline")
        )
        first = await run_pipeline(settings, options=Options(backfill=True, max_threads=3), clock=clock)
        clock.advance(seconds=12 * 24 * HOUR)  # too old for a pass that nobody asks for
        again = await run_pipeline(settings, options=Options(retry=True), clock=clock)
    assert first.extract is not None and again.extract is not None
    assert (first.extract.failed, first.extract.with_output) == (2, 1)
    assert (again.retried, again.extract.claimed, again.extract.with_output) == (2, 2, 2)
    assert again.extract.left is not None and again.extract.left.too_old == 3
    assert isinstance(again.consolidate, Consolidated)  # without the pause of six hours


@needs_shell
@pytest.mark.anyio
async def test_upgrade_extracts_again_what_the_rules_had_extracted(
    tmp_path: Path, codex_home: Path, clock: FixedClock
) -> None:
    script = Script(write_both(), Say("done"))
    with LoopbackModel(script) as server:
        settings = settings_for(tmp_path, server)
        offline = msgspec.structs.replace(settings, memories=Memories())
        first = await run(offline, clock)
        assert first.extract is not None
        assert script.extractions == []
        clock.advance(seconds=12 * 24 * HOUR)  # too old for a pass that nobody asks for
        report = await run_pipeline(settings, options=Options(upgrade=True), clock=clock)
    assert first.extract.no_output > 0
    assert consolidated(report.consolidate).engine == "loopback:gpt-5"
    assert report.reopened == 6
    assert len(script.extractions) == 6
    with Store.open(settings.database, clock=clock) as store:
        assert {output.engine for output in store.outputs.latest()} == {"loopback:gpt-5-mini"}


GROUP = """\
# Task Group: project {number}

scope: what was done there
applies_to: cwd=/src/{number}; reuse_rule=any checkout

## Task 1: the loopback model answered

### rollout_summary_files

- {path}

### keywords

- scripted, loopback

## Reusable knowledge

- the loopback model answered [Task 1]

"""


class Librarian:
    """Writes a handbook of many sessions as it was told to: in pieces that fit into an answer."""

    def __init__(self) -> None:
        self.turns: list[Reply] = []
        self.longest = 0
        self.told = ""

    def __call__(self, request: RecordedRequest) -> Reply:
        if not request.json.get("tools"):
            return Say(SAMPLE_MEMORY)
        if not self.told:
            self.told = request.body.decode()
            return CallTool("list", {"path": "rollout_summaries"})
        if not self.turns:
            listed = sorted(set(re.findall(r"rollout_summaries/[\w.-]+\.md", request.body.decode())))
            groups = [GROUP.format(number=path, path=path) for path in listed]
            pieces = ["".join(groups[at : at + 10]) for at in range(0, 30, 10)]
            self.longest = max(map(len, pieces))
            self.turns = [CallTool("write", {"path": "MEMORY.md", "content": pieces[0]})]
            for each in pieces[1:]:
                self.turns.append(CallTool("write", {"path": "MEMORY.md", "content": each, "append": True}))
            self.turns += [CallTool("write", {"path": "memory_summary.md", "content": SUMMARY}), Say("done")]
        return self.turns.pop(0)


@pytest.mark.anyio
async def test_a_handbook_of_thirty_sessions_is_written_in_pieces(tmp_path: Path, clock: FixedClock) -> None:
    for number in range(30):
        started = DAY_AFTER - 24 * HOUR * 1000 - number * 60_000
        sample_rollout(tmp_path / "codex", number=number, size_bytes=1500, started_at_ms=started)
    librarian = Librarian()
    with LoopbackModel(librarian) as server:
        settings = settings_for(tmp_path, server)
        provider = server.provider(context_window=16_384)
        report = await run(msgspec.structs.replace(settings, providers={"loopback": provider}), clock)
    assert "At most 3,276 tokens fit into one answer of yours" in librarian.told
    assert 0 < librarian.longest < 4 * 3276
    done = consolidated(report.consolidate)
    assert (done.engine, done.inputs, done.fallback_reason) == ("loopback:gpt-5", 30, None)
    text = (settings.root / "MEMORY.md").read_text(encoding="utf-8")
    assert text.count("# Task Group: ") == 30
    filled = r"^- rollout_summaries/\S+ \(cwd=.*, rollout_path=.*, updated_at=.*, thread_id=.*\)$"
    assert len(re.findall(filled, text, re.MULTILINE)) == 30


@pytest.mark.anyio
async def test_inputs_are_refused_and_a_new_folder_is_listed_not_copied(
    tmp_path: Path, codex_home: Path, clock: FixedClock
) -> None:
    calls = [
        CallTool("write", {"path": "./raw_memories.md", "content": "x"}),
        CallTool("apply_patch", {"patch": "*** Begin Patch\n*** Add File: rollout_summaries/x.md\n+x\n*** End Patch"}),
        CallTool("read", {"path": "phase2_workspace_diff.md"}),
    ]
    script = Script(*calls, Say("done"))
    with LoopbackModel(script) as server:
        await run(settings_for(tmp_path, server), clock)
    told = script.agent_requests[3].body.decode()
    assert "`raw_memories.md` is an input and stays as it is" in told
    assert "`rollout_summaries/x.md` is an input and stays as it is" in told
    assert "- A raw_memories.md" in told and "Nothing was consolidated before" in told and "+---" not in told
    corrections = script.agent_requests[4].body.decode()
    assert "`MEMORY.md`: there must be a regular file of this name. Write it." in corrections
