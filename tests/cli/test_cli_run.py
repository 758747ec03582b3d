"""`stillroom run` as a person and as a script meet it: a real process."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from stillroom.cli.app import run_command
from stillroom.workspace.git import Repository

PROJECT = Path(__file__).parents[2]
NOW = "2026-11-30T09:00:00Z"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    shutil.copytree(PROJECT / "examples" / "codex-home", tmp_path / "codex")
    return {
        "HOME": str(tmp_path),
        "CODEX_HOME": str(tmp_path / "codex"),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(PROJECT / "src"),
        "TERM": "xterm-256color",
    }


def stillroom(*words: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stillroom", *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)


def test_json_goes_to_stdout_and_nothing_else_does(environment: dict[str, str]) -> None:
    done = stillroom("run", "--backfill", "--now", NOW, "--json", env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert report["extract"]["claimed"] == 6
    assert report["consolidate"]["outcome"] == "consolidated"
    assert report["root"] == f"{environment['HOME']}/.stillroom/memories"


@pytest.mark.slow
def test_people_are_told_on_stderr_without_colour_when_it_is_no_terminal(environment: dict[str, str]) -> None:
    done = stillroom("run", "--backfill", "--now", NOW, env=environment)
    assert (done.returncode, done.stdout) == (0, "")
    assert "sessions      6 found" in done.stderr
    assert "\x1b[" not in done.stderr


def on_a_terminal(*words: str, env: dict[str, str]) -> bytes:
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "stillroom", *words]
    with subprocess.Popen(command, env=env, stdout=child, stderr=child, stdin=child) as process:
        os.close(child)
        shown = b""
        while select.select([parent], [], [], 60)[0]:
            try:
                shown += os.read(parent, 65536)
            except OSError:  # the other end is closed
                break
        assert process.wait(timeout=60) == 0
    os.close(parent)
    return shown


def test_a_terminal_sees_progress_and_colour(environment: dict[str, str]) -> None:
    shown = on_a_terminal("run", "--backfill", "--now", NOW, env=environment)
    assert b"Extracting" in shown
    assert b"\x1b[32m" in shown


@pytest.mark.slow
def test_no_color_is_respected(environment: dict[str, str]) -> None:
    shown = on_a_terminal("run", "--backfill", "--now", NOW, env={**environment, "NO_COLOR": "1"})
    assert b"consolidated" in shown
    assert b"\x1b[32m" not in shown


@pytest.fixture
def here(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same environment for a command that runs in this process."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("walk",), "walk"),
        (("run", "--limit", "many"), "many"),
        (("run", "--now", "yesterday"), "`yesterday` is no moment"),
    ],
)
def test_a_command_line_that_cannot_be_used_exits_2_and_says_why(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert run_command(words) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert "hint:" in shown


@pytest.mark.usefixtures("here")
def test_bad_settings_exit_2_and_name_the_key(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / ".stillroom").mkdir()
    (tmp_path / ".stillroom" / "config.toml").write_text("[memories]\nmax_rollouts = 3\n", encoding="utf-8")
    assert run_command(["run"]) == 2
    assert "max_rollouts" in capsys.readouterr().err


@pytest.mark.usefixtures("here")
def test_a_model_without_its_key_exits_2_before_anything_is_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / ".stillroom").mkdir()
    settings = '[memories]\nextract_model = "openai-responses:gpt-x"\n'
    (tmp_path / ".stillroom" / "config.toml").write_text(settings, encoding="utf-8")
    assert run_command(["run"]) == 2
    assert "OPENAI_API_KEY" in capsys.readouterr().err
    assert not (tmp_path / ".stillroom" / "state.sqlite3").exists()


@pytest.mark.usefixtures("here")
def test_a_memory_folder_that_is_a_link_exits_1_and_stays_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".stillroom").mkdir()
    (tmp_path / ".stillroom" / "memories").symlink_to(tmp_path / "elsewhere")
    assert run_command(["run", "--backfill", "--now", NOW]) == 1
    assert "is a link" in capsys.readouterr().err
    assert (tmp_path / ".stillroom" / "memories").is_symlink()
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.slow
def test_an_empty_home_is_fine(environment: dict[str, str], tmp_path: Path) -> None:
    done = stillroom("run", env={**environment, "CODEX_HOME": str(tmp_path / "nowhere")})
    assert done.returncode == 0
    assert "sessions      0 found" in done.stderr
    assert f"there is no `{tmp_path / 'nowhere'}`" in done.stderr


@pytest.mark.slow
def test_people_are_told_why_the_rest_was_left(environment: dict[str, str]) -> None:
    first = stillroom("run", "--limit", "2", "--now", NOW, env=environment)
    assert "left          4 for the next pass" in first.stderr
    early = stillroom("run", "--now", "2026-11-29T12:17:30Z", "--home", environment["HOME"] + "/h", env=environment)
    assert "left          6 active in the last 5 min (`--session ID` takes one)" in early.stderr
    late = stillroom("run", "--now", "2027-01-29T13:00:00Z", env=environment)
    assert "left          4 older than 10 days (--backfill takes them)" in late.stderr


@pytest.mark.slow
def test_a_folder_narrows_what_is_extracted(environment: dict[str, str]) -> None:
    done = stillroom("run", "--backfill", "--cwd", "/home/dev/work/ledgerkit", "--now", NOW, "--json", env=environment)
    assert json.loads(done.stdout)["extract"]["claimed"] == 3


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_told_to_end_hands_everything_back(
    environment: dict[str, str], tmp_path: Path, number: int, code: int
) -> None:
    folder = tmp_path / "codex" / "sessions" / "2026" / "11" / "29"
    one = next(folder.glob("*01a2273c-0036*"))
    text = one.read_text(encoding="utf-8")
    for copied in range(150):
        thread = f"01a2273c-0036-7133-90f0-{copied:012x}"
        copy = folder / f"rollout-2026-11-29T12-16-13-{thread}.jsonl"
        copy.write_text(text.replace("01a2273c-0036-7133-90f0-7698c74b216a", thread), encoding="utf-8")
    words = [sys.executable, "-m", "stillroom", "run", "--backfill", "--now", NOW]
    with subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 30
        while not (tmp_path / ".stillroom" / "memories").exists() and time.monotonic() < until:
            time.sleep(0.01)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == code, said
    assert "interrupted" in said
    with closing(sqlite3.connect(tmp_path / ".stillroom" / "state.sqlite3")) as db:
        assert db.execute("SELECT count(*) FROM jobs WHERE status = 'running'").fetchone() == (0,)
    done = stillroom("run", "--backfill", "--now", NOW, "--json", env=environment)
    assert done.returncode == 0
    assert json.loads(done.stdout)["consolidate"]["outcome"] == "consolidated"


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("run", "--now", "99999999999999999999"),
        ("run", "--limit", "-1"),
        ("run", "--home", ""),
    ],
)
def test_a_value_out_of_range_exits_2_without_a_traceback(
    environment: dict[str, str], tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = stillroom(*words, env=environment)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "hint:" in done.stderr
    assert not (tmp_path / ".stillroom").exists()


@pytest.mark.slow
def test_codex_s_own_home_is_no_memory_folder(environment: dict[str, str], tmp_path: Path) -> None:
    done = stillroom("run", "--root", str(tmp_path / "codex"), env=environment)
    assert done.returncode == 1
    assert "codex/memories" in done.stderr
    assert [entry.name for entry in (tmp_path / "codex").iterdir()] == ["sessions"]


@pytest.mark.slow
@pytest.mark.parametrize("used_before", [False, True])
def test_memories_that_codex_wrote_are_taken_over_only_when_asked(
    environment: dict[str, str], tmp_path: Path, used_before: bool
) -> None:
    if used_before:
        assert stillroom("run", "--backfill", "--now", NOW, env=environment).returncode == 0
    folder = tmp_path / "codex" / "memories"
    theirs = {
        "MEMORY.md": "# Task Group: theirs\n",
        "raw_memories.md": "# Raw Memories\n\ntheirs\n",
        "rollout_summaries/2026-01-01T00-00-00-abcd-theirs.md": "theirs\n",
    }
    for path, text in theirs.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    (folder / "link").symlink_to(tmp_path)
    words = ("run", "--backfill", "--now", "2026-12-01T09:00:00Z", "--root", str(folder))

    refused = stillroom(*words, env=environment)
    assert refused.returncode == 1
    said = " ".join(refused.stderr.split())
    assert f"`{folder}` holds memories that Stillroom did not write: `raw_memories.md` and" in said
    assert "hint: `stillroom run --adopt` takes it over: what is in it is kept in history.git first" in said
    assert {str(p.relative_to(folder)): p.read_text(encoding="utf-8") for p in folder.rglob("*.md")} == theirs
    assert {p.name for p in folder.iterdir()} == {"MEMORY.md", "link", "raw_memories.md", "rollout_summaries"}

    assert stillroom(*words, "--adopt", env=environment).returncode == 0
    assert (folder / "memory_summary.md").exists()
    assert not (folder / "rollout_summaries/2026-01-01T00-00-00-abcd-theirs.md").exists()
    repository = Repository(tmp_path / ".stillroom" / "history.git")
    for path, text in theirs.items():
        assert repository.run("show", f"HEAD~1:{path}").decode() == text
    later = ("run", "--now", "2026-12-02T09:00:00Z", "--root", str(folder))
    assert stillroom(*later, env=environment).returncode == 0


def test_an_interrupt_while_it_starts_ends_with_130_and_no_traceback(environment: dict[str, str]) -> None:
    script = (
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'stillroom.cli.app':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from stillroom.cli import main\n"
        "main(['run'])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.slow
def test_a_path_cannot_steer_the_terminal_and_is_told_once(environment: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "\x1b]0;owned\x07codex" / "sessions" / "2026" / "11" / "29"
    folder.mkdir(parents=True)
    name = "rollout-2026-11-29T13-00-00-01a2273c-4000-7000-8000-000000000001.jsonl"
    (folder / name).write_bytes(b"\x00\x01")
    done = stillroom("run", env={**environment, "CODEX_HOME": str(folder.parents[3])})
    assert done.returncode == 0
    assert "\x1b" not in done.stderr
    assert done.stderr.count(name) == 1
