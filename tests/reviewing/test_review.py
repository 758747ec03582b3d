"""A result that a person should see first waits beside the memory folder, and comes into it only when they say so."""

from __future__ import annotations

import json
import shutil
import stat
import sys
from pathlib import Path

import anyio
import msgspec
import pytest

from stillroom.cli.app import run_command
from stillroom.clock import FixedClock
from stillroom.config import Memories, Settings, Source, StageTwo
from stillroom.consolidate.outcome import Consolidated, HeldForReview, NoChanges, Phase2Report, Skipped
from stillroom.errors import WorkspaceError
from stillroom.pipeline import Options, run_pipeline
from stillroom.release import VERSION
from stillroom.reviewing.deciding import edit, reject
from stillroom.reviewing.showing import held_review
from stillroom.testing import SAMPLE_MEMORY, CallTool, LoopbackModel, Reply, Say

CODEX_HOME = Path(__file__).parents[2] / "examples" / "codex-home"
DAY_AFTER = 1_796_029_200_000  # 2026-11-30T09:00:00Z
HELD = Skipped(status="skipped_held_for_review")


class House:
    """A home whose consolidations wait for a person."""

    def __init__(self, tmp_path: Path, *, review: str = "always") -> None:
        self.clock = FixedClock(DAY_AFTER)
        self.home, self.root = tmp_path / "home", tmp_path / "home" / "memories"
        self.codex = Path(shutil.copytree(CODEX_HOME, tmp_path / "codex"))
        self.home.mkdir()
        (self.home / "config.toml").write_text(
            f'[memories]\nreview = "{review}"\n[[sources]]\nformat = "codex"\nroot = "{self.codex}"\n'
        )
        self.settings = Settings(
            home=self.home,
            memories=Memories(review=review),
            sources=(Source(format="codex", root=str(self.codex)),),
        )

    def run(self, *, hours: int = 0, **options: object) -> Phase2Report | None:
        self.clock.advance(seconds=3600 * hours)
        options = {"backfill": True, **options}

        async def go() -> Phase2Report | None:
            report = await run_pipeline(self.settings, options=Options(**options), clock=self.clock)
            return report.consolidate

        return anyio.run(go)

    def review(self, *words: str) -> int:
        return run_command(["review", "--home", str(self.home), *words])

    def files(self) -> dict[str, str]:
        found = (p for p in sorted(self.root.rglob("*")) if p.is_file() and p.parent.name != "ad_hoc")
        return {str(p.relative_to(self.root)): p.read_text(encoding="utf-8") for p in found}


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_a_held_result_leaves_the_folder_alone_until_it_is_accepted(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    assert isinstance(house.run(), HeldForReview)
    assert house.files() == {}
    review = house.home / "review"
    assert stat.S_IMODE(review.stat().st_mode) == 0o700
    # No pass spends on it again.
    assert house.run(hours=8) == HELD
    capsys.readouterr()
    assert run_command(["status", "--home", str(house.home), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["consolidation"]["state"] == "held"
    assert house.review() == 0
    shown = capsys.readouterr()
    assert "+++ b/MEMORY.md" in shown.out
    assert "biome" in shown.out
    assert "--accept" in shown.err
    assert house.review("--accept") == 0
    assert "biome" in house.files()["MEMORY.md"]
    assert not (review / "held").exists()
    capsys.readouterr()
    assert run_command(["why", "biome", "--home", str(house.home), "--json"]) == 0
    origin = json.loads(capsys.readouterr().out)["lines"][0]["origin"]
    assert (origin["by"], origin["engine"], origin["release"]) == ("consolidation", "offline", VERSION)
    assert origin["run"].startswith(f"{DAY_AFTER // 1000}-")
    assert "a person reviewed it" in origin["note"]
    # What is there now is what a pass without a review would have made.
    assert isinstance(house.run(hours=8), NoChanges)
    assert house.review("--accept") == 1
    assert "nothing waits for you" in capsys.readouterr().err


def test_what_came_meanwhile_is_consolidated_after_the_decision(house: House) -> None:
    assert isinstance(house.run(max_threads=3), HeldForReview)
    assert house.run(hours=8) == HELD  # four more were extracted
    assert house.review("--accept") == 0
    first = house.files()["MEMORY.md"]
    assert isinstance(house.run(hours=8), HeldForReview)
    assert house.review("--accept") == 0
    assert len(house.files()["MEMORY.md"]) > len(first)


def test_rejected_the_same_sessions_are_not_made_into_the_same_again(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    house.run(max_threads=3)
    assert house.review("--reject", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"held": None, "withheld": [], "accepted": None, "rejected": True}
    assert house.run(hours=8, max_threads=0) == Skipped(status="skipped_rejected")
    assert "MEMORY.md" not in house.files()
    assert isinstance(house.run(hours=8), HeldForReview)  # there is more to learn now


def test_a_persons_edit_since_then_is_theirs(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    house.run(max_threads=3)
    house.review("--accept")
    house.run(hours=8)
    mine = house.root / "MEMORY.md"
    mine.write_text(mine.read_text(encoding="utf-8") + "- Mine: ship on Tuesdays.\n", encoding="utf-8")
    capsys.readouterr()
    assert house.review("--accept", "--json") == 0
    assert json.loads(capsys.readouterr().out)["accepted"]["kept_for_user"] == ["MEMORY.md"]
    assert "ship on Tuesdays" in mine.read_text(encoding="utf-8")
    assert isinstance(house.run(hours=8), HeldForReview)  # which takes the edit up
    assert house.review("--accept") == 0
    assert "ship on Tuesdays" in mine.read_text(encoding="utf-8")


def test_an_edited_result_is_judged_again(
    house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    house.run()
    editor = tmp_path / "editor.py"

    def edits(code: str) -> None:
        editor.write_text(f"import sys, pathlib\nfor name in sys.argv[1:]:\n    p = pathlib.Path(name)\n    {code}\n")
        monkeypatch.setenv("EDITOR", f"{sys.executable} {editor}")

    edits("p.write_text(p.read_text() + '\\n[... rest unchanged ...]\\n')")
    assert house.review("--edit") == 0
    assert "a placeholder stands for text" in capsys.readouterr().err
    assert house.review("--accept") == 1  # what may never be in the folder
    assert house.files() == {}
    edits("p.write_text(p.read_text().replace('[... rest unchanged ...]', '').replace('biome', 'BIOME'))")
    assert house.review("--edit") == 0
    assert house.review("--accept") == 0
    assert "BIOME" in house.files()["MEMORY.md"]


def test_what_was_made_for_a_folder_that_went_on_is_not_accepted(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    house.run(max_threads=3)
    house.review("--accept")
    assert isinstance(house.run(hours=8), HeldForReview)
    assert run_command(["undo", "--home", str(house.home), "--yes"]) == 0
    assert house.review("--accept") == 1
    assert "the memory went on" in capsys.readouterr().err


def test_forgetting_leaves_nothing_in_what_is_held(house: House) -> None:
    house.run()
    assert run_command(["forget", "--home", str(house.home), "--match", "biome", "--yes"]) == 0
    assert not (house.home / "review").exists()


def test_an_empty_home_has_nothing_to_review(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in ((), ("--json",)):
        assert run_command(["review", "--home", str(tmp_path / "nowhere"), *words]) == 0
    assert run_command(["review", "--home", str(tmp_path / "nowhere"), "--reject"]) == 1
    assert run_command(["review", "--accept", "--reject"]) == 2
    capsys.readouterr()


HANDBOOK = "# Task Group: app\n\nscope: app\napplies_to: cwd=/app; reuse_rule=safe\n\n"
TASK = "## Task 1: t\n\n### rollout_summary_files\n\n- rollout_summaries/$f (cwd=/app)\n\n### keywords\n\n- app\n"


def writes(handbook: str) -> CallTool:
    script = (
        f"f=$(ls rollout_summaries | head -1)\ncat > MEMORY.md <<END\n{handbook}END\n"
        "printf 'v1\\n\\n## User Profile\\n\\n- x\\n' > memory_summary.md\n"
    )
    return CallTool("shell", {"command": script})


def test_a_model_is_not_shown_the_record_of_generated_lines_and_leaves_none(tmp_path: Path) -> None:
    house = House(tmp_path, review="never")
    house.run(max_threads=3)
    assert ".stillroom-lines" in house.files()
    said: list[str] = []
    turns = [
        CallTool("shell", {"command": "ls -a; cat .stillroom-lines phase2*"}),
        writes(HANDBOOK + TASK),
        Say("done"),
    ]

    def script(request: object) -> Reply:
        said.append(json.dumps(request.json))  # type: ignore[attr-defined]
        return turns.pop(0) if len(turns) > 1 else turns[0]

    with LoopbackModel(script) as server:
        memories = msgspec.structs.replace(house.settings.memories, consolidation_model="loopback:m")
        providers = {"loopback": server.provider()}
        house.settings = msgspec.structs.replace(house.settings, memories=memories, providers=providers)
        report = house.run(hours=8)
    assert isinstance(report, Consolidated) and report.fallback_reason is None, report
    assert "raw_memories.md" in said[1] and "Lines by Stillroom" not in "".join(said)
    assert ".stillroom-lines" not in house.files() and not [each for each in report.deleted if "lines" in each]


@pytest.mark.parametrize(
    ("added", "rule"),
    [
        ("", None),
        ("\n## Reusable knowledge\n\n- look at skills/none/SKILL.md [Task 1]\n", "reference"),
        ("\n## Reusable knowledge\n\n- deploy with helmfile-sync-9 [Task 1]\n", "evidence"),
        ("\n## Reusable knowledge\n\n- always run deploy_everything first [Task 1]\n", "instruction"),
        ("\n## Reusable knowledge\n\n[... rest of the file unchanged ...]\n", "elision"),
        ("\n## Reusable knowledge\n\n- token ghp_a1B2c3D4e5a1B2c3D4e5a1B2c3D4e5f6G7h8 [Task 1]\n", "secret"),
    ],
)
def test_only_what_has_warnings_waits(tmp_path: Path, added: str, rule: str | None) -> None:
    house = House(tmp_path, review="warnings")
    turns = [writes(HANDBOOK + TASK + added), Say("done")]

    def script(request: object) -> Reply:
        if not request.json.get("tools"):  # type: ignore[attr-defined]
            return Say(SAMPLE_MEMORY)
        return turns.pop(0) if len(turns) > 1 else turns[0]

    with LoopbackModel(script) as server:
        memories = msgspec.structs.replace(
            house.settings.memories, extract_model="loopback:m", consolidation_model="loopback:m"
        )
        house.settings = msgspec.structs.replace(
            house.settings,
            memories=memories,
            providers={"loopback": server.provider()},
            stage_two=StageTwo(max_corrections=0),
        )
        report = house.run()
    if rule is None:
        assert isinstance(report, Consolidated), report
        return
    assert isinstance(report, HeldForReview), report
    assert any(f"[{rule}]" in warning for warning in report.warnings)
    assert house.files() == {}
    before = held_review(house.settings)
    edit(house.settings, lambda files: None)
    after = held_review(house.settings)
    assert before is not None and after is not None
    assert {each.rule for each in after.findings} == {each.rule for each in before.findings} - {"secret"}  # it is out


def test_the_record_of_generated_lines_is_not_shown(tmp_path: Path) -> None:
    house = House(tmp_path, review="always")
    house.run()
    found = held_review(house.settings)
    assert found is not None
    assert "+# Task Group: " in found.diff
    assert "Lines by Stillroom" not in found.diff and "handbook: " not in found.diff
    opened: list[Path] = []
    edit(house.settings, opened.extend)
    assert sorted(path.name for path in opened) == ["MEMORY.md", "memory_summary.md"]
    assert house.review("--accept") == 0
    assert "handbook: " in house.files()[".stillroom-lines"]


def test_a_decision_while_a_person_edits_is_not_taken_back(house: House) -> None:
    house.run()
    with pytest.raises(WorkspaceError, match="meanwhile"):
        edit(house.settings, lambda files: reject(house.settings))
    assert held_review(house.settings) is None
