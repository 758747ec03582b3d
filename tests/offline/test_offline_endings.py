"""What a memory says of how a failure ended: nothing that the session did not show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.offline import talk
from tests.offline.talk import patch, run, user

_FAILED = "FAIL: test_split (tests.test_money.T.test_split)\nAssertionError: 9.99 != 10.00\nFAILED (failures=1)\n"


ASKED = user("the split test fails, please fix it")
BROKEN = run("make test", _FAILED, 2)
MENDED = patch("money.py", "-share = total / n\n+share = (total / n).quantize(CENT)")


def test_the_same_tests_by_another_command_solve_a_failure() -> None:
    memory = talk.memory(ASKED, BROKEN, MENDED, run("python3 -m unittest -q", "Ran 2 tests\n\nOK\n", 0))
    assert "what worked: `python3 -m unittest -q`" in memory
    assert "still failing" not in memory


def test_other_tests_solve_nothing() -> None:
    memory = talk.memory(ASKED, BROKEN, MENDED, BROKEN, run("pytest tests/test_colour.py", "1 passed\n", 0))
    assert "what worked" not in memory


def test_a_wish_is_no_word_on_the_failure_before_it() -> None:
    wish = user("In future always run the tests with -q, I don't want the full log of test_split.")
    memory = talk.memory(ASKED, BROKEN, BROKEN, wish, run("ls", "money.py", 0))
    assert '| the user: "' not in memory


def test_a_check_that_failed_last_is_still_failing() -> None:
    assert "still failing when the session ended" in talk.memory(ASKED, BROKEN, MENDED, BROKEN)


def test_an_edit_after_the_last_run_leaves_it_open() -> None:
    memory = talk.memory(ASKED, BROKEN, BROKEN, MENDED)
    assert "no later run seen" in memory
    assert "still failing" not in memory


def test_asking_for_a_tool_that_is_absent_is_no_failure() -> None:
    asked = run("npx --no-install eslint --version", "npm error npx canceled due to missing packages", 1)
    memory = talk.memory(user("we always use biome here, not eslint, remember that"), asked, asked)
    assert "biome" in memory
    assert "failed" not in memory


def test_shouted_words_and_abbreviations_are_no_keywords() -> None:
    memory = talk.memory(ASKED, BROKEN, MENDED, user("Always say YES to money.py, i.e. never NO."), BROKEN)
    keywords = next(line for line in memory.splitlines() if line.startswith("keywords:"))
    assert not {"FAIL", "YES", "i.e"} & {word.strip() for word in keywords.removeprefix("keywords:").split(",")}


@pytest.mark.parametrize("undo", ["git checkout -- money.py", "git restore money.py", "git checkout ."])
def test_a_wish_whose_work_was_thrown_away_is_not_kept(undo: str) -> None:
    memory = talk.memory(
        ASKED,
        run("make test", "OK", 0),
        user("I prefer a cache for the rates"),
        patch("money.py", "+CACHE = {}"),
        user("hm, that is ugly"),
        run(undo, "", 0),
        user("the README is always written in German"),
        run("make test", "OK", 0),
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
    asked = user("rotate [REDACTED_SECRET:aws_secret_key] and [REDACTED_SECRET] in money.py, the build prints them")
    memory = talk.memory(asked, BROKEN, MENDED, user("Always read both from the environment."), BROKEN)
    keywords = next(line for line in memory.splitlines() if line.startswith("keywords:"))
    assert "REDACTED" not in keywords and "aws_secret_key" not in keywords
