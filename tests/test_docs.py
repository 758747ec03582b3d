"""A documented command that does not work fails here."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from stillroom.config import load_settings

PROJECT = Path(__file__).parents[1]
#: Commands that need a memory: they are tried where a pass has been.
NEED_MEMORY = {"explain", "export", "list", "read", "review", "search", "why", "edit"}
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[tuple[str, str]]:
    return [
        (page.name, body)
        for page in PAGES
        for found, body in FENCE.findall(page.read_text(encoding="utf-8"))
        if found == language
    ]


def commands() -> list[str]:
    lines = [line.split("  #")[0].strip() for _, body in blocks("sh") for line in body.splitlines()]
    return sorted({line for line in lines if line})


def test_there_are_commands_to_try() -> None:
    assert len(commands()) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("command", [c for c in commands() if c.startswith("stillroom ")])
def test_documented_command_works(command: str, tmp_path: Path) -> None:
    codex = shutil.copytree(PROJECT / "examples" / "codex-home", tmp_path / ".codex")  # a command may write to it
    environment = {
        "HOME": str(tmp_path),
        "CODEX_HOME": str(codex),
        "EDITOR": "true",
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(PROJECT / "src"),
    }
    if command.startswith("stillroom review"):  # of what a person wants to see first
        (tmp_path / ".stillroom").mkdir()
        (tmp_path / ".stillroom" / "config.toml").write_text('memories.review = "always"\n', encoding="utf-8")
    words = shlex.split(command.split(" | ")[0].replace("~", str(tmp_path)))
    tried = [words]
    if words[1] in NEED_MEMORY or "--thread" in words:
        tried.insert(0, ["stillroom", "run", "--backfill", "--now", "2026-11-30T09:00:00Z"])
    for words in tried:
        done = subprocess.run(
            [sys.executable, "-m", *words], env=environment, capture_output=True, text=True, timeout=60, cwd=tmp_path
        )
        if "--trust" in words:  # the name of a line in the docs is nobody's
            assert "3f9a1c22e0" in done.stderr
        else:
            assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", [c for c in commands() if c.startswith("stillroom-hook ")])
def test_documented_hook_works(command: str, tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT / "src")}
    words = [sys.executable, "-m", "stillroom.integrations.hook", *shlex.split(command)[1:]]
    done = subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert done.returncode == 0 and done.stderr == b""


@pytest.mark.slow
def test_the_demo_reads_none_of_the_sessions_of_who_tries_it(tmp_path: Path) -> None:
    mine = next((PROJECT / "tests" / "data" / "claude-code").rglob("*.jsonl"))
    (tmp_path / ".claude" / "projects" / "-home-me").mkdir(parents=True)
    shutil.copy(mine, tmp_path / ".claude" / "projects" / "-home-me")
    program = tmp_path / "bin" / "stillroom"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m stillroom "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    environment = {
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(PROJECT / "src"),
    }
    demo = ["sh", str(PROJECT / "examples" / "demo.sh")]
    done = subprocess.run(demo, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "6 found, 6 new" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {".claude", "bin"}


@pytest.mark.parametrize("command", [c for c in commands() if c.startswith("make ")])
def test_documented_target_exists(command: str) -> None:
    done = subprocess.run(
        ["make", "--dry-run", *shlex.split(command)[1:]], cwd=PROJECT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("page", "text"), blocks("toml"))
def test_documented_settings_are_accepted(page: str, text: str, tmp_path: Path) -> None:
    tomllib.loads(text)
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    load_settings(home=tmp_path)


def test_the_generated_pages_are_in_step_with_the_code() -> None:
    done = subprocess.run(
        [sys.executable, PROJECT / "docs" / "generate.py", "--check"],
        env={**os.environ, "PYTHONPATH": str(PROJECT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
