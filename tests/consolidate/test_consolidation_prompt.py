"""The words of phase 2: complete, filled in, and only about what the folder has."""

from __future__ import annotations

from pathlib import Path

import pytest

from stillroom.config import StageTwo
from stillroom.consolidate.prompt import corrections_prompt, read, render_prompt
from stillroom.template import render
from stillroom.workspace.handbook import shape


def test_a_new_folder_is_built_from_nothing(tmp_path: Path) -> None:
    prompt = render_prompt(tmp_path)
    assert prompt.task == (
        "Bring the memory folder up to date. Mode: INIT.\n\n"
        "`MEMORY.md`: missing. `memory_summary.md`: missing.\n"
        "Some thousand tokens fit into one answer of yours. A longer file is written in pieces, each in a call of its "
        "own: `write` with the\nfirst task groups, then `write` with `append` for the next ones.\n\n"
        "Begin with `phase2_workspace_diff.md`.\n"
    )
    assert "At most 1,638 tokens fit into one answer" in render_prompt(tmp_path, reply_tokens=1638).task
    assert "{{" not in prompt.instructions + prompt.task
    assert "extension" not in prompt.instructions


def test_an_existing_handbook_is_updated(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("# Task Group: x\n", encoding="utf-8")
    (tmp_path / "memory_summary.md").write_text("v1\n\nx\n", encoding="utf-8")
    assert (
        "Mode: INCREMENTAL UPDATE.\n\n`MEMORY.md`: 16 bytes. `memory_summary.md`: 6 bytes.\n"
        in render_prompt(tmp_path).task
    )


@pytest.mark.parametrize("summary", ["# Summary\n", "v1 \nx", "v2\n", "\nv1\n"])
def test_a_summary_without_its_first_line_is_built_anew(tmp_path: Path, summary: str) -> None:
    (tmp_path / "MEMORY.md").write_text("# Task Group: x\n", encoding="utf-8")
    (tmp_path / "memory_summary.md").write_text(summary, encoding="utf-8")
    assert "its first line is not `v1`: build it anew" in render_prompt(tmp_path).task


def test_an_empty_handbook_is_built_from_nothing(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("\n \n", encoding="utf-8")
    assert "Mode: INIT.\n\n`MEMORY.md`: empty." in render_prompt(tmp_path).task


def test_extensions_are_explained_where_there_are_some(tmp_path: Path) -> None:
    (tmp_path / "extensions").mkdir()
    instructions = render_prompt(tmp_path).instructions
    assert "\n# Extensions\n" in instructions
    assert "| `extensions/<name>/` |" in instructions
    assert "rollout_summaries/*.md` and `extensions/*/resources/*.md`: search" in instructions
    assert "[ad-hoc note]" in instructions


def test_skills_are_explained_where_there_may_be_some(tmp_path: Path) -> None:
    summaries = tmp_path / "rollout_summaries"
    summaries.mkdir()
    assert "skills/<name>" not in render_prompt(tmp_path).instructions
    for number in range(5):
        (summaries / f"{number}.md").write_text("thread_id: 1\n", encoding="utf-8")
    assert render_prompt(tmp_path).instructions.count("skills/<name>/") == 3
    (tmp_path / "skills").mkdir()
    assert "# `skills/<name>/SKILL.md`" in render_prompt(tmp_path).instructions


def test_the_words_of_phase_2_take_no_more_than_they_are_worth(tmp_path: Path) -> None:
    prompt = render_prompt(tmp_path)
    assert len(prompt.instructions) + len(prompt.task) <= 4 * 2750


def test_limits_are_the_settings(tmp_path: Path) -> None:
    instructions = render_prompt(
        tmp_path, limits=StageTwo(max_summary_tokens=1000, max_handbook_bytes=9999)
    ).instructions
    assert "4,000 bytes" in instructions and "9,999 bytes" in instructions


@pytest.mark.parametrize(
    "words",
    ["scope:", "applies_to:", "### rollout_summary_files", "### keywords", "## User preferences",
     "## Reusable knowledge",
     "## Failures and how to do differently", "## User Profile", "## General Tips", "## What's in Memory",
     "### Older Memory Topics", "reuse_rule=", "[REDACTED_SECRET]", "INIT", "INCREMENTAL UPDATE"],
)  # fmt: skip
def test_every_part_of_the_format_is_told(tmp_path: Path, words: str) -> None:
    assert words in render_prompt(tmp_path).instructions


def test_the_shape_that_is_shown_is_the_one_that_is_checked(tmp_path: Path) -> None:
    shown = render_prompt(tmp_path).instructions.split("# `MEMORY.md`\n\n```\n")[1].split("\n```")[0]
    assert list(shape(shown.replace("## Task 2: ...\n\n", "").splitlines())) == []


def test_the_prompt_has_no_path_of_this_machine(tmp_path: Path) -> None:
    prompt = render_prompt(tmp_path)
    assert str(tmp_path) not in prompt.instructions + prompt.task


def test_a_variable_that_nobody_gives_is_an_error() -> None:
    with pytest.raises(LookupError, match="wants"):
        render("{{ a }} {{b}}", a="x")
    with pytest.raises(LookupError, match="was given"):
        render("{{ a }}", a="x", b="y")
    assert render("{{ a }}", a="{{ b }}") == "{{ b }}"


def test_findings_are_bounded_and_one_line_each() -> None:
    text = corrections_prompt(["one\ntwo", "x" * 10_000, *(str(number) for number in range(100))])
    assert "- one two\n" in text
    assert "- [cut: 62 more]" in text
    assert len(text) < 3000


def test_templates_are_part_of_the_package() -> None:
    for name in ("consolidation.md", "task.md", "skills.md", "extensions.md", "corrections.md"):
        assert read(name).strip()
