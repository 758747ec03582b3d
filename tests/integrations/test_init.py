"""`stillroom init` and `uninit`: what a person wrote stays, twice is once, and all of it can be undone."""

from __future__ import annotations

import json
import os
import pty
import shutil
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from stillroom.cli.app import run_command
from stillroom.config import load_settings
from stillroom.errors import SettingsRefused
from stillroom.integrations.files import read_original, write
from stillroom.integrations.installing import apply, plan_install
from stillroom.integrations.programs import Programs, installed_programs, is_our_hook, is_our_server

PROJECT = Path(__file__).parents[2]
SETTINGS = """{
    "model": "opus",
    "permissions": { "allow": ["Bash(ls:*)"], "deny": [] },
    "hooks": {
        "SessionStart": [{"matcher": "startup", "hooks": [{"type": "command", "command": "mine.sh"}]}],
        "PreToolUse": []
    },
    "ratio": 1.0e0
}
"""
CONFIG = """# my Codex
model = "gpt-5.5"   # the good one

[mcp_servers.docs]
command = "docs-server"

# what I try
[features]
goals = true
"""

Home = Path
Run = Callable[..., int]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A person's home with both agents in it and none on the PATH."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    for folder, name, text in ((".claude", "settings.json", SETTINGS), (".codex", "config.toml", CONFIG)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text, encoding="utf-8")
    return tmp_path


def contents(home: Path) -> dict[str, bytes]:
    """Every file that is not Stillroom's own."""
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file() and ".stillroom" not in path.parts
    }


def test_both_agents_get_their_entries_and_keep_what_was_there(home: Home) -> None:
    assert run_command(["init"]) == 0
    settings = json.loads((home / ".claude/settings.json").read_text())
    first, ours = settings["hooks"]["SessionStart"]
    assert first == {"matcher": "startup", "hooks": [{"type": "command", "command": "mine.sh"}]}
    (start,), (end,) = ours["hooks"], settings["hooks"]["SessionEnd"][0]["hooks"]
    assert start["command"].endswith("claude-code session-start") and end["command"].endswith("claude-code session-end")
    assert Path(start["command"].split()[0]).is_absolute() and is_our_hook(start["command"])
    assert settings["permissions"]["allow"] == ["Bash(ls:*)", f"Read(/{home}/.stillroom/memories/**)"]
    hooks = json.loads((home / ".codex/hooks.json").read_text())["hooks"]
    assert list(hooks) == ["SessionStart"] and hooks["SessionStart"][0]["hooks"][0]["additionalContextLimit"] > 10_000
    text = (home / ".codex/config.toml").read_text()
    assert text.startswith(CONFIG)
    server = tomllib.loads(text)["mcp_servers"]["stillroom"]
    assert Path(server["command"]).is_absolute() and is_our_server(server["command"], server["args"])


def test_running_it_twice_changes_nothing(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    run_command(["init"])
    once, manifest = contents(home), (home / ".stillroom/integrations.json").read_bytes()
    capsys.readouterr()
    assert run_command(["init"]) == 0
    assert contents(home) == once
    assert (home / ".stillroom/integrations.json").read_bytes() == manifest
    shown = capsys.readouterr()
    assert shown.out == "" and "stillroom run --backfill" in shown.err


def test_uninit_restores_every_byte(home: Home) -> None:
    before = contents(home)
    run_command(["init"])
    assert contents(home) != before
    assert run_command(["uninit"]) == 0
    assert contents(home) == before
    assert not (home / ".stillroom/integrations.json").exists()
    assert run_command(["uninit"]) == 0


def test_uninit_finds_all_of_it_after_the_home_was_deleted(home: Home) -> None:
    before = contents(home)
    assert run_command(["init"]) == 0
    shutil.rmtree(home / ".stillroom")
    assert run_command(["uninit"]) == 0
    left = contents(home)
    assert json.loads(left.pop(".codex/hooks.json")) == {}
    assert b"stillroom" not in b"".join(left.values())
    assert left.keys() == before.keys()
    assert json.loads(left[".claude/settings.json"]) == json.loads(before[".claude/settings.json"])


def test_a_damaged_backup_is_not_put_back(home: Home) -> None:
    run_command(["init", "--agent", "claude-code"])
    (backup,) = (home / ".stillroom/backups/claude-code").iterdir()
    for damage in (b"{", b"\xff"):
        backup.write_bytes(damage)
        assert run_command(["uninit", "--dry-run"]) == 0
    assert run_command(["uninit"]) == 0
    assert json.loads((home / ".claude/settings.json").read_text()) == json.loads(SETTINGS)


def test_a_home_whose_name_is_no_text_is_refused(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(home)
    assert run_command(["init", "--home", str(home / "h\udcff")]) == 1
    assert "no UTF-8" in capsys.readouterr().err
    assert contents(home) == before


def test_uninit_keeps_what_was_changed_since(home: Home) -> None:
    run_command(["init"])
    claude, config, hooks = home / ".claude/settings.json", home / ".codex/config.toml", home / ".codex/hooks.json"
    claude.write_text(claude.read_text().replace('"opus"', '"sonnet"'))
    config.write_text(config.read_text() + '\n[hooks.state."x"]\ntrusted_hash = "sha256:1"\n')
    hooks.write_text(hooks.read_text().replace('"hooks": {', '"hooks": {\n    "Stop": [{"hooks": []}],', 1))
    assert run_command(["uninit"]) == 0
    assert claude.read_text() == SETTINGS.replace('"opus"', '"sonnet"')
    assert config.read_text() == CONFIG + '\n[hooks.state."x"]\ntrusted_hash = "sha256:1"\n'
    assert json.loads(hooks.read_text()) == {"hooks": {"Stop": [{"hooks": []}]}}


def test_a_rule_that_the_person_wrote_stays(home: Home) -> None:
    claude = home / ".claude/settings.json"
    mine = SETTINGS.replace('"Bash(ls:*)"', f'"Bash(ls:*)", "Read(/{home}/.stillroom/memories/**)"')
    claude.write_text(mine)
    run_command(["init"])
    claude.write_text(claude.read_text().replace('"opus"', '"sonnet"'))
    run_command(["uninit"])
    assert claude.read_text() == mine.replace('"opus"', '"sonnet"')


def test_dry_run_writes_nothing_and_shows_the_edit(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(home)
    assert run_command(["init", "--dry-run"]) == 0
    assert contents(home) == before and not (home / ".stillroom").exists()
    shown = capsys.readouterr().out
    assert f"+++ {home}/.claude/settings.json" in shown and "+[mcp_servers.stillroom]" in shown


def test_json_tells_what_was_written(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["init", "--agent", "codex", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["agents"]
    assert told["agent"] == "codex" and told["written"] and not told["error"]
    assert [Path(file["path"]).name for file in told["files"]] == ["hooks.json", "config.toml"]
    assert [Path(backup).read_text() for backup in told["backups"]] == [CONFIG]
    assert any("Hooks need review" in note for note in told["notes"])


def test_an_agent_that_is_not_there_is_not_touched_unless_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    assert run_command(["init"]) == 0
    assert list(tmp_path.iterdir()) == [] and "no agent found" in capsys.readouterr().err
    assert run_command(["init", "--agent", "claude-code"]) == 0
    assert (tmp_path / ".claude/settings.json").stat().st_mode & 0o777 == 0o600
    assert run_command(["uninit"]) == 0
    assert not (tmp_path / ".claude/settings.json").exists()
    assert run_command(["init", "--agent", "clod-code"]) == 1
    assert "did you mean `claude-code`" in capsys.readouterr().err


def test_a_program_on_the_path_counts_as_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "elsewhere"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "claude").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "claude").chmod(0o755)
    assert run_command(["init"]) == 0
    assert (tmp_path / "elsewhere" / "settings.json").exists() and not (tmp_path / ".codex").exists()


def test_a_moved_installation_is_healed(home: Home) -> None:
    environ = {"HOME": str(home)}
    settings = load_settings(home=home / ".stillroom", environ=environ)
    old = Programs(hook=("/old place/bin/stillroom-hook",), stillroom=("/old place/bin/stillroom",))
    before = contents(home)
    for agent in ("claude-code", "codex"):
        apply(plan_install(agent, settings, old, environ), settings, removing=False)
    assert b"'/old place/bin/stillroom-hook' claude-code session-start" in contents(home)[".claude/settings.json"]
    assert run_command(["init"]) == 0
    after = contents(home)
    assert not any(b"/old place" in data for data in after.values())
    settings_now = json.loads(after[".claude/settings.json"])
    assert [len(settings_now["hooks"][event]) for event in ("SessionStart", "SessionEnd")] == [2, 1]
    assert run_command(["uninit"]) == 0
    assert contents(home) == before


def test_a_home_of_its_own_is_named_in_every_call(home: Home) -> None:
    there = home / "my memory"
    assert run_command(["init", "--home", str(there)]) == 0
    command = json.loads((home / ".codex/hooks.json").read_text())["hooks"]["SessionStart"][0]["hooks"][0]["command"]
    assert f"--home '{there}' codex session-start" in command
    server = tomllib.loads((home / ".codex/config.toml").read_text())["mcp_servers"]["stillroom"]
    assert server["args"][-3:] == ["mcp", "--home", str(there)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{\n  // mine\n  "a": 1\n}', "JSON has no comments"),
        ('{"hooks": [', "no valid JSON"),
        ('{"hooks": {"SessionStart": "x"}}', "unexpected shape"),
        ('{"permissions": {"allow": {}}}', "unexpected shape"),
        ("[]", "no JSON object"),
    ],
)
def test_settings_that_can_not_be_kept_are_refused_and_the_other_agent_is_installed(
    home: Home, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    (home / ".claude/settings.json").write_text(text)
    assert run_command(["init"]) == 1
    assert (home / ".claude/settings.json").read_text() == text
    assert (home / ".codex/hooks.json").exists()
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("model = ", "no valid TOML"),
        ("model = " + "9" * 5000, "no valid TOML"),
        ("model = " + "[" * 5000, "no valid TOML"),
        ('[mcp_servers.stillroom]\ncommand = "another"\n', "another program's"),
        ("mcp_servers = 3\n", "no table"),
    ],
)
def test_a_codex_config_that_can_not_take_the_entry_is_refused_whole(
    home: Home, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    (home / ".codex/config.toml").write_text(text)
    assert run_command(["init", "--agent", "codex"]) == 1
    assert contents(home / ".codex") == {"config.toml": text.encode()}
    assert says in capsys.readouterr().err


def test_where_hooks_are_kept_in_codex_config_ours_goes_there_too(home: Home) -> None:
    config = home / ".codex/config.toml"
    mine = CONFIG + '\n[[hooks.SessionStart]]\nmatcher = "startup"\n[[hooks.SessionStart.hooks]]\ncommand = "x"\n'
    config.write_text(mine)
    assert run_command(["init"]) == 0
    assert not (home / ".codex/hooks.json").exists()
    once = config.read_text()
    assert once.startswith(mine)
    groups = tomllib.loads(once)["hooks"]["SessionStart"]
    assert [is_our_hook(group["hooks"][0]["command"]) for group in groups] == [False, True]
    trusted = '\n[hooks.state."a"]\ntrusted_hash = "1"\n'
    config.write_text(once + trusted)
    assert run_command(["init"]) == 0
    assert config.read_text() == once + trusted
    healed = once.replace(groups[1]["hooks"][0]["command"], "/elsewhere/stillroom-hook codex session-start")
    config.write_text(healed + trusted)
    assert run_command(["init"]) == 0
    assert config.read_text() == once + trusted
    assert run_command(["uninit"]) == 0
    assert config.read_text() == mine + trusted


def test_it_is_said_when_two_memories_would_meet_or_no_hook_runs(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / ".codex/config.toml").write_text("[features]\nmemories = true\nhooks = false\n")
    (home / ".claude/settings.json").write_text('{"disableAllHooks": true}')
    run_command(["init", "--dry-run"])
    said = capsys.readouterr().err
    assert "Codex's own memories are on" in said and "Codex runs no hook" in said and "disableAllHooks" in said


def test_a_link_is_followed_and_stays_a_link(home: Home) -> None:
    dotfiles = home / "dotfiles"
    dotfiles.mkdir()
    target = dotfiles / "claude.json"
    target.write_text(SETTINGS)
    target.chmod(0o640)
    settings = home / ".claude/settings.json"
    settings.unlink()
    settings.symlink_to("../dotfiles/claude.json")
    assert run_command(["init"]) == 0
    assert settings.is_symlink() and "stillroom" in target.read_text()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert run_command(["uninit"]) == 0
    assert settings.is_symlink() and target.read_text() == SETTINGS
    assert [path.name for path in dotfiles.iterdir()] == ["claude.json"]


def test_what_is_read_only_or_no_file_is_refused(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    settings = home / ".claude/settings.json"
    settings.chmod(0o444)
    assert run_command(["init", "--agent", "claude-code"]) == 1
    assert "is read-only" in capsys.readouterr().err and settings.read_text() == SETTINGS
    settings.unlink()
    settings.mkdir()
    assert run_command(["init", "--agent", "claude-code"]) == 1
    assert "is no plain file" in capsys.readouterr().err
    settings.rmdir()
    settings.symlink_to(settings)
    assert run_command(["init", "--agent", "claude-code"]) == 1
    assert "can't be read" in capsys.readouterr().err
    settings.unlink()
    settings.write_bytes(b'{"a": "\xff"}')
    assert run_command(["init", "--agent", "claude-code"]) == 1
    assert "no UTF-8" in capsys.readouterr().err


def test_a_file_that_changed_since_it_was_shown_is_left_alone(home: Home) -> None:
    settings = load_settings(home=home / ".stillroom", environ={"HOME": str(home)})
    plan = plan_install("claude-code", settings, installed_programs(settings.home), {"HOME": str(home)})
    (home / ".claude/settings.json").write_text('{"model": "haiku"}')
    with pytest.raises(SettingsRefused, match="changed meanwhile"):
        apply(plan, settings, removing=False)
    assert contents(home)[".claude/settings.json"] == b'{"model": "haiku"}'
    assert [path.name for path in (home / ".claude").iterdir()] == ["settings.json"]


def test_without_a_home_to_note_it_in_nothing_is_changed(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(home)
    (home / ".stillroom").symlink_to(home / "no" / "such" / "place")
    assert run_command(["init"]) == 1
    assert contents(home) == before and "can't be made" in capsys.readouterr().err


def test_an_entry_that_the_person_took_out_is_forgotten(home: Home) -> None:
    run_command(["init", "--agent", "codex"])
    (home / ".codex/hooks.json").unlink()
    (home / ".codex/config.toml").write_text("")
    assert run_command(["uninit", "--agent", "codex"]) == 0
    assert not (home / ".stillroom/integrations.json").exists()
    assert run_command(["init", "--agent", "codex"]) == 0
    assert (home / ".codex/config.toml").read_text().startswith("# Written by")
    (home / ".codex/hooks.json").unlink()
    assert run_command(["uninit", "--agent", "codex"]) == 0
    assert (home / ".codex/config.toml").read_text() == ""


def test_a_file_that_the_person_put_back_is_restored_as_they_put_it(home: Home) -> None:
    settings = home / ".claude/settings.json"
    assert run_command(["init", "--agent", "claude-code"]) == 0
    settings.write_text('{"hooks": {"SessionStart": []}, "permissions": {"allow": []}}')
    before = contents(home)
    assert run_command(["init", "--agent", "claude-code"]) == 0
    assert contents(home) != before
    assert run_command(["uninit", "--agent", "claude-code"]) == 0
    assert contents(home) == before


def test_a_byte_order_mark_and_windows_line_ends_stay(home: Home) -> None:
    data = b"\xef\xbb\xbf" + SETTINGS.replace("\n", "\r\n").encode()
    (home / ".claude/settings.json").write_bytes(data)
    (home / ".codex/config.toml").write_bytes(CONFIG.replace("\n", "\r\n").encode())
    run_command(["init"])
    after = (home / ".claude/settings.json").read_bytes()
    assert after.startswith(b"\xef\xbb\xbf{\r\n") and b"\n" not in after.replace(b"\r\n", b"")
    assert b"\n" not in (home / ".codex/config.toml").read_bytes().replace(b"\r\n", b"")
    (home / ".claude/settings.json").write_bytes(after.replace(b"opus", b"haiku"))
    run_command(["uninit"])
    assert (home / ".claude/settings.json").read_bytes() == data.replace(b"opus", b"haiku")


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new" / "settings.json"
    write(read_original(path), b"{}\n")
    assert path.read_bytes() == b"{}\n" and path.parent.stat().st_mode & 0o777 == 0o700
    original = read_original(path)
    path.parent.chmod(0o500)
    if os.getuid():  # root may write anywhere
        with pytest.raises(SettingsRefused, match="read-only"):
            write(original, b"[]")
    path.parent.chmod(0o700)
    write(original, None)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(("answer", "written"), [("y\n", True), ("\n", False)])
def test_on_a_terminal_it_asks_first(home: Home, answer: str, written: bool) -> None:
    outer, inner = pty.openpty()
    environ = {"HOME": str(home), "PATH": os.defpath, "PYTHONPATH": str(PROJECT / "src"), "TERM": "dumb"}
    command = [sys.executable, "-m", "stillroom", "init", "--agent", "claude-code"]
    with subprocess.Popen(command, env=environ, stdin=inner, stdout=inner, stderr=inner, cwd=home) as process:
        os.close(inner)
        os.write(outer, answer.encode())
        shown = b""
        while True:
            try:
                part = os.read(outer, 65_536)
            except OSError:  # Linux: the other end is closed
                break
            if not part:
                break
            shown += part
        assert process.wait(timeout=60) == 0
    os.close(outer)
    assert b"Write this? [y/N]" in shown
    assert (b"stillroom" in (home / ".claude/settings.json").read_bytes()) == written
