"""What a session is given of `MEMORY.md` and of the notes: its project's task groups whole, and nothing twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stillroom.clock import FixedClock
from stillroom.config import Memories, Settings
from stillroom.errors import InvalidRequest
from stillroom.recall.browse.notes import add_note
from stillroom.recall.injection.handbook import read_groups
from stillroom.recall.injection.instructions import (
    Instructions,
    Nothing,
    Stale,
    compose,
    fast_instructions,
    instructions,
)
from stillroom.recall.injection.prepared import FILE, Prepared, save
from stillroom.recall.injection.preparing import make_ready
from stillroom.recall.injection.scopes import KnownFolder
from stillroom.recall.projects.repository import Repository

CLOCK = FixedClock(1_800_000_000_000)
SUMMARY = """v1

## User preferences

- answers in English
- the user said: "use pnpm, never npm, and say so in the README" (in shop)

## General Tips

- none yet
"""
GROUP = """# Task Group: {title}

scope: work in {cwd}
applies_to: cwd={cwd}; reuse_rule=safe here

## Task 1: fix the cart (success)

### rollout_summary_files

- rollout_summaries/a.md (cwd={cwd}, rollout_path=/r/a.jsonl, updated_at=2026-11-02T10:00:00Z, thread_id=thread-a)

### keywords

- cart, totals

## User preferences

{wishes}
## Reusable knowledge

- totals are cents [Task 1]
- `make` works here (passed, 3 times) [Task 1]

## Failures and how to do differently

- Run `uv sync` when `make` fails with "No module named x" [Task 1]

"""


def group(base: Path, name: str, wishes: list[str], *, title: str | None = None) -> str:
    rows = "".join(f"- {wish} [Task 1][Task 12]\n" for wish in wishes)
    return GROUP.format(title=title or name, cwd=base / name, wishes=rows)


class House:
    """A memory folder, and folders without git in which sessions ran."""

    def __init__(self, base: Path, *, tokens: int = 2500) -> None:
        self.base = base
        self.settings = Settings(home=base / "home", memories=Memories(summary_token_limit=tokens))
        self.settings.root.mkdir(parents=True)
        self.write("memory_summary.md", SUMMARY)

    def write(self, name: str, text: str) -> None:
        (self.settings.root / name).write_text(text, encoding="utf-8")

    def note(self, name: str, text: str) -> None:
        folder = self.settings.root / "extensions/ad_hoc/notes"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")

    def ready(self, *folders: str) -> Prepared:
        known = [str(self.base / name) for name in folders or ("shop", "api")]
        return make_ready(
            self.settings, [KnownFolder(cwd, Repository(place=cwd, folder=cwd, is_git=False)) for cwd in known]
        )

    def given(self, folder: str, ready: Prepared | None = None) -> Instructions:
        found = compose(ready or self.ready(), home=str(self.settings.home), cwd=str(self.base / folder))
        assert isinstance(found, Instructions)
        return found

    def rows(self, folder: str, ready: Prepared | None = None) -> list[str]:
        """The headings and statements that a session there is given."""
        text = self.given(folder, ready).text.partition("</oai-mem-citation>\n\n")[2].rpartition("\n\n")[0]
        return [row for row in text.split("\n") if row]

    def told(self, folder: str, ready: Prepared | None = None) -> tuple[list[str], str]:
        """The statements, and the receipt."""
        rows = self.rows(folder, ready)
        return [row for row in rows if not row.startswith("## ")], self.given(folder, ready).receipt


def test_a_projects_task_group_is_given_whole_and_every_part_says_its_lines(tmp_path: Path) -> None:
    house = House(tmp_path)
    wishes = ['the user said: "tabs"', 'the user said: "ask me\n  first"']
    house.write("MEMORY.md", group(tmp_path, "shop", ["of the shop"]) + group(tmp_path, "api", wishes))
    assert house.rows("api") == [
        "## User preferences (MEMORY.md:46-48)",
        '- the user said: "tabs"',
        '- the user said: "ask me',
        '  first"',
        "## User preferences, every project (memory_summary.md:5-5)",
        "- answers in English",
        "## Failures and how to do differently (MEMORY.md:57-57)",
        '- Run `uv sync` when `make` fails with "No module named x"',
        "## Reusable knowledge (MEMORY.md:52-52)",
        "- totals are cents",
        "## Commands that work (MEMORY.md:53-53)",
        "- `make` works here (passed, 3 times)",
        "## Tasks (MEMORY.md:34-42)",
        "- Task 1: fix the cart (success) [34-42; thread_id thread-a]: cart, totals",
    ]
    text = (house.settings.root / "MEMORY.md").read_text(encoding="utf-8").split("\n")
    assert text[46 - 1].startswith('- the user said: "tabs"') and text[53 - 1].startswith("- `make` works here")
    assert house.given("api").receipt == "Left out: the memory of 1 other project."


def test_references_to_tasks_stay_where_there_are_several(tmp_path: Path) -> None:
    house = House(tmp_path)
    text = group(tmp_path, "shop", ["a wish"])
    house.write("MEMORY.md", text.replace("## User pref", "## Task 2: more (success)\n\n## User pref"))
    assert "- a wish [Task 1][Task 12]" in house.told("shop")[0]


def test_what_a_person_or_a_model_writes_into_a_group_is_given_with_it(tmp_path: Path) -> None:
    house = House(tmp_path)
    own = (
        "## Deploys\n\nOn Tuesdays,\nby hand.\n\n```sh\n# no heading\n\nmake deploy\n```\n\n"
        "<!-- Lines by Stillroom\nhandbook: 0a 1b\n-->\n<!-- for me alone -->\n"
    )
    house.write("MEMORY.md", group(tmp_path, "shop", []) + own + "# Else\n\n- of nobody\n")
    rows = house.rows("shop")
    at = rows.index("## Deploys (MEMORY.md:30-37)")
    assert rows[at + 1 : at + 7] == ["On Tuesdays,", "by hand.", "```sh", "# no heading", "make deploy", "```"]
    assert not [row for row in rows if "nobody" in row or "handbook:" in row or "alone" in row]


def test_what_the_summary_says_again_is_given_once(tmp_path: Path) -> None:
    house = House(tmp_path)
    wishes = ['the user said: "use pnpm, never npm, and say so in the README"', "answers in English", "a new one"]
    house.write("MEMORY.md", group(tmp_path, "shop", [*wishes, "a new one"]))
    index = f"\n## What's in Memory\n\n### shop\n\n- cart: totals\n  - desc: x; cwd={tmp_path / 'shop'}\n"
    house.write("memory_summary.md", SUMMARY + index)
    items, _ = house.told("shop")
    assert items[:3] == [f"- {wishes[0]}", "- a new one", "- answers in English"]
    assert len(items) == len(set(items)) == 7
    assert "- cart: totals" in house.told("shop", _only_summary(house))[0]


def _only_summary(house: House) -> Prepared:
    (house.settings.root / "MEMORY.md").unlink()
    return house.ready()


def test_what_has_no_room_is_named_in_the_receipt(tmp_path: Path) -> None:
    house = House(tmp_path, tokens=100)
    house.write("MEMORY.md", group(tmp_path, "shop", [f"wish number {number:03} of the shop" for number in range(30)]))
    items, receipt = house.told("shop")
    shown = len(items)
    assert items == [f"- wish number {number:03} of the shop" for number in range(shown)]
    assert 5 < shown < 30
    assert receipt.startswith(f"Left out: for want of room {32 - shown} preferences, 1 failure, 1 finding, 1 command")
    assert "tokens: MEMORY.md:6-56, memory_summary.md:5-6." in receipt


def test_checkouts_of_one_project_say_the_same_once(tmp_path: Path) -> None:
    house = House(tmp_path)
    here = Repository(place=str(tmp_path / ".git"), folder=str(tmp_path / "shop"))
    folders = [KnownFolder(str(tmp_path / name), here) for name in ("shop", "fix")]
    house.write("MEMORY.md", group(tmp_path, "shop", ["the same wish"]) + group(tmp_path, "fix", ["the same wish"]))
    items, receipt = house.told("shop", make_ready(house.settings, folders))
    assert items.count("- the same wish") == 1
    assert receipt == "Nothing was left out."


def test_a_name_of_the_handbook_is_never_taken_for_words(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.write("memory_summary.md", f"{SUMMARY}\n## More\n\n- 1 session is remembered (in gone)\n")
    assert "- 1 session is remembered (in gone)" in house.told("shop")[0]  # nothing says that it is a project
    house.write("MEMORY.md", group(tmp_path, "gone", []))
    assert "- 1 session is remembered (in gone)" not in house.told("shop")[0]
    assert "- 1 session is remembered (in gone)" in house.told("gone")[0]
    house.write("MEMORY.md", group(tmp_path, "one", [], title="shop") + group(tmp_path, "two", [], title="Shop"))
    assert any("use pnpm" in item for item in house.told("shop")[0])  # two have the name: it stays one


def test_an_edit_of_the_handbook_is_heeded_at_the_next_start(tmp_path: Path) -> None:
    house = House(tmp_path)
    home = str(house.settings.home)
    house.write("MEMORY.md", group(tmp_path, "shop", ["a wish", "another wish"]))
    save(home, house.ready())
    told = fast_instructions(home, None, str(tmp_path / "shop"))
    assert isinstance(told, Instructions) and "- another wish" in told.text
    house.write("MEMORY.md", group(tmp_path, "shop", ["a wish"]))
    assert isinstance(fast_instructions(home, None, str(tmp_path / "shop")), Stale)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe# Task Group: x\n", b"# Task Group: x\napplies_to: nothing\n"])
def test_a_handbook_that_says_nothing_adds_nothing(tmp_path: Path, content: bytes) -> None:
    house = House(tmp_path)
    (house.settings.root / "MEMORY.md").write_bytes(content)
    assert len(house.told("shop")[0]) == 2


def test_secrets_and_tags_do_not_get_through(tmp_path: Path) -> None:
    house = House(tmp_path)
    token = "ghp_" + "a8Kd93jXc72LmQpR5tVwYz1BnH4sUe6GfJ0i"
    house.write("MEMORY.md", group(tmp_path, "shop", [f"token {token}", "end </stillroom-memory> here"]))
    house.note("2026-11-02T10-00-00-x.md", f"the key is {token} </stillroom-memory>")
    items, _ = house.told("shop")
    assert items[:2] == ["- token [REDACTED_SECRET:github_token]", "- end ‹/stillroom-memory> here"]
    assert "- the key is [REDACTED_SECRET:github_token] ‹/stillroom-memory> (2026-11-02T10-00-00-x.md)" in items


def test_preferences_end_with_their_section() -> None:
    text = (
        "# Task Group: a\napplies_to: cwd=/a\n## User preferences\n- one [Task 1]\n\n- two\n## Reusable\n- no\n"
        "# Other heading\n## User preferences\n- no\n# Task Group: b\nscope: x\n## User preferences\n- nobody's\n"
    )
    assert [(found.title, found.folders, tuple(found.preferences)) for found in read_groups(text)] == [
        ("a", ("/a",), ("one", "two"))
    ]


def test_a_note_is_given_from_the_moment_it_is_written(tmp_path: Path) -> None:
    house = House(tmp_path)
    home, shop = str(house.settings.home), str(tmp_path / "shop")
    save(home, house.ready())
    assert isinstance(fast_instructions(home, None, shop), Instructions)
    note = add_note(house.settings.root, "Deploys on Tuesdays.", clock=CLOCK)
    assert isinstance(fast_instructions(home, None, shop), Stale)
    given = instructions(house.settings, shop)
    assert isinstance(given, Instructions)
    name = Path(note.path).name
    assert f"## Notes, every project (extensions/ad_hoc/notes/)\n- Deploys on Tuesdays. ({name})" in given.text
    assert isinstance(again := fast_instructions(home, None, shop), Instructions)
    assert again.text == given.text
    (house.settings.root / note.path).unlink()
    assert isinstance(fast_instructions(home, None, shop), Stale)


def test_a_home_with_a_note_alone_gives_it(tmp_path: Path) -> None:
    house = House(tmp_path)
    (house.settings.root / "memory_summary.md").unlink()
    assert isinstance(fast_instructions(str(house.settings.home), None, str(tmp_path)), Nothing)
    add_note(house.settings.root, "- answer in Dutch\n- tests first", clock=CLOCK)
    assert [item.partition(" (")[0] for item in house.told("shop")[0]] == ["- answer in Dutch", "- tests first"]


@pytest.mark.parametrize(
    "label", ["in my shop ({}): Deploys\non Tuesdays", "in my shop ({}): Deploys\n\n- on Tuesdays"]
)
def test_all_of_a_note_for_one_project_is_given_there_alone(tmp_path: Path, label: str) -> None:
    house = House(tmp_path)
    shop = tmp_path / "my shop"
    house.note("2026-11-02T10-00-00-x.md", label.format(shop))
    assert any("Tuesdays" in item for item in house.told("my shop", house.ready("shop", "my shop"))[0])
    for known in (("shop", "my shop"), ("shop",)):
        assert not any("Tuesdays" in item for item in house.told("shop", house.ready(*known))[0])


POINTING = ["In this repo: tabs.", "in this repo: tabs", "hier nie npm", "このリポジトリでは pnpm", "- ok\n- not here"]


@pytest.mark.parametrize("text", POINTING)
def test_a_note_that_points_without_saying_where_is_given_in_the_only_project_or_nowhere(
    tmp_path: Path, text: str
) -> None:
    house = House(tmp_path)
    house.note("2026-11-02T10-00-00-x.md", text)
    assert "## Notes" not in house.given("shop").text
    assert "## Notes (" in house.given("shop", house.ready("shop")).text
    assert "## Notes" not in house.given("api", house.ready("shop")).text


def test_a_line_of_the_summary_that_points_is_for_no_other_project_unless_it_is_labelled(tmp_path: Path) -> None:
    house = House(tmp_path)
    for line, given in (("use tabs here", False), ("use tabs here (in every project)", True), ("use tabs", True)):
        house.write("memory_summary.md", f"v1\n\n## User preferences\n\n- {line}\n- short answers\n")
        assert (f"- {line}" in house.told("shop")[0]) is given
    house.write("memory_summary.md", "v1\n\n## User preferences\n\n- use tabs here\n- short answers\n")
    assert "- use tabs here" in house.told("shop", house.ready("shop"))[0]
    assert "- use tabs here" not in house.told("api", house.ready("shop"))[0]


@pytest.mark.parametrize(
    "whose", ["every project", "cwd=all projects; reuse_rule=anywhere", "everywhere; reuse_rule=x"]
)
def test_a_group_for_all_projects_is_given_in_each(tmp_path: Path, whose: str) -> None:
    house = House(tmp_path)
    house.write("MEMORY.md", f"# Task Group: habits\n\napplies_to: {whose}\n\n## User preferences\n\n- tests first\n")
    assert "## User preferences, every project (MEMORY.md:7-7)" in house.rows("shop")


def test_links_among_the_notes_are_not_followed(tmp_path: Path) -> None:
    house = House(tmp_path)
    (tmp_path / "secret.md").write_text("outside", encoding="utf-8")
    house.note("2026-11-02T10-00-00-x.md", "inside")
    (house.settings.root / "extensions/ad_hoc/notes/y.md").symlink_to(tmp_path / "secret.md")
    assert [item for item in house.told("shop")[0] if "side" in item] == ["- inside (2026-11-02T10-00-00-x.md)"]


def test_a_note_in_a_long_path_is_given_in_its_project_alone_and_once(tmp_path: Path) -> None:
    tmp_path = tmp_path / ("deep" * 20) / ("down" * 20)
    tmp_path.mkdir(parents=True)
    house = House(tmp_path)
    (tmp_path / "my shop").mkdir()
    note = add_note(house.settings.root, "Deploys on Tuesdays (in the end)", cwd=tmp_path / "my shop", clock=CLOCK)
    assert note.text == f"in my shop ({tmp_path / 'my shop'}): Deploys on Tuesdays (in the end)"
    for line in (f"- {note.text} [ad-hoc note]", f"- {note.text[:-6]}… [ad-hoc note]"):
        house.write("memory_summary.md", f"{SUMMARY}\n## Notes\n\n{line}\n")
        items = house.told("my shop", house.ready("shop", "my shop"))[0]
        assert [item for item in items if "Tuesdays" in item] == [f"- {note.text} ({Path(note.path).name})"]
        for known in (("shop", "my shop"), ("shop",)):  # nothing was remembered there yet
            assert not any("Tuesdays" in item for item in house.told("shop", house.ready(*known))[0])
    with pytest.raises(InvalidRequest, match="colons"):
        add_note(house.settings.root, "x", cwd=tmp_path / "a:b", clock=CLOCK)


@pytest.mark.slow
@pytest.mark.parametrize("content", ['{"format"', '{"a": [1, ', "[1,]", '"', '{"a": "\\x"}', "", "{", "nul"])
def test_a_damaged_copy_is_none(tmp_path: Path, content: str) -> None:
    """In a process that has not loaded `json`, as a hook's has not: the scanner's own errors are in it."""
    (tmp_path / FILE).write_text(content, encoding="utf-8")
    code = f"from stillroom.recall.injection.prepared import load\nassert load({str(tmp_path)!r}) is None"
    source = str(Path(__file__).parents[2] / "src")
    subprocess.run([sys.executable, "-S", "-c", code], env={"PYTHONPATH": source}, timeout=60, check=True)
