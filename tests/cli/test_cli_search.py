"""`stillroom search` in a home that a real pass filled."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stillroom.cli.app import run_command

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("filled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CODEX_HOME", str(PROJECT / "examples" / "codex-home"))
        assert run_command(["run", "--home", str(base / "home"), "--backfill", "--now", "2026-11-30T09:00:00Z"]) == 0
    return base / "home"


@pytest.fixture
def home(filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(filled, tmp_path / "home")
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_plain_words_find_the_best_pieces_with_where_to_read_them(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["search", "biome"]) == 0
    shown = capsys.readouterr()
    first, title = shown.out.splitlines()[:2]
    assert first.startswith("rollout_summaries/2026-11-29T12-16-15-")
    assert "/home/dev/work/shopfront" in first
    assert "npm test fails in shopfront" in title
    assert shown.err == ""
    assert run_command(["read", first.split()[0]]) == 0


def test_a_project_is_searched_alone(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["search", "test", "--cwd", "/home/dev/work/ledgerkit", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["hits"]
    assert {hit["cwd"] for hit in found["hits"]} == {"/home/dev/work/ledgerkit"}


def test_exact_search_prints_path_line_and_text(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["search", "M UNITTEST", "--path", "MEMORY.md"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("MEMORY.md:")
    assert "`python3 -m unittest -q` works here" in shown
    assert run_command(["search", "M UNITTEST", "--case-sensitive"]) == 0
    assert capsys.readouterr() == ("", "nothing found\n")
    assert run_command(["search", "scope", "applies_to", "--mode", "lines:2", "--limit", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["match_mode"] == {"type": "all_within_lines", "line_count": 2}
    assert (len(found["matches"]), found["next_cursor"]) == (1, "1")


def test_context_separates_matches(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["search", "split_evenly", "--mode", "any", "--path", "MEMORY.md", "--context", "1"]) == 0
    assert "\n--\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x", "--mode", "all"], "`--mode all` is not known"),
        (["x", "--mode", "lines:0"], "`--mode lines:0` is not known"),
        (["x", "--mode", "ranked", "--normalized"], "`--normalized` does not go with `--mode ranked`"),
        (["x", "--mode", "any", "--cwd", "."], "`--cwd` goes with a ranked search only"),
        ([], "parameter WORDS requires an argument"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    home: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["search", *words]) == 2
    assert message in capsys.readouterr().err


def test_an_empty_home_has_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["search", "x", "--home", str(tmp_path / "none")]) == 0
    assert capsys.readouterr() == ("", "there is no memory yet\n")


def test_a_reader_that_has_seen_enough_is_no_error(home: Path) -> None:
    (home / "memories" / "long.md").write_text("line\n" * 50_000, encoding="utf-8")
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT / "src")}
    command = [sys.executable, "-m", "stillroom", "search", "line", "--mode", "any", "--home", str(home)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
        assert process.wait(timeout=60) in (0, 141)


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap shows the disk to be read only")
def test_where_nothing_can_be_written_the_memory_is_read_all_the_same(home: Path) -> None:
    jail = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-net"]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(PROJECT / "src"),
        "STILLROOM_HOME": str(home),
        "HOME": str(home),
    }
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    for words, expected in (
        (["search", "biome"], "we use biome here"),  # no index was made yet
        (["status"], "6 sessions"),
        (["why", "we use biome here"], "said by"),
        (["explain", "01a2273c-0761"], "the memory rests on it"),
        (["threads", "--no-scan"], "01a2273c-0761"),
        (["recall", "--cwd", "/home/dev/work/shopfront"], "we use biome here"),
    ):
        command = [*jail, sys.executable, "-m", "stillroom", *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), words
        assert expected in done.stdout, words
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before
