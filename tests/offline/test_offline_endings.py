"""What a memory says of how a failure ended: nothing that the session did not show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stillroom.offline import distil
from stillroom.rollouts.events import Edit, Ran, Said
from stillroom.thread import Thread

_FAILED = "FAIL: test_split (tests.test_money.T.test_split)\nAssertionError: 9.99 != 10.00\nFAILED (failures=1)\n"


def _memory(*events: Said | Ran) -> str:
    thread = Thread(
        thread_id="t", agent="codex", rollout_path="/r", source="cli", cwd="/w", created_at_ms=0, updated_at_ms=0
    )
    draft = distil(thread, events)
    return draft.raw_memory if draft else ""


def _user(text: str) -> Said:
    return Said(who="user", text=text)


def _run(command: str, output: str, code: int) -> Ran:
    return Ran(tool="shell", command=command, output=output, exit_code=code, ok=code == 0)


def _patch(path: str, diff: str) -> Ran:
    return Ran(tool="apply_patch", ok=True, edits=(Edit(path=path, action="update", diff=diff),))


ASKED = _user("the split test fails, please fix it")
BROKEN = _run("make test", _FAILED, 2)
MENDED = _patch("money.py", "-share = total / n\n+share = (total / n).quantize(CENT)")


def test_the_same_tests_by_another_command_solve_a_failure() -> None:
    memory = _memory(ASKED, BROKEN, MENDED, _run("python3 -m unittest -q", "Ran 2 tests\n\nOK\n", 0))
    assert "what worked: `python3 -m unittest -q`" in memory
    assert "still failing" not in memory


def test_other_tests_solve_nothing() -> None:
    memory = _memory(ASKED, BROKEN, MENDED, BROKEN, _run("pytest tests/test_colour.py", "1 passed\n", 0))
    assert "what worked" not in memory


def test_a_wish_is_no_word_on_the_failure_before_it() -> None:
    wish = _user("In future always run the tests with -q, I don't want the full log of test_split.")
    memory = _memory(ASKED, BROKEN, BROKEN, wish, _run("ls", "money.py", 0))
    assert '| the user: "' not in memory


def test_a_check_that_failed_last_is_still_failing() -> None:
    assert "still failing when the session ended" in _memory(ASKED, BROKEN, MENDED, BROKEN)


def test_an_edit_after_the_last_run_leaves_it_open() -> None:
    memory = _memory(ASKED, BROKEN, BROKEN, MENDED)
    assert "no later run seen" in memory
    assert "still failing" not in memory


def test_asking_for_a_tool_that_is_absent_is_no_failure() -> None:
    asked = _run("npx --no-install eslint --version", "npm error npx canceled due to missing packages", 1)
    memory = _memory(_user("we always use biome here, not eslint, remember that"), asked, asked)
    assert "biome" in memory
    assert "failed" not in memory


def test_shouted_words_and_abbreviations_are_no_keywords() -> None:
    memory = _memory(ASKED, BROKEN, MENDED, _user("Always say YES to money.py, i.e. never NO."), BROKEN)
    keywords = next(line for line in memory.splitlines() if line.startswith("keywords:"))
    assert not {"FAIL", "YES", "i.e"} & {word.strip() for word in keywords.removeprefix("keywords:").split(",")}


@pytest.mark.parametrize("undo", ["git checkout -- money.py", "git restore money.py", "git checkout ."])
def test_a_wish_whose_work_was_thrown_away_is_not_kept(undo: str) -> None:
    memory = _memory(
        ASKED,
        _run("make test", "OK", 0),
        _user("I prefer a cache for the rates"),
        _patch("money.py", "+CACHE = {}"),
        _user("hm, that is ugly"),
        _run(undo, "", 0),
        _user("the README is always written in German"),
        _run("make test", "OK", 0),
    )
    assert "German" in memory
    assert 'asked: "I prefer a cache' not in memory


def test_importing_the_room_compiles_no_pattern_of_it() -> None:
    code = (
        "import re, sys\n"
        "import stillroom.config, stillroom.store, stillroom.rollouts.events, stillroom.rollouts.redact\n"
        "made = []\nreal = re.compile\n"
        "re.compile = lambda *a, **k: made.append(sys._getframe(1).f_globals['__name__']) or real(*a, **k)\n"
        "import stillroom.offline\n"
        "print([name for name in made if name.startswith('stillroom.offline')])\n"
    )
    source = Path(__file__).parents[2] / "src"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(source)}, capture_output=True, timeout=60, check=True
    )
    assert done.stdout.decode().strip() == "[]"


def test_what_stands_for_a_secret_is_no_keyword() -> None:
    asked = _user("rotate [REDACTED_SECRET:aws_secret_key] and [REDACTED_SECRET] in money.py, the build prints them")
    memory = _memory(asked, BROKEN, MENDED, _user("Always read both from the environment."), BROKEN)
    keywords = next(line for line in memory.splitlines() if line.startswith("keywords:"))
    assert "REDACTED" not in keywords and "aws_secret_key" not in keywords
