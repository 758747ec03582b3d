"""What a session is told that only the handbook has, as the summary is one for all projects."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stillroom.clock import FixedClock
from stillroom.config import Memories, Recalling, Settings
from stillroom.errors import InvalidRequest
from stillroom.recall.browse.notes import add_note
from stillroom.recall.projects.repository import Repository
from stillroom.recall.telling.handbook import read_groups
from stillroom.recall.telling.instructions import Instructions, Stale, compose, fast_instructions
from stillroom.recall.telling.prepared import FILE, Prepared, save
from stillroom.recall.telling.preparing import make_ready
from stillroom.recall.telling.scopes import KnownFolder
from stillroom.recall.telling.standing import standing

CLOCK = FixedClock(1_800_000_000_000)
SUMMARY = """v1

## User Profile

- 9 sessions are remembered (in shop)

## User preferences

- answers in English
- the user asked: "use pnpm, never npm, and say so in the… (in shop)

## General Tips

- none yet
"""


def group(base: Path, name: str, wishes: list[str], *, title: str | None = None) -> str:
    rows = "".join(f"- {wish} [Task 1][Task 12]\n" for wish in wishes)
    return (
        f"# Task Group: {title or name}\n\nscope: work in {base / name}\n"
        f"applies_to: cwd={base / name}; reuse_rule=safe here\n\n## Task 1: a (success)\n\n### keywords\n\n- a, b\n\n"
        f"## User preferences\n\n{rows}\n## Reusable knowledge\n\n- `make` works here [Task 1]\n\n"
    )


class House:
    """A memory folder, and folders without git in which sessions ran."""

    def __init__(self, base: Path, *, tokens: int = 2500, recalling: Recalling | None = None) -> None:
        self.base = base
        self.settings = Settings(
            home=base / "home", memories=Memories(summary_token_limit=tokens), recalling=recalling or Recalling()
        )
        self.settings.root.mkdir(parents=True)
        self.write("memory_summary.md", SUMMARY)

    def write(self, name: str, text: str) -> None:
        (self.settings.root / name).write_text(text, encoding="utf-8")

    def ready(self, *folders: str) -> Prepared:
        known = [str(self.base / name) for name in folders or ("shop", "api")]
        return make_ready(
            self.settings, [KnownFolder(cwd, Repository(place=cwd, folder=cwd, is_git=False)) for cwd in known]
        )

    def told(self, folder: str, ready: Prepared | None = None) -> tuple[list[str], str]:
        """The items that a session there is told, and the receipt."""
        found = compose(ready or self.ready(), home=str(self.settings.home), cwd=str(self.base / folder))
        assert isinstance(found, Instructions)
        text = found.text.split("BEGINS =========\n")[1].split("\n========= MEMORY_SUMMARY ENDS")[0]
        return [row for row in text.split("\n") if row.startswith("- ")], found.receipt


def test_a_project_without_room_in_the_summary_is_told_its_wishes(tmp_path: Path) -> None:
    house = House(tmp_path)
    wishes = ['the user asked: "tabs" -> default in api', 'the user asked: "ask me\n  first" -> default in api: ask']
    house.write("MEMORY.md", group(tmp_path, "shop", ["a wish of the shop"]) + group(tmp_path, "api", wishes))
    items, receipt = house.told("api")
    assert items == ["- answers in English", '- the user asked: "tabs"', '- the user asked: "ask me first"']
    assert "2 lines of 2 other projects" not in receipt  # wishes of others are in nobody's summary
    assert "preference" not in receipt


def test_what_the_summary_says_is_not_said_again(tmp_path: Path) -> None:
    house = House(tmp_path)
    wishes = ['the user asked: "use pnpm, never npm, and say so in the README" -> default in shop', "a new one"]
    house.write("MEMORY.md", group(tmp_path, "shop", [*wishes, "a new one"]))
    items, _ = house.told("shop")
    assert [item for item in items if "pnpm" in item or "new" in item] == [
        '- the user asked: "use pnpm, never npm, and say so in the… (in shop)',
        "- a new one",
    ]


def test_the_summary_comes_first_and_the_receipt_counts_what_is_left(tmp_path: Path) -> None:
    house = House(tmp_path, tokens=100)
    house.write("MEMORY.md", group(tmp_path, "shop", [f"wish number {number:03} of the shop" for number in range(30)]))
    items, receipt = house.told("shop")
    assert items[:3] == [
        "- 9 sessions are remembered (in shop)",
        "- answers in English",
        '- the user asked: "use pnpm, never npm, and say so in the… (in shop)',
    ]
    shown = len(items) - 3
    assert 0 < shown < 30
    assert f"{30 - shown} preferences of this project that `MEMORY.md` has" in receipt
    assert "`stillroom read MEMORY.md`" in receipt


def test_what_was_not_made_ready_is_counted_too(tmp_path: Path) -> None:
    house = House(tmp_path, recalling=Recalling(max_wishes_bytes_of_project=100))
    house.write("MEMORY.md", group(tmp_path, "shop", [f"wish number {number:03} of the shop" for number in range(30)]))
    items, receipt = house.told("shop")
    assert len(items) == 3 + 3
    assert "27 preferences of this project" in receipt


def test_checkouts_that_wish_the_same_say_it_once(tmp_path: Path) -> None:
    house = House(tmp_path)
    here = Repository(place=str(tmp_path / ".git"), folder=str(tmp_path / "shop"))
    folders = [KnownFolder(str(tmp_path / name), here) for name in ("shop", "fix")]
    house.write("MEMORY.md", group(tmp_path, "shop", ["the same wish"]) + group(tmp_path, "fix", ["the same wish"]))
    ready = make_ready(house.settings, folders)
    items, receipt = house.told("shop", ready)
    assert items.count("- the same wish") == 1
    assert "preference" not in receipt


def test_a_name_of_the_handbook_is_never_taken_for_words(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.write("memory_summary.md", f"{SUMMARY}\n## More\n\n- 1 session is remembered (in gone)\n")
    assert "- 1 session is remembered (in gone)" in house.told("shop")[0]  # nothing says that it is a project
    house.write("MEMORY.md", group(tmp_path, "gone", []))
    assert "- 1 session is remembered (in gone)" not in house.told("shop")[0]
    assert "- 1 session is remembered (in gone)" in house.told("gone")[0]
    house.write("MEMORY.md", group(tmp_path, "one", [], title="shop") + group(tmp_path, "two", [], title="Shop"))
    assert "- 9 sessions are remembered (in shop)" in house.told("shop")[0]  # two have the name: it stays one


def test_an_edit_of_the_handbook_is_heeded_at_the_next_start(tmp_path: Path) -> None:
    house = House(tmp_path)
    home = str(house.settings.home)
    house.write("MEMORY.md", group(tmp_path, "shop", ["a wish", "another wish"]))
    save(home, house.ready())
    told = fast_instructions(home, None, str(tmp_path / "shop"))
    assert isinstance(told, Instructions) and "- another wish" in told.text
    house.write("MEMORY.md", group(tmp_path, "shop", ["a wish"]))
    assert isinstance(fast_instructions(home, None, str(tmp_path / "shop")), Stale)
    ready = house.ready()
    os.truncate(house.settings.root / "MEMORY.md", 0)
    holds = standing(ready, home)
    assert holds is not None
    items, receipt = house.told("shop", holds)
    assert items[-1].startswith('- the user asked: "use pnpm')
    assert "what was edited a moment ago" in receipt


@pytest.mark.parametrize("content", [b"", b"\xff\xfe# Task Group: x\n", b"# Task Group: x\napplies_to: nothing\n"])
def test_a_handbook_that_says_nothing_adds_nothing(tmp_path: Path, content: bytes) -> None:
    house = House(tmp_path)
    (house.settings.root / "MEMORY.md").write_bytes(content)
    assert len(house.told("shop")[0]) == 3


def test_secrets_and_tags_do_not_get_through(tmp_path: Path) -> None:
    house = House(tmp_path)
    token = "ghp_" + "a8Kd93jXc72LmQpR5tVwYz1BnH4sUe6GfJ0i"
    house.write("MEMORY.md", group(tmp_path, "shop", [f"token {token}", "end </stillroom-memory> here"]))
    items, _ = house.told("shop")
    assert items[-2:] == ["- token [REDACTED_SECRET:github_token]", "- end ‹/stillroom-memory> here"]


def test_wishes_end_with_their_section() -> None:
    text = (
        "# Task Group: a\napplies_to: cwd=/a\n## User preferences\n- one [Task 1]\n\n- two\n## Reusable\n- no\n"
        "# Other heading\n## User preferences\n- no\n# Task Group: b\nscope: x\n## User preferences\n- nobody's\n"
    )
    assert [(found.title, found.folders, found.wishes) for found in read_groups(text)] == [
        ("a", ("/a",), ("one", "two"))
    ]


def test_a_note_for_one_project_is_told_there_alone_however_it_is_cut(tmp_path: Path) -> None:
    tmp_path = tmp_path / ("deep" * 20) / ("down" * 20)
    tmp_path.mkdir(parents=True)
    house = House(tmp_path)
    (tmp_path / "my shop").mkdir()
    note = add_note(house.settings.root, "Deploys on Tuesdays (in the end)", cwd=tmp_path / "my shop", clock=CLOCK)
    assert note.text == f"in my shop ({tmp_path / 'my shop'}): Deploys on Tuesdays (in the end)"
    assert "deploys" in note.path and str(tmp_path.name) not in note.path
    for line in (f"- {note.text} [ad-hoc note]", f"- {note.text[:-6]}… [ad-hoc note]"):
        house.write("memory_summary.md", f"{SUMMARY}\n## Notes\n\n{line}\n")
        assert line in house.told("my shop", house.ready("shop", "my shop"))[0]
        assert line not in house.told("shop", house.ready("shop", "my shop"))[0]
        assert line not in house.told("shop", house.ready("shop"))[0]  # nothing was remembered there yet
    with pytest.raises(InvalidRequest, match="colons"):
        add_note(house.settings.root, "x", cwd=tmp_path / "a:b", clock=CLOCK)


@pytest.mark.slow
@pytest.mark.parametrize("content", ['{"format"', '{"a": [1, ', "[1,]", '"', '{"a": "\\x"}', "", "{", "nul"])
def test_a_damaged_copy_is_none(tmp_path: Path, content: str) -> None:
    """In a process that has not loaded `json`, as a hook's has not: the scanner's own errors are in it."""
    (tmp_path / FILE).write_text(content, encoding="utf-8")
    code = f"from stillroom.recall.telling.prepared import load\nassert load({str(tmp_path)!r}) is None"
    source = str(Path(__file__).parents[2] / "src")
    subprocess.run([sys.executable, "-S", "-c", code], env={"PYTHONPATH": source}, timeout=60, check=True)
