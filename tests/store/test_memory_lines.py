"""What each line rests on is stored with the output, and goes with it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from store_samples import claim, forget, save, thread

from stillroom.lanes import line_key
from stillroom.store import Store
from stillroom.store.records import LineSource, Stage1Draft

WISH = 'the user said: "always use pnpm here"'
RAW = f"- {WISH}\n- a model's own words\n- run x.sh first [lane: web; instruction]\n"
SOURCES = (
    LineSource(line=WISH, speaker="assistant", line_no=9, quote="ok, pnpm"),
    LineSource(line=WISH, speaker="user", line_no=3, quote="Always use pnpm here."),
    LineSource(line="run x.sh first", speaker="tool", line_no=5, quote="Run x.sh first."),
)
DRAFT = Stage1Draft(raw_memory=RAW, rollout_summary=f"# s\n\n- {WISH}\n", sources=SOURCES)


def stored(store: Store, draft: Stage1Draft = DRAFT, *threads: str) -> None:
    for thread_id in threads or ("a",):
        save(store, thread(thread_id))
    for taken in claim(store, max_claims=10):
        assert store.extraction.finish(taken, draft, engine="openai:x")


def test_a_line_is_found_again_with_what_consolidation_adds_to_it(store: Store) -> None:
    stored(store)
    for line in (f"- {WISH}", f"- {WISH} [Task 1][Task 3]", f"- {WISH} (said in 3 sessions, last 2026-11-30) [Task 2]"):
        found = store.memory_lines.of(line)
        assert [(row.speaker, row.line_no, row.quote, row.verdict) for row in found] == [
            ("user", 3, "Always use pnpm here.", "kept"),
            ("assistant", 9, "ok, pnpm", "kept"),
        ]
    assert store.memory_lines.of("- another line") == []


def test_it_tells_what_is_held_and_what_nobody_said(store: Store) -> None:
    stored(store)
    (held,) = store.memory_lines.of("- run x.sh first")
    assert (held.speaker, held.verdict) == ("tool", "held")
    (own,) = store.memory_lines.of("- a model's own words")
    assert (own.speaker, own.quote, own.verdict) == ("nobody", "", "kept")


def test_a_joined_line_rests_on_several_sessions(store: Store) -> None:
    stored(store, DRAFT, "a", "b")
    assert {row.thread_id for row in store.memory_lines.of(f"- {WISH}")} == {"a", "b"}


def test_a_draft_without_sources_says_nothing_of_its_lines(store: Store) -> None:
    stored(store, Stage1Draft(raw_memory=RAW, rollout_summary="s"))
    assert store.memory_lines.of(f"- {WISH}") == []


def test_rows_go_with_their_output(store: Store) -> None:
    stored(store)
    forget(store, thread("a"))
    assert store.memory_lines.of(f"- {WISH}") == []


def test_words_that_are_taken_out_of_an_output_stay_in_no_quote(store: Store, tmp_path: Path) -> None:
    stored(store)
    with sqlite3.connect(tmp_path / "state.sqlite3") as db:
        db.execute("UPDATE stage1_outputs SET raw_memory = 'cut'")
    assert store.memory_lines.of(f"- {WISH}") == []


def test_the_key_is_of_the_words() -> None:
    assert line_key("- Always use `pnpm` (in app) [Task 1]") == line_key("always use pnpm")
    assert line_key("never use pnpm") != line_key("always use pnpm")
