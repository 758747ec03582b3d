"""What stays of each file of the memory folder, in any version of it."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from stillroom.config import Settings
from stillroom.offline.folder.byhand import key, record_lines, split_record
from stillroom.undoing.handbook import cut_handbook
from stillroom.undoing.planning import preview_of
from stillroom.undoing.purging import Purge
from stillroom.undoing.traces import Finder, Traces

GONE, KEPT = "01a2273c-0000-7000-8000-000000000001", "01a2273c-0000-7000-8000-000000000002"


def task(number: int, *threads: str) -> list[str]:
    sources = [f"- rollout_summaries/{thread[-4:]}.md (cwd=/w, thread_id={thread})" for thread in threads]
    return [
        f"## Task {number}: do {number}",
        "",
        "### rollout_summary_files",
        "",
        *sources,
        "",
        "### keywords",
        "",
        "- x",
    ]


def handbook(*parts: list[str]) -> list[str]:
    return [line for part in parts for line in (*part, "")]


HEAD = ["# Task Group: shop", "", "scope: work in /w", "applies_to: cwd=/w"]


def purge(**traces: object) -> Purge:
    return Purge(Finder(Traces(threads=frozenset({GONE}), names=frozenset({GONE}), **traces)))  # type: ignore[arg-type]


def cut(lines: list[str]) -> tuple[list[str], list[str]]:
    done = cut_handbook(lines, purge().finder)
    return [line for line in done.lines if line.strip()], done.undecided


def test_a_task_goes_with_its_only_session_and_a_line_with_its_only_task() -> None:
    lines = handbook(
        HEAD, task(1, GONE), task(2, KEPT), ["## Reusable knowledge", "", "- one [Task 1]", "- both [Task 1][Task 2]"]
    )
    kept, undecided = cut(lines)
    assert kept == [
        line for line in handbook(HEAD, task(2, KEPT), ["## Reusable knowledge", "- both [Task 2]"]) if line
    ]
    assert undecided == []


def test_a_task_of_two_sessions_stays_and_what_it_says_is_undecided() -> None:
    lines = handbook(HEAD, task(1, GONE, KEPT), ["## Reusable knowledge", "", "- one [Task 1]", "- no task"])
    kept, undecided = cut(lines)
    assert GONE not in "\n".join(kept) and KEPT in "\n".join(kept)
    assert undecided == ["## Task 1: do 1", "- x", "- one [Task 1]", "- no task"]


def test_a_group_goes_with_its_last_session_and_its_sections_in_the_summary() -> None:
    lines = handbook(HEAD, task(1, GONE), ["## User preferences", "", "- unnamed"])
    other = handbook(["# Task Group: api", "", "scope: x", "applies_to: y"], task(1, KEPT))
    done = cut_handbook([*lines, *other], purge().finder)
    assert [line for line in done.lines if line] == [line for line in other if line]
    assert done.emptied == {"shop"}
    profile = "v1\n\n## User Profile\n\n- 1 session is remembered (in shop)\n- kept (in shop, api)\n"
    text = f"{profile}\n### shop\n\n- a: b\n\n### api\n"
    left = purge(titles=frozenset({"shop"})).text(text).text
    assert left is not None
    assert [line for line in left.split("\n") if line] == ["v1", "## User Profile", "- kept (in shop, api)", "### api"]


def test_a_persons_lines_stay_where_everything_else_goes_and_nothing_seems_taken_out_by_hand() -> None:
    generated = handbook(HEAD, task(1, GONE), ["## User preferences", "", "- made [Task 1]"])
    summary = ["- made (in shop)", "- other"]
    mine = "- mine: closes at six"
    lines = [*generated, mine, "", *record_lines(generated, summary, ["00aa00aa00"])]
    done = cut_handbook(lines, purge().finder, summary_keys={key(summary[0])})
    text, record = split_record("\n".join(done.lines))
    assert mine in text and "made" not in text and text.startswith("# Task Group: shop")
    assert record.handbook == {key(line) for line in text.split("\n") if line in generated} - {""}
    assert record.summary == {key("- other")} and record.taken_out == {"00aa00aa00"}


def test_copies_of_the_session_go_and_those_of_others_stay() -> None:
    def section(thread_id: str) -> str:
        return f"## Thread `{thread_id}`\nupdated_at: 2026\ncwd: /w\n\nsaid by {thread_id[-1]}\n\n"

    head = "# Raw Memories\n\nMerged:\n\n"
    left = purge().data(f"{head}{section(GONE)}{section(KEPT)}".encode())
    assert left == f"{head}{section(KEPT)}".encode()
    assert purge().data(f"{head}{section(GONE)}".encode()) == b"# Raw Memories\n\nNo raw memories yet.\n"
    assert purge().data(f"thread_id: {GONE}\ncwd: /w\n\nsaid\n".encode()) is None
    assert (
        purge().data(f"thread_id: {KEPT}\ncwd: /w\n\nsaid\n".encode())
        == f"thread_id: {KEPT}\ncwd: /w\n\nsaid\n".encode()
    )


def test_a_list_in_one_line_loses_what_goes_and_an_item_takes_what_is_below_it() -> None:
    made = purge(phrases=frozenset({"always run make verify", "use biome for this repo"}))
    topic = "v1\n\n- topic: a\n  - learnings: always run make verify; keep this one\n"
    text = f"{topic}- use biome for this repo\n  - below\n- else\n"
    assert made.text(text).text == "v1\n\n- topic: a\n  - learnings: keep this one\n- else\n"


BULLETS = st.lists(
    st.sampled_from(["- a [Task 1]", "- b [Task 2]", "- c [Task 1][Task 2]", "  below", "", "text", "- d"])
)
TASKS = st.lists(st.lists(st.sampled_from([GONE, KEPT]), min_size=1, max_size=3), min_size=1, max_size=3)


@given(TASKS, BULLETS, st.binary(max_size=60))
def test_whatever_the_handbook_nothing_of_it_is_left_and_a_second_time_changes_nothing(
    tasks: list[list[str]], bullets: list[str], odd: bytes
) -> None:
    parts = [task(number, *threads) for number, threads in enumerate(tasks, 1)]
    lines = handbook(HEAD, *parts, ["## Reusable knowledge", "", *bullets])
    data = "\n".join(lines).encode() + odd.replace(b"#", b"")
    once = purge().data(data)
    assert once is not None and GONE.encode() not in once
    assert purge().data(once) == once
    if not any(GONE in threads for threads in tasks):
        assert once == data


def test_a_file_goes_whole_by_its_head_or_by_its_name_alone(tmp_path: Path) -> None:
    thread_id = "01a2273c-0036-7133-90f0-7698c74b216a"
    texts = {
        "rollout_summaries/renamed.md": f"thread_id: {thread_id}\n\n# A title\n",
        f"skills/{thread_id}.md": "Nothing in it tells.\n",
        "skills/kept.md": f"Nothing here\n- but a line about {thread_id}\n",
    }
    settings = Settings(home=tmp_path)
    for path, text in texts.items():
        (settings.root / path).parent.mkdir(parents=True, exist_ok=True)
        (settings.root / path).write_text(text, encoding="utf-8")
    files, lines, undecided = preview_of(settings, Traces(threads=frozenset({thread_id}), names=frozenset({thread_id})))
    assert sorted(files) == sorted(texts)[:2]
    assert [(line.path, line.text) for line in lines] == [("skills/kept.md", f"- but a line about {thread_id}")]
    assert undecided == []
