"""What the rules say of a thread is what the claim, the count of what is left, and the selection do."""

from __future__ import annotations

import random
import sqlite3
import tempfile
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_samples import DAY, DRAFT, HOUR, MEMORIES, NOW, ONE, STAMP, consolidate, extract, save, thread, use

from stillroom.clock import FixedClock
from stillroom.config import Memories
from stillroom.store import Question, Stage1Claim, Stage1Draft, Standing, Store
from stillroom.store.rules import (
    EXTRACTION,
    SOURCES,
    ExtractionRule,
    RetentionRule,
    RuleName,
    Ruling,
    SelectionRule,
)
from stillroom.thread import MemoryMode, Thread

AGES = (0, HOUR, 6 * HOUR - 1, 6 * HOUR, DAY, 10 * DAY, 10 * DAY + 1, 40 * DAY)


def question(clock: FixedClock, **changes: object) -> Question:
    asked = Question(memories=MEMORIES, stage=ONE, now_ms=clock.now_ms())
    return msgspec.structs.replace(asked, **changes)


def decided(store: Store, clock: FixedClock, **changes: object) -> dict[str, tuple[str, str | None]]:
    return {
        each.thread.thread_id: (each.state, each.decided.rule if each.decided else None)
        for each in store.standings.of_all(question(clock, **changes))
    }


def random_store(store: Store, clock: FixedClock, luck: random.Random) -> None:
    """Threads of every kind, with jobs in every state, under a clock that may have been set back."""
    modes: list[MemoryMode] = ["enabled"] * 9 + ["disabled", "polluted"]
    others = ["exec", '{"subagent":"review"}', '{"internal":"memory_consolidation"}', "unknown"]
    for number in range(luck.randint(1, 14)):
        save(
            store,
            msgspec.structs.replace(
                thread(
                    f"t{number}",
                    updated_at=clock.now() - luck.choice([*AGES, *range(DAY, DAY + 9)]),
                    source=luck.choice(sorted(SOURCES) if luck.random() < 0.8 else others),
                    preview="" if luck.random() < 0.1 else "hello",
                    mode=luck.choice(modes),
                    archived=luck.random() < 0.1,
                ),
                cwd=luck.choice(["/repo", "/repo", "/repo/deep", "/repository", "/"]),
            ),
        )
    for known in store.threads.newest():
        delay, behind = luck.choice([0, HOUR]), luck.choice([0, 0, 1])
        ends = luck.choice([["fail"], ["fail", "finish", "nothing", "release", "silence"]])
        for _ in range(luck.choice([0, 0, 1, 2, 3])):
            taken = store.extraction.try_claim(
                known.thread_id,
                worker_id="w",
                source_updated_at=known.updated_at - behind,
                stage=ONE,
                max_running=100,
            )
            if not isinstance(taken, Stage1Claim):
                break
            end = luck.choice(ends)
            if end == "fail":
                store.extraction.fail(taken, reason="no", retry_delay_seconds=delay)
            elif end == "release":
                store.extraction.release(taken)
            elif end != "silence":
                store.extraction.finish(taken, DRAFT if end == "finish" else None, engine="offline")
        if luck.random() < 0.1:
            store.threads.set_memory_mode(known.thread_id, luck.choice(modes))
    if luck.random() < 0.2:
        store.extraction.reopen_offline()
    ended = [known for known in store.threads.newest() if luck.random() < 0.3]
    store.threads.end({known.thread_id: known.updated_at_ms + luck.choice([-20_000, -10_000, 0, 1]) for known in ended})
    if luck.random() < 0.5:
        store.jobs.retry_failed()
    if luck.random() < 0.2:
        store.folders.switch_off(["/repo/deep", "/repository"])
    if luck.random() < 0.2:
        store.threads.mark_missing(
            "codex", [known.rollout_path for known in store.threads.newest() if luck.random() < 0.7]
        )
    clock.advance(seconds=luck.choice([0, 1, HOUR, HOUR + 1, -HOUR, -3 * HOUR, 2 * DAY]))


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32),
    backfill=st.booleans(),
    upgrade=st.booleans(),
    retry=st.booleans(),
    cap=st.integers(1, 4),
    limit=st.integers(0, 6),
)
def test_the_rules_say_of_every_thread_what_the_claim_does(
    seed: int, backfill: bool, upgrade: bool, retry: bool, cap: int, limit: int
) -> None:
    clock, luck = FixedClock(NOW * 1000), random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "s", clock=clock) as store:
        random_store(store, clock, luck)
        engine = luck.choice(["offline", "provider:model", "provider:model"])
        memories = Memories(
            extract_model=engine, max_rollouts_per_startup=cap, min_rollout_idle_hours=6, max_rollout_age_days=10
        )
        sessions = frozenset({"t0", "t1", "t99"} if luck.random() < 0.2 else ())
        stage = msgspec.structs.replace(ONE, thread_scan_limit=limit)
        current, cwd = luck.choice([None, "t0"]), luck.choice([None, "/repo", "/repo/", "/"])
        asked = {"current_thread_id": current, "memories": memories, "cwd": cwd}
        asked |= {"backfill": backfill, "upgrade": upgrade, "sessions": sessions}
        everything = store.standings.of_all(question(clock, **asked))
        left = store.extraction.count_left(**asked)
        asked |= {"retry": retry}
        told = store.standings.of_all(question(clock, stage=stage, **asked))
        explained = [
            store.standings.explain(each.thread.thread_id, question(clock, stage=stage, **asked)) for each in told
        ]
        survey = store.standings.survey(question(clock, stage=stage, **asked))
        claims = store.extraction.claim(
            worker_id="w",
            stage=stage,
            max_claims=100 if backfill or upgrade or retry or sessions or engine == "offline" else cap,
            **asked,
        )
    assert Counter((each.state, each.decided and each.decided.rule) for each in told) == {
        (each.state, each.rule): each.threads for each in survey.counts
    }
    for state, troubled in (("failed", survey.failed), ("running", survey.running)):
        assert [(each.thread_id, each.decided) for each in troubled] == [
            (each.thread.thread_id, each.decided) for each in told if each.state == state
        ]
    too_recent = [each.decided.until or 0 for each in told if each.decided and each.decided.rule == "idle"]
    assert survey.waiting_until == min(too_recent, default=None)
    taken = [each.thread.thread_id for each in told if each.state == "next"]
    assert taken == [claim.thread_id for claim in claims]
    assert [each.standing for each in explained if each] == told
    for each in explained:
        assert each is not None
        assert [ruling.rule for ruling in each.extraction] == list(get_args(ExtractionRule))
        assert each.standing.decided == next((r for r in each.extraction if r.verdict != "passes"), None)
    assert msgspec.to_builtins(left) == counted(everything, cwd, sessions)


def counted(standings: list[Standing], cwd: str | None, sessions: frozenset[str]) -> dict[str, int]:
    """The rules' reasons by the names that the report of a pass has for them."""
    names = {
        "idle": "not_idle",
        "age": "too_old",
        "cap": "waiting",
        "lease": "running",
        "backoff": "retry_later",
        "retries": "given_up",
        "current": "current",
        "mode": "switched_off",
        "project": "switched_off",
        "archived": "archived",
        **dict.fromkeys(("preview", "memory_worker", "source"), "not_interactive"),
    }
    asked = cwd and cwd.rstrip("/")
    inside = [s for s in standings if asked is None or f"{s.thread.cwd}/".startswith(f"{asked}/")]
    inside = [s for s in inside if not sessions or s.thread.thread_id in sessions]
    reasons = Counter(names.get(each.decided.rule) if each.decided else "waiting" for each in inside)
    return {name: reasons[name] for name in dict.fromkeys([*names.values(), "waiting"])}


def test_each_rule_decides_about_a_thread_that_it_alone_refuses(store: Store, clock: FixedClock) -> None:
    at = clock.now() - DAY
    save(
        store,
        thread("off", mode="disabled"),
        thread("put-away", archived=True),
        thread("silent", preview=""),
        thread("worker", source='{"internal":"memory_consolidation"}'),
        thread("script", source="exec"),
        thread("me"),
        thread("busy", updated_at=NOW - HOUR),
        thread("old", updated_at=NOW - 11 * DAY),
        thread("first", updated_at=at + 3),
        thread("second", updated_at=at + 2),
    )
    extract(store, "done")
    extract(store, "dull", draft=None)
    save(store, thread("gone"), thread("held", updated_at=at - 1), thread("broken", updated_at=at - 2))
    store.threads.mark_missing("codex", [t.rollout_path for t in store.threads.newest() if t.thread_id != "gone"])
    hopeless = thread("hopeless", updated_at=at - 3)
    save(store, hopeless)
    for _ in range(3):
        taken = store.extraction.try_claim(
            "hopeless", worker_id="w", source_updated_at=at - 3, stage=ONE, max_running=9
        )
        assert isinstance(taken, Stage1Claim)
        store.extraction.fail(taken, reason="no", retry_delay_seconds=0)
    for name in ("held", "broken"):
        taken = store.extraction.try_claim(name, worker_id="w", source_updated_at=at - 1, stage=ONE, max_running=9)
        assert isinstance(taken, Stage1Claim)
        if name == "broken":
            store.extraction.fail(taken, reason="no", retry_delay_seconds=HOUR)
    assert decided(store, clock, current_thread_id="me") == {
        "off": ("excluded", "mode"),
        "put-away": ("excluded", "archived"),
        "silent": ("excluded", "preview"),
        "worker": ("excluded", "memory_worker"),
        "script": ("excluded", "source"),
        "me": ("excluded", "current"),
        "busy": ("waiting", "idle"),
        "old": ("excluded", "age"),
        "gone": ("excluded", "missing"),
        "done": ("extracted", "watermark"),
        "dull": ("no_output", "watermark"),
        # Of the two that a pass takes another process has one.
        "held": ("running", "lease"),
        "broken": ("failed", "backoff"),
        "hopeless": ("failed", "retries"),
        "first": ("next", None),
        "second": ("waiting", "cap"),
    }
    (waiting,) = (each.decided for each in store.standings.of_all(question(clock)) if each.thread.thread_id == "busy")
    assert waiting is not None and (waiting.until, waiting.setting) == (
        NOW + 5 * HOUR,
        "memories.min_rollout_idle_hours",
    )
    assert decided(store, clock, backfill=True)["old"] == ("next", None)
    few = msgspec.structs.replace(ONE, thread_scan_limit=1)
    scanned = decided(store, clock, stage=few)
    assert (scanned["first"], scanned["second"]) == (("next", None), ("excluded", "scan_limit"))
    assert decided(store, clock, cwd="/elsewhere")["first"] == ("excluded", "cwd")
    paused = decided(store, clock, paused_since="a while ago")
    assert {name for name, (_, rule) in paused.items() if rule == "paused"} == {"first", "me", "second"}
    assert (paused["first"][0], paused["done"]) == ("waiting", ("extracted", "watermark"))
    assert store.folders.switch_off(["/repo"])
    assert decided(store, clock)["first"] == ("excluded", "project")
    assert decided(store, clock, memories=Memories(enabled=False))["first"] == ("excluded", "enabled")
    assert [rule.name for rule in EXTRACTION] == list(get_args(ExtractionRule))
    assert store.standings.explain("nobody", question(clock)) is None


#: What is told to change the decision of each rule: the setting, the command, or else what does.
CHANGES: dict[RuleName, tuple[str | None, str | None, str | None]] = {
    "enabled": ("memories.enabled", None, None),
    "mode": (None, "stillroom memories --on --thread t", None),
    "project": (None, "stillroom memories --on --cwd /repo", None),
    "watermark": (None, "stillroom run --upgrade", None),
    "missing": ("sources", None, "its file, back in one of them"),
    "archived": (None, None, "its agent, which archived it"),
    "preview": (None, None, "a person's words in it"),
    "memory_worker": (None, None, "nothing: a memory learns nothing of itself"),
    "source": (None, None, "nothing: only what people took part in is learnt from"),
    "current": (None, None, "a pass that another session starts, or a person"),
    "cwd": (None, None, "a pass without `--cwd`"),
    "session": (None, None, "a pass without `--session`"),
    "idle": ("memories.min_rollout_idle_hours", "stillroom run --session t", None),
    "age": ("memories.max_rollout_age_days", "stillroom run --backfill", None),
    "scan_limit": (None, "stillroom run --backfill", None),
    "lease": (None, "stillroom doctor --fix", None),
    "retries": (None, "stillroom run --retry", None),
    "backoff": (None, "stillroom run --retry", None),
    "paused": (None, "stillroom resume", None),
    "cap": ("memories.max_rollouts_per_startup", "stillroom run --backfill", None),
    "output": (None, None, "its extraction, of which the rules are above"),
    "remembered": (None, "stillroom memories --on --thread t", None),
    "words": (None, "stillroom run --upgrade", None),
    "undone": (None, "stillroom redo", None),
    "used": ("memories.max_unused_days", None, None),
    "rank": ("memories.max_raw_memories_for_consolidation", None, None),
    "kept": ("memories.max_unused_days", None, None),
}


def rulings(store: Store, clock: FixedClock, **changes: object) -> dict[str, Ruling]:
    """Of thread `t`, by rule."""
    explained = store.standings.explain("t", question(clock, **changes))
    assert explained is not None
    every = (*explained.extraction, *explained.selection, *([explained.retention] if explained.retention else []))
    return {each.rule: each for each in every}


def test_every_rule_says_what_would_change_its_decision(store: Store, clock: FixedClock) -> None:
    save(store, thread("t"))
    told = rulings(store, clock)
    store.threads.set_memory_mode("t", "disabled")
    told |= {name: each for name, each in rulings(store, clock).items() if name not in told}
    extract(store, "t")
    store.threads.set_memory_mode("t", "disabled")
    told |= {name: each for name, each in rulings(store, clock).items() if name not in told}
    assert {name: (each.setting, each.command, each.otherwise) for name, each in told.items()} == CHANGES
    assert set(CHANGES) == {*get_args(ExtractionRule), *get_args(SelectionRule), *get_args(RetentionRule)}
    # What a model extracted is taken up again when a person asks for it.
    store.threads.set_memory_mode("t", "enabled")
    extract(store, "t", at=NOW - DAY + 1, engine="p:m")
    assert rulings(store, clock)["watermark"].command == "stillroom run --again --session t"


def test_each_rule_about_an_output_decides_of_one_that_it_alone_refuses(store: Store, clock: FixedClock) -> None:
    def deciding(**changes: object) -> str | None:
        explained = store.standings.explain("t", question(clock, **changes))
        assert explained is not None
        return next((each.rule for each in explained.selection if each.verdict != "passes"), None)

    save(store, thread("t"))
    assert deciding() == "output"
    extract(store, "t", draft=Stage1Draft(raw_memory=" ", rollout_summary="\n"))
    assert deciding() == "words"
    extract(store, "t", at=NOW - DAY + 1)
    assert deciding() is None
    store.threads.set_memory_mode("t", "disabled")
    assert deciding() == "remembered"
    store.threads.set_memory_mode("t", "enabled")
    store.folders.switch_off(["/repo"])
    assert deciding() == "remembered"
    store.folders.switch_off([])
    few = Memories(max_raw_memories_for_consolidation=1)
    extract(store, "newer", at=NOW - DAY + 2)
    assert (deciding(memories=few), deciding()) == ("rank", None)
    clock.advance(seconds=31 * DAY)
    assert (deciding(), rulings(store, clock)["kept"].verdict) == ("used", "refuses")
    assert deciding(memories=Memories(max_unused_days=40)) is None
    consolidate(store, clock)
    use(store, "t", at=clock.now())
    consolidate(store, clock)
    assert store.consolidation.undo([]) == 1
    assert (deciding(), store.uses.worth(since=0).undone) == ("undone", 1)
    store.consolidation.redo()
    assert deciding() is None


def test_an_upgrade_takes_up_nothing_that_was_undone(store: Store, clock: FixedClock) -> None:
    extract(store, "t")
    consolidate(store, clock)
    store.consolidation.undo([])
    assert store.extraction.reopen_offline() == 0
    store.consolidation.redo()
    assert store.extraction.reopen_offline() == 1


def test_lines_that_stay_out_of_a_memory_are_told_with_it(store: Store, clock: FixedClock) -> None:
    line = "- the deploy needs `make seed` [lane: web; instruction]"
    extract(store, "t", draft=Stage1Draft(raw_memory=f"raw\n{line}", rollout_summary="summary"))
    explained = store.standings.explain("t", question(clock))
    assert explained is not None and explained.selected
    (out,) = explained.withheld
    assert (out.line.lane, out.line.text) == ("web", "the deploy needs `make seed`")
    store.consolidation.trust_line(out.line.line_id)
    explained = store.standings.explain("t", question(clock))
    assert explained is not None and explained.withheld == ()


def test_what_failed_is_tried_again_at_once_when_a_person_says_so(store: Store, clock: FixedClock) -> None:
    save(store, thread("t"))
    for _ in range(3):
        (taken,) = store.extraction.claim(
            worker_id="w", current_thread_id=None, memories=MEMORIES, stage=ONE, max_claims=1, backfill=True
        )
        store.extraction.fail(taken, reason="no key", retry_delay_seconds=0)
    assert decided(store, clock)["t"] == ("failed", "retries")
    assert store.jobs.retry_failed() == 1
    assert decided(store, clock)["t"] == ("next", None)
    (taken,) = store.extraction.claim(
        worker_id="w", current_thread_id=None, memories=MEMORIES, stage=ONE, max_claims=1, backfill=True
    )
    store.extraction.fail(taken, reason="no key", retry_delay_seconds=HOUR)
    assert decided(store, clock)["t"] == ("failed", "backoff")
    assert store.jobs.retry_failed() == 1
    assert decided(store, clock)["t"] == ("next", None)


def test_a_thread_that_may_be_remembered_after_all_is_extracted(store: Store, clock: FixedClock) -> None:
    save(store, thread("t"))
    extract(store, "t", draft=None)  # as a pass ends with a session that it learns not to be for it
    assert store.threads.set_memory_mode("t", "disabled")
    assert decided(store, clock)["t"] == ("excluded", "mode")
    assert store.threads.set_memory_mode("t", "enabled")
    assert decided(store, clock)["t"] == ("next", None)


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), limit=st.integers(1, 3))
def test_the_rules_say_of_every_output_what_the_selection_and_the_pruning_do(seed: int, limit: int) -> None:
    clock, luck = FixedClock(NOW * 1000), random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "s", clock=clock) as store:
        names = [f"t{number}" for number in range(luck.randint(1, 6))]
        for name in names:
            texts = luck.choice(["raw", "raw", " \n"])
            draft = luck.choice([Stage1Draft(raw_memory=texts, rollout_summary=texts)] * 3 + [None])
            extract(store, name, at=NOW - luck.choice([DAY, 29 * DAY, 30 * DAY, 31 * DAY]), draft=draft)
            if luck.random() < 2 / 3:
                use(store, name)
        if luck.random() < 0.5:
            consolidate(store, clock)
        store.threads.set_memory_mode(luck.choice(names), luck.choice(["enabled", "disabled"]))
        with closing(sqlite3.connect(Path(folder) / "s")) as db:
            held = luck.choice(["in", "out", None])
            db.execute("UPDATE stage1_outputs SET held = ? WHERE thread_id = ?", (held, luck.choice(names)))
            db.commit()
        clock.advance(seconds=luck.choice([0, DAY, 30 * DAY, 31 * DAY]))
        asked = question(clock, memories=Memories(max_raw_memories_for_consolidation=limit))
        explained = {name: store.standings.explain(name, asked) for name in names}
        selected = {o.thread_id for o in store.consolidation.select(limit=limit, max_unused_days=30).selected}
        store.outputs.prune(max_unused_days=30, limit=100)
        kept = {each.thread.thread_id for each in store.standings.of_all(asked) if each.has_output}
    assert {name for name, each in explained.items() if each and each.selected} == selected
    assert {
        name for name, each in explained.items() if each and each.retention and each.retention.verdict != "refuses"
    } == kept


def test_a_rule_reads_what_was_saved_whatever_bytes_it_has(store: Store, clock: FixedClock) -> None:
    odd = Thread(**{**msgspec.structs.asdict(thread("odd")), "cwd": "/caf\udce9", "thread_id": "odd\udce9"})
    store.threads.save([(odd, STAMP)])
    (standing,) = store.standings.of_all(question(clock))
    assert (standing.thread, standing.state) == (odd, "next")
    assert store.standings.explain("odd\udce9", question(clock)) is not None
