from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillroom.store.records import Stage1Output
from stillroom.workspace import artifacts
from stillroom.workspace.artifacts import render
from stillroom.workspace.scanning import scan
from stillroom.workspace.syncing import SyncReport, plan, sync
from stillroom.workspace.tree import DEFAULTS

UUID7 = "0194f5a6-89ab-7cde-8123-456789abcdef"
LONG_SLUG = "Unsafe Slug/With Spaces & Symbols + EXTRA_LONG_12345_67890_ABCDE_fghij_klmno"


def output(thread_id: str = UUID7, *, slug: str | None = None, text: str = "remember", **more: object) -> Stage1Output:
    values = {
        "thread_id": thread_id,
        "source_updated_at": 1_739_288_200,
        "raw_memory": f"  {text}\n\n",
        "rollout_summary": f"# {text}",
        "rollout_slug": slug,
        "rollout_path": "/codex/sessions/r.jsonl",
        "cwd": "/work/app",
        "git_branch": None,
        "git_origin_url": None,
        "generated_at": 1_739_290_000,
        "engine": "offline",
    }
    return Stage1Output(**{**values, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("slug", "stem"),
    [
        (None, "2025-02-11T15-35-19-jqmb"),
        ("", "2025-02-11T15-35-19-jqmb"),
        ("___", "2025-02-11T15-35-19-jqmb"),
        (LONG_SLUG, "2025-02-11T15-35-19-jqmb-unsafe_slug_with_spaces___symbols___extra_long_12345_67890_a"),
        ("naïve-Übung", "2025-02-11T15-35-19-jqmb-na_ve__bung"),
    ],
)
def test_stem_follows_codex(slug: str | None, stem: str) -> None:
    """Spec §1.7 vector."""
    assert artifacts.summary_stem(UUID7, 1, slug) == stem


def test_stem_of_a_foreign_id_takes_the_time_of_the_thread() -> None:
    assert artifacts.summary_stem("ab", 1_739_288_200, None) == "2025-02-11T15-36-40-00O5"  # 97 * 31 + 98 = 3105


@given(st.text(), st.integers(), st.none() | st.text())
def test_stem_is_a_plain_file_name_for_anything(thread_id: str, seconds: int, slug: str | None) -> None:
    stem = artifacts.summary_stem(thread_id, seconds, slug)
    for name in (stem, f"{stem}-2"):
        assert artifacts.hash_in_name(f"rollout_summaries/{name}.md") == artifacts.thread_hash(thread_id)
    assert artifacts.hash_in_name("rollout_summaries/mine.md") is None
    assert len(stem) <= 85 and stem.isascii() and not set(stem) - set("0123456789-_T" + artifacts._ALPHABET)


def test_files_are_byte_for_byte_codex_s(tmp_path: Path) -> None:
    sync(tmp_path, render([output(git_branch="main"), output("a", text="older")]))
    assert (tmp_path / "raw_memories.md").read_bytes().decode() == (
        "# Raw Memories\n\n"
        "Merged stage-1 raw memories (stable ascending thread-id order):\n\n"
        f"## Thread `{UUID7}`\n"
        "updated_at: 2025-02-11T15:36:40+00:00\n"
        "cwd: /work/app\n"
        "rollout_path: /codex/sessions/r.jsonl\n"
        "rollout_summary_file: 2025-02-11T15-35-19-jqmb.md\n\n"
        "remember\n\n"
        "## Thread `a`\n"
        "updated_at: 2025-02-11T15:36:40+00:00\n"
        "cwd: /work/app\n"
        "rollout_path: /codex/sessions/r.jsonl\n"
        "rollout_summary_file: 2025-02-11T15-36-40-001z.md\n\n"
        "older\n\n"
    )
    assert (tmp_path / "rollout_summaries/2025-02-11T15-35-19-jqmb.md").read_bytes().decode() == (
        f"thread_id: {UUID7}\n"
        "updated_at: 2025-02-11T15:36:40+00:00\n"
        "rollout_path: /codex/sessions/r.jsonl\n"
        "cwd: /work/app\n"
        "git_branch: main\n\n"
        "# remember\n"
    )


def test_without_outputs_the_placeholder_is_written(tmp_path: Path) -> None:
    assert sync(tmp_path, render([])).written == ("raw_memories.md",)
    assert (tmp_path / "raw_memories.md").read_text(encoding="utf-8") == "# Raw Memories\n\nNo raw memories yet.\n"


def test_sync_deletes_stale_summaries_and_leaves_other_names(tmp_path: Path) -> None:
    folder = tmp_path / "rollout_summaries"
    folder.mkdir()
    for name in (f"{UUID7}.md", "picture.png"):
        (folder / name).write_text("x", encoding="utf-8")
    report = sync(tmp_path, render([output()]))
    assert report.deleted == (f"rollout_summaries/{UUID7}.md",)
    assert sorted(path.name for path in folder.iterdir()) == ["2025-02-11T15-35-19-jqmb.md", "picture.png"]


def test_plan_tells_what_sync_does_and_a_second_sync_writes_nothing(tmp_path: Path) -> None:
    wanted = render([output(), output("b", text="two")])
    assert plan(wanted, {}) == sync(tmp_path, wanted)
    assert plan(wanted, scan(tmp_path, limits=DEFAULTS).files) == SyncReport(unchanged=3)
    before = {path: path.stat().st_ino for path in tmp_path.rglob("*")}
    assert sync(tmp_path, wanted).clean
    assert before == {path: path.stat().st_ino for path in tmp_path.rglob("*")}


def test_two_threads_of_one_stem_keep_a_file_each(tmp_path: Path) -> None:
    """Ids that differ above the low 32 bits only; Codex lets the last one win."""
    first, second = UUID7, "0194f5a6-89ab-7cde-8124-456789abcdef"
    sync(tmp_path, render([output(second, text="two"), output(first, text="one")]))
    names = sorted(path.name for path in (tmp_path / "rollout_summaries").iterdir())
    assert names == ["2025-02-11T15-35-19-jqmb-2.md", "2025-02-11T15-35-19-jqmb.md"]
    raw = (tmp_path / "raw_memories.md").read_text(encoding="utf-8")
    assert "rollout_summary_file: 2025-02-11T15-35-19-jqmb-2.md\n\ntwo" in raw


def test_values_can_not_forge_header_lines(tmp_path: Path) -> None:
    text = artifacts.summary_text(output(cwd="/a\ngit_branch: evil", rollout_path="/\ud800"))
    assert text.splitlines()[3] == "cwd: /a git_branch: evil"
    sync(tmp_path, render([output(cwd="/a\n## Thread `x`", rollout_path="/\ud800")]))


def test_a_link_in_place_of_a_summary_is_replaced_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("mine", encoding="utf-8")
    root = tmp_path / "root"
    (root / "rollout_summaries").mkdir(parents=True)
    (root / "rollout_summaries/2025-02-11T15-35-19-jqmb.md").symlink_to(target)
    (root / "raw_memories.md").symlink_to(target)
    sync(root, render([output()]))
    assert target.read_text(encoding="utf-8") == "mine"
    assert not (root / "raw_memories.md").is_symlink()
    assert sync(root, render([output()])).clean
