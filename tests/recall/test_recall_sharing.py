"""A patch for AGENTS.md: what git makes of it is the file and the wishes, and nothing is written before."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from stillroom.cli.app import run_command
from stillroom.config import Settings
from stillroom.errors import InvalidRequest, Unreadable
from stillroom.recall.injection.sharing import propose

WISHES = [
    'the user asked: "Always use pnpm here, not npm." -> default in shop',
    'after running `make test`, the user corrected: "No, say "please" (always)." -> do so from the start in shop',
    'the user decided: "768Mi it is" (now `memory: 768Mi` in `a.yaml`) -> decided; holds unless told otherwise',
    "prefers small commits -> default in shop",
    'the user asked: "Always use PNPM here,   not npm" -> default in shop',
]
RULES = ("Always use pnpm here, not npm.", 'No, say "please" (always).', "prefers small commits")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = Settings(home=tmp_path / "home")
    settings.root.mkdir(parents=True)
    rows = "".join(f"- {wish} [Task 1]\n" for wish in WISHES)
    other = '- the user asked: "something else" [Task 1]\n'
    (settings.root / "MEMORY.md").write_text(
        f"# Task Group: shop\n\napplies_to: cwd={tmp_path / 'shop'}; x\n\n## User preferences\n\n{rows}\n"
        f"# Task Group: api\n\napplies_to: cwd={tmp_path / 'api'}; x\n\n## User preferences\n\n{other}",
        encoding="utf-8",
    )
    (tmp_path / "shop").mkdir()
    return settings


def _applied(folder: Path, patch: str) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "apply", "--whitespace=nowarn", "-"]
    subprocess.run(command, cwd=folder, env=environment, input=patch.encode(), timeout=30, check=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, "## Learnt in earlier sessions\n\n- {}\n- {}\n- {}\n"),
        ("# Rules", "# Rules\n\n## Learnt in earlier sessions\n\n- {}\n- {}\n- {}\n"),
        (
            "# Rules\r\n\r\n- a\r\n",
            "# Rules\r\n\r\n- a\r\n\r\n## Learnt in earlier sessions\r\n\r\n- {}\r\n- {}\r\n- {}\r\n",
        ),
        (
            "## Learnt in earlier sessions\n\n- old\n\n## More\n\n- b\n",
            "## Learnt in earlier sessions\n\n- old\n- {}\n- {}\n- {}\n\n## More\n\n- b\n",
        ),
        ("## Learnt in earlier sessions", "## Learnt in earlier sessions\n\n- {}\n- {}\n- {}\n"),
    ],
)
def test_git_adds_the_wishes_and_keeps_the_rest(
    settings: Settings, tmp_path: Path, before: str | None, after: str
) -> None:
    rules = tmp_path / "shop" / "AGENTS.md"
    if before is not None:
        rules.write_bytes(before.encode())
    found = propose(settings, tmp_path / "shop")
    assert (found.file, found.rules) == ("AGENTS.md", RULES)
    assert rules.exists() is (before is not None)
    _applied(tmp_path / "shop", found.patch)
    assert rules.read_bytes() == after.format(*RULES).encode()
    again = propose(settings, tmp_path / "shop")
    assert (again.rules, again.patch) == ((), "")


def test_what_the_file_says_in_its_own_lines_is_not_proposed(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "shop" / "CLAUDE.md").write_text("- always use\n  pnpm here, not NPM\n- Prefers small commits.\n")
    found = propose(settings, tmp_path / "shop")
    assert (found.file, found.rules) == ("CLAUDE.md", RULES[1:2])


def test_files_elsewhere_or_that_are_no_text_are_refused(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "shop" / "AGENTS.md").write_bytes(b"\xff\xfe")
    with pytest.raises(Unreadable, match="UTF-8"):
        propose(settings, tmp_path / "shop")
    with pytest.raises(InvalidRequest, match="not in the project"):
        propose(settings, tmp_path / "shop", file="/etc/passwd")


def test_the_command_prints_the_patch_and_says_what_to_do(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STILLROOM_HOME", str(settings.home))
    assert run_command(["share", "--cwd", str(tmp_path / "shop")]) == 0
    shown = capsys.readouterr()
    assert shown.out == propose(settings, tmp_path / "shop").patch
    assert "adds 3 lines" in shown.err
    assert run_command(["share", "--cwd", str(tmp_path)]) == 0
    assert capsys.readouterr().out == ""
