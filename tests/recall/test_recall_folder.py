"""`list`, `read` and `add_ad_hoc_note` as spec §3.2 has them."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from stillroom.clock import FixedClock
from stillroom.config import Lookup
from stillroom.errors import InvalidRequest, PathRefused, RecallError, Unreadable
from stillroom.recall.browse.counting import scope_of
from stillroom.recall.browse.listing import Entry, list_memories
from stillroom.recall.browse.notes import add_note
from stillroom.recall.browse.reading import Reading, read_memory

CLOCK = FixedClock(1_772_000_000_000)  # 2026-02-25T06:13:20Z


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "skills").mkdir()
    (tmp_path / "MEMORY.md").write_text("one\ntwo\nthree\n", encoding="utf-8")
    (tmp_path / "a.md").write_text("", encoding="utf-8")
    (tmp_path / ".hidden.md").write_text("", encoding="utf-8")
    (tmp_path / "link.md").symlink_to(tmp_path / "a.md")
    (tmp_path / "linked").symlink_to(tmp_path / "skills")
    (tmp_path / "skills" / "below.md").write_text("", encoding="utf-8")
    return tmp_path


def test_a_folder_lists_its_children_by_path_and_a_file_itself(root: Path) -> None:
    listing = list_memories(root)
    assert listing.entries == (
        Entry(path="MEMORY.md", entry_type="file"),
        Entry(path="a.md", entry_type="file"),
        Entry(path="skills", entry_type="directory"),
    )
    assert (listing.path, listing.next_cursor, listing.truncated) == (None, None, False)
    assert list_memories(root, path="skills/below.md").entries == (Entry(path="skills/below.md", entry_type="file"),)


def test_pages_follow_each_other_and_the_cursor_is_checked(root: Path) -> None:
    first = list_memories(root, max_results=2)
    assert (len(first.entries), first.next_cursor, first.truncated) == (2, "2", True)
    rest = list_memories(root, max_results=2, cursor=first.next_cursor)
    assert ([entry.path for entry in rest.entries], rest.next_cursor) == (["skills"], None)
    assert list_memories(root, cursor="3").entries == ()
    assert len(list_memories(root, max_results=0).entries) == 1
    for cursor in ("-1", "x", "", "1.0", "٣"):
        with pytest.raises(InvalidRequest, match="must be a non-negative integer"):
            list_memories(root, cursor=cursor)
    for cursor in ("4", "9" * 5000):
        with pytest.raises(InvalidRequest, match="exceeds the number of results"):
            list_memories(root, cursor=cursor)


def test_a_page_is_never_larger_than_an_answer_may_be(root: Path) -> None:
    listing = list_memories(root, limits=Lookup(max_answer_tokens=25))
    assert (len(listing.entries), listing.next_cursor) == (2, "2")


@pytest.mark.parametrize(
    ("line_offset", "max_lines", "content", "truncated"),
    [
        (1, None, "one\ntwo\nthree\n", False),
        (2, None, "two\nthree\n", False),
        (2, 1, "two\n", True),
        (3, 1, "three\n", False),
        (3, 2, "three\n", False),
        (4, None, "", False),  # the empty line after the last line feed
    ],
)
def test_lines_are_read_from_an_offset(
    root: Path, line_offset: int, max_lines: int | None, content: str, truncated: bool
) -> None:
    assert read_memory(root, "MEMORY.md", line_offset=line_offset, max_lines=max_lines) == Reading(
        path="MEMORY.md", start_line_number=line_offset, content=content, truncated=truncated
    )


@pytest.mark.parametrize(("line_offset", "max_lines"), [(0, None), (1, 0), (5, None), (10**12, None)])
def test_lines_that_are_not_there_are_refused(root: Path, line_offset: int, max_lines: int | None) -> None:
    with pytest.raises(InvalidRequest):
        read_memory(root, "MEMORY.md", line_offset=line_offset, max_lines=max_lines)


def test_a_long_file_is_cut_in_the_middle_and_says_so(root: Path) -> None:
    (root / "long.md").write_text("é" * 100_000, encoding="utf-8")
    reading = read_memory(root, "long.md")
    assert reading.truncated
    assert "…30000 tokens truncated…" in reading.content
    assert len(reading.content.encode()) < 20_000 * 4 + 40


def test_what_is_no_text_or_too_large_is_a_clear_error(root: Path) -> None:
    (root / "latin.md").write_bytes(b"caf\xe9")
    with pytest.raises(Unreadable, match=r"`latin.md` is no UTF-8 text \(at byte 3\)"):
        read_memory(root, "latin.md")
    with (root / "huge.md").open("wb") as file:
        os.truncate(file.fileno(), 50_000_000)
    with pytest.raises(Unreadable, match="50,000,000 bytes"):
        read_memory(root, "huge.md")
    with pytest.raises(PathRefused, match="is a folder"):
        read_memory(root, "skills")


def test_a_note_gets_a_name_of_the_time_and_its_text_and_loses_its_secrets(tmp_path: Path) -> None:
    root = tmp_path / "new" / "memories"
    secret = "ghp_" + "a1B2" * 9
    first = add_note(root, f"Deploys go out on Tuesdays. Token {secret}", clock=CLOCK)
    assert first.path == "extensions/ad_hoc/notes/2026-02-25T06-13-20-deploys-go-out-on-tuesdays-token.md"
    assert (root / first.path).read_text(encoding="utf-8") == first.text
    assert secret not in first.text
    assert "REDACTED" in first.text
    second = add_note(root, first.text, clock=CLOCK)
    assert second.path.endswith("-token-2.md")
    assert add_note(root, "周二部署", clock=CLOCK).path.endswith("06-13-20-note.md")


def test_a_note_with_a_name_is_created_once(tmp_path: Path) -> None:
    name = "2026-02-24T09-30-00-prefers-ruff.md"
    assert add_note(tmp_path, "Use ruff.", name=name, clock=CLOCK).path == f"extensions/ad_hoc/notes/{name}"
    with pytest.raises(InvalidRequest, match="already exists"):
        add_note(tmp_path, "Use black.", name=name, clock=CLOCK)
    assert (tmp_path / "extensions/ad_hoc/notes" / name).read_text(encoding="utf-8") == "Use ruff."


@pytest.mark.parametrize(
    "name",
    [
        "x.md",
        "2026-02-24T09-30-00-.md",
        "2026-02-24T09-30-00-Upper.md",
        "2026-02-24T09-30-00-a.txt",
        "2026-02-24T09-30-00-a/b.md",
        "../2026-02-24T09-30-00-a.md",
        "٢026-02-24T09-30-00-a.md",
        "2026-02-24T09-30-00-a.md\n",
        f"2026-02-24T09-30-00-{'a' * 81}.md",
    ],
)
def test_a_note_with_another_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidRequest, match="file name"):
        add_note(tmp_path, "text", name=name, clock=CLOCK)
    assert not list(tmp_path.iterdir())


def test_an_empty_or_endless_note_is_refused(tmp_path: Path) -> None:
    for text in ("", " \n\t", "x" * 16_001):
        with pytest.raises(InvalidRequest):
            add_note(tmp_path, text, clock=CLOCK)


@pytest.mark.parametrize("step", ["extensions", "extensions/ad_hoc", "extensions/ad_hoc/notes"])
def test_a_note_is_never_written_over_a_link(tmp_path: Path, step: str) -> None:
    root, outside = tmp_path / "memories", tmp_path / "outside"
    outside.mkdir()
    (root / step).parent.mkdir(parents=True)
    (root / step).symlink_to(outside)
    with pytest.raises(PathRefused):
        add_note(root, "text", clock=CLOCK)
    assert not list(outside.iterdir())


@pytest.mark.slow  # two threads race for seconds
def test_a_note_is_never_written_outside_while_folders_are_swapped_for_links(tmp_path: Path) -> None:
    root, outside = tmp_path / "memories", tmp_path / "outside"
    outside.mkdir()
    add_note(root, "first", clock=CLOCK)
    notes = root / "extensions/ad_hoc"
    done = threading.Event()

    def swap() -> None:
        number = 0
        while not done.is_set():
            number += 1
            try:
                notes.rename(root / f".aside-{number}")
                notes.symlink_to(outside)
                notes.unlink()
            except OSError:  # the folder is made again each time
                continue

    swapper = threading.Thread(target=swap)
    swapper.start()
    refused = 0
    try:
        for number in range(5000):
            try:
                add_note(root, f"note {number}", clock=CLOCK)
            except RecallError:
                refused += 1
            if number > 50 and refused > 5:
                break
    finally:
        done.set()
        swapper.join()
    assert refused, "the link was never met: the test shows nothing"
    assert not list(outside.rglob("*"))


@pytest.mark.parametrize(
    ("path", "scope"),
    [
        (None, "root"),
        ("MEMORY.md", "memory_md"),
        ("./memory_summary.md", "memory_summary"),
        ("raw_memories.md", "raw_memories"),
        ("rollout_summaries/a.md", "rollout_summaries"),
        ("skills", "skills"),
        ("extensions/ad_hoc/notes/a.md", "ad_hoc_notes"),
        ("extensions/ad_hoc", "other"),
        ("../x", "other"),
    ],
)
def test_the_metric_says_what_part_of_the_memory_was_asked_for(path: str | None, scope: str) -> None:
    assert scope_of("list", path) == scope


def test_a_search_of_everything_has_a_scope_of_its_own() -> None:
    assert scope_of("search", None) == "all"
