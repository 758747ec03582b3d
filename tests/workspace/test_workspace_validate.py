from __future__ import annotations

import os
from pathlib import Path

import pytest

from stillroom.config import StageTwo
from stillroom.workspace.finding import Finding
from stillroom.workspace.handbook import shape
from stillroom.workspace.history import compare
from stillroom.workspace.scanning import scan
from stillroom.workspace.tree import DEFAULTS
from stillroom.workspace.validate import Before, check_artifacts, scrub

HANDBOOK = """# Task Group: /work/app, tests

scope: how the tests run
applies_to: cwd=/work/app; reuse_rule=this checkout

## Task 1: make the tests pass, done

### rollout_summary_files

- rollout_summaries/one.md (cwd=/work/app, rollout_path=/r.jsonl, updated_at=2026-01-01T00:00:00+00:00, thread_id=a)

### keywords

- pytest, conftest

## User preferences
- when tests fail, the user asked: "run the whole suite" -> run it [Task 1]
"""
SUMMARY = "v1\n\n## User Profile\n\n## What's in Memory\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put(tmp_path, "MEMORY.md", HANDBOOK)
    put(tmp_path, "memory_summary.md", SUMMARY)
    put(tmp_path, "raw_memories.md", "# Raw Memories\n")
    put(tmp_path, "rollout_summaries/one.md", "one\n")
    return tmp_path


def put(folder: Path, path: str, data: str | bytes) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(data.encode() if isinstance(data, str) else data)


def before(folder: Path, **more: object) -> Before:
    handbook = (folder / "MEMORY.md").read_bytes()
    return Before(files=scan(folder, limits=DEFAULTS).files, handbook=handbook, **more)  # type: ignore[arg-type]


def found(folder: Path, known: Before | None = None, limits: StageTwo = DEFAULTS) -> list[tuple[str, str, int, bool]]:
    return [(f.rule, f.path, f.line, f.fatal) for f in check_artifacts(folder, before=known, limits=limits)]


def test_a_good_folder_has_no_findings(folder: Path) -> None:
    assert check_artifacts(folder) == []
    assert check_artifacts(folder, before=before(folder)) == []


def test_a_title_is_enough_when_there_is_nothing_to_remember(tmp_path: Path) -> None:
    put(tmp_path, "MEMORY.md", "# Memory\n")
    put(tmp_path, "memory_summary.md", "v1")
    assert check_artifacts(tmp_path) == []


@pytest.mark.parametrize("text", ["", "\n\n", "no heading\n"])
def test_a_handbook_without_a_heading_is_refused(folder: Path, text: str) -> None:
    put(folder, "MEMORY.md", text)
    assert found(folder) == [("title", "MEMORY.md", 0, True)]


def test_inputs_without_a_task_group_are_only_worth_a_remark(folder: Path) -> None:
    put(folder, "MEMORY.md", "# Memory\n")
    assert found(folder) == [("empty", "MEMORY.md", 0, False)]


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (b"v2\n", "it is `v2`"),
        (b"\nv1\n", "empty"),
        (b"v1 \n", "`v1 `"),
        (b"v1\r\n", "Windows line ends"),
        (b"\xef\xbb\xbfv1\n", "byte order mark"),
        (b"", "empty"),
    ],
)
def test_the_summary_begins_with_exactly_v1(folder: Path, first: bytes, words: str) -> None:
    """Spec §10.2 item 19."""
    put(folder, "memory_summary.md", first)
    (finding,) = check_artifacts(folder)
    assert (finding.rule, finding.line, finding.fatal) == ("version", 1, True) and words in finding.message


@pytest.mark.parametrize("name", ["MEMORY.md", "memory_summary.md"])
def test_both_files_must_be_there_as_files(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert found(folder) == [("missing", name, 0, True)]
    (folder / name).mkdir()
    assert found(folder) == [("missing", name, 0, True)]


def test_links_pipes_and_names_of_git_are_refused_and_untouched(folder: Path) -> None:
    known = before(folder)
    (folder / "extensions").symlink_to("/etc")
    os.mkfifo(folder / "skills")
    put(folder, ".gitattributes", "* text\n")
    put(folder, "notes/.git/config", "[core]\n")
    assert found(folder, known) == [
        ("link", "extensions", 0, True),
        ("kind", "skills", 0, True),
        ("git", "notes/.git", 0, True),
        ("git", ".gitattributes", 0, True),
        ("ignored", ".gitattributes", 0, False),
    ]
    assert (folder / "extensions").is_symlink()


@pytest.mark.parametrize(
    ("remove", "message"),
    [
        ("scope: how the tests run\n", "the task group has no `scope:` line"),
        ("applies_to: cwd=/work/app; reuse_rule=this checkout\n", "the task group has no `applies_to:` line"),
        ("### rollout_summary_files\n", "the task has no `### rollout_summary_files`"),
        ("### keywords\n", "the task must have exactly one `### keywords`"),
        (" /work/app, tests", "the task group has no name"),
        ("## Task 1: make the tests pass, done\n", "the task group has no `## Task 1`"),
    ],
)
def test_mandatory_lines(remove: str, message: str) -> None:
    assert remove in HANDBOOK
    assert [problem.message for problem in shape(HANDBOOK.replace(remove, "", 1).splitlines())] == [message]


@pytest.mark.parametrize("key", ["scope", "applies_to"])
def test_a_group_is_told_about_ahead_of_its_tasks(key: str) -> None:
    (line,) = (line for line in HANDBOOK.splitlines(keepends=True) if line.startswith(f"{key}:"))
    moved = HANDBOOK.replace(line, "", 1) + f"\n{line}"
    assert [problem.message for problem in shape(moved.splitlines())] == [f"the task group has no `{key}:` line"]


def test_sections_of_a_task_come_once_each() -> None:
    twice = HANDBOOK.replace("### keywords", "### keywords\n\n### keywords\n\n### rollout_summary_files")
    assert [problem.message for problem in shape(twice.splitlines())] == [
        "the task has more than one `### rollout_summary_files`",
        "the task must have exactly one `### keywords`",
    ]


def test_a_task_may_rest_on_an_extension(folder: Path) -> None:
    """Spec §1.9: imported-only tasks."""
    assert list(shape(HANDBOOK.replace("rollout_summary_files", "extension_resource_files").splitlines())) == []


def test_headings_in_code_and_other_blocks_are_free() -> None:
    text = HANDBOOK + "\n```sh\n# Task Group: nothing\n## Task 9\n```\n\n# My own notes\n\n## Task 1\n"
    assert list(shape(text.splitlines())) == []


def test_a_malformed_block_of_a_person_is_no_reason_to_refuse(folder: Path) -> None:
    put(folder, "MEMORY.md", HANDBOOK + "\n# Task Group: mine\n\nas I like it\n")
    known = before(folder)
    assert {(rule, fatal) for rule, _, _, fatal in found(folder, known)} == {("shape", False)}
    put(folder, "MEMORY.md", HANDBOOK + "\n# Task Group: mine\n\nas I like it, said the agent\n")
    assert {(rule, fatal) for rule, _, _, fatal in found(folder, known)} == {("shape", True)}


def test_references_must_exist(folder: Path) -> None:
    line = HANDBOOK.count("\n") + 1
    put(folder, "MEMORY.md", HANDBOOK + "- see `rollout_summaries/two.md`, rollout_summaries/*.md [Task 1]\n")
    put(
        folder, "skills/x/SKILL.md", "rollout_summaries/three.md, src/skills/y.md\n- Related skill: skills/z/SKILL.md\n"
    )
    assert found(folder) == [
        ("reference", "MEMORY.md", line, True),
        ("reference", "skills/x/SKILL.md", 1, True),
        ("reference", "skills/x/SKILL.md", 2, False),
    ]


def test_a_reference_that_was_dead_before_is_fatal_only_when_its_file_went_now(folder: Path) -> None:
    (folder / "rollout_summaries/one.md").unlink()
    put(folder, "rollout_summaries/two.md", "two\n")
    assert found(folder, before(folder)) == [("reference", "MEMORY.md", 10, False)]
    deleted = frozenset({"rollout_summaries/one.md"})
    assert found(folder, before(folder, deleted=deleted)) == [("reference", "MEMORY.md", 10, True)]


@pytest.mark.parametrize(
    "line",
    [
        "[rest unchanged]",
        "- [... remaining tasks unchanged ...]",
        "... (rest of the file unchanged) ...",
        "… existing content unchanged …",
        "<!-- other sections omitted for brevity -->",
        "# ... rest of the block as before",
        "[…其余不变…]",
        "（以下省略）",
    ],
)
def test_placeholders_for_text_are_refused(folder: Path, line: str) -> None:
    known = before(folder)
    put(folder, "MEMORY.md", HANDBOOK + line + "\n")
    assert found(folder, known) == [("elision", "MEMORY.md", HANDBOOK.count("\n") + 1, True)]
    assert found(folder, before(folder)) == []


@pytest.mark.parametrize(
    "line",
    [
        "- the API stays unchanged when the flag is off [Task 1]",
        '- the user said: "leave the rest unchanged"',
        "- output is truncated at 4 KiB; the rest goes to a file",
        "- run `pytest ...` and wait",
    ],
)
def test_sentences_about_such_things_are_not(folder: Path, line: str) -> None:
    put(folder, "MEMORY.md", HANDBOOK + line + "\n")
    assert found(folder) == []


def test_binary_text_is_refused_where_the_agent_wrote_it(folder: Path) -> None:
    put(folder, "skills/mine/logo.png", b"\x89PNG\x00")
    known = before(folder)
    put(folder, "skills/new/a.md", b"one\n\xff\n")
    put(folder, "skills/new/b.md", b"one\n\x00\n")
    assert found(folder, known) == [("text", "skills/new/a.md", 2, True), ("text", "skills/new/b.md", 2, True)]


def test_sizes(folder: Path) -> None:
    limits = StageTwo(max_handbook_bytes=100, max_summary_tokens=10, max_file_bytes=1000)
    put(folder, "memory_summary.md", "v1\n" + "x" * 38)
    put(folder, "skills/big.md", "x" * 1001)
    assert found(folder, limits=limits) == [
        ("size", "skills/big.md", 0, True),
        ("size", "MEMORY.md", 0, True),
        ("size", "memory_summary.md", 0, True),
    ]
    assert found(folder, limits=StageTwo(max_folder_bytes=100)) == [("unreadable", ".", 0, True)]


def test_changed_inputs_and_extra_files_are_said(folder: Path) -> None:
    known = before(folder)
    put(folder, "raw_memories.md", "forged\n")
    put(folder, "new.md", "extra\n")
    put(folder, "extensions/ad_hoc/notes/x.md", "extra\n")
    assert [str(finding) for finding in check_artifacts(folder, before=known)] == [
        "extensions/ad_hoc/notes/x.md: an extra file: it is left out [ignored]",
        "new.md: an extra file: it is left out [ignored]",
        "raw_memories.md: an input was changed: it is left out [ignored]",
    ]


def test_a_collapse_is_remarked_unless_an_input_went_away(folder: Path) -> None:
    put(folder, "MEMORY.md", HANDBOOK + "- a line of knowledge [Task 1]\n" * 100)
    known = before(folder)
    gone = before(folder, deleted=frozenset({"rollout_summaries/two.md"}))
    put(folder, "MEMORY.md", HANDBOOK)
    assert found(folder, known) == [("collapse", "MEMORY.md", 0, False)]
    assert found(folder, gone) == []


def test_secrets_are_refused_and_can_be_scrubbed(folder: Path) -> None:
    known = before(folder)
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    put(folder, "MEMORY.md", HANDBOOK + f"- token {token}\n")
    put(folder, "skills/x/run.sh", f"export GH={token}\n")
    (folder / "skills/x/run.sh").chmod(0o755)
    put(folder, "raw_memories.md", f"{token}\n")
    assert {(rule, path, fatal) for rule, path, _, fatal in found(folder, known) if rule == "secret"} == {
        ("secret", "MEMORY.md", True),
        ("secret", "skills/x/run.sh", True),
    }
    scrubbed = scrub(folder, before=known)
    assert {(finding.rule, finding.path, finding.fatal) for finding in scrubbed} == {
        ("secret", "MEMORY.md", False),
        ("secret", "skills/x/run.sh", False),
    }
    assert token not in (folder / "MEMORY.md").read_text(encoding="utf-8")
    assert (folder / "skills/x/run.sh").stat().st_mode & 0o100
    assert token in (folder / "raw_memories.md").read_text(encoding="utf-8")
    assert not any(finding.fatal for finding in check_artifacts(folder, before=known))
    assert scrub(folder, before=known) == []


def test_findings_have_an_end(folder: Path) -> None:
    put(folder, "MEMORY.md", HANDBOOK + "- rollout_summaries/no.md\n" * 5000)
    findings = check_artifacts(folder)
    assert len(findings) == 200
    assert isinstance(findings[0], Finding)


def test_compare_orders_by_bytes() -> None:
    entry = next(iter(scan(Path(__file__).parent, limits=DEFAULTS).files.values()))
    assert [path for _, path in compare({}, {"b": entry, "a/b": entry, "a.b": entry})] == ["a.b", "a/b", "b"]
