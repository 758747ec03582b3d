from __future__ import annotations

from pathlib import Path

from stillroom.config import Settings
from stillroom.integrations.hook_checks import check_hooks


def test_an_agent_whose_settings_cannot_be_read_is_told_with_what_to_do(tmp_path: Path) -> None:
    environ = {
        "HOME": str(tmp_path),
        "PATH": str(tmp_path),
        "CODEX_HOME": str(tmp_path / "codex"),
        "CLAUDE_CONFIG_DIR": str(tmp_path / "claude"),
    }
    settings = Settings(home=tmp_path / "home")
    (none,) = check_hooks(settings, environ)
    assert none.finding.what == "no agent that takes hooks is on this machine"
    (tmp_path / "codex").mkdir()
    (absent,) = check_hooks(settings, environ)
    assert (absent.finding.severity, absent.finding.remedy) == ("note", "stillroom init --agent codex")
    (tmp_path / "codex" / "config.toml").write_text("this is = no TOML", encoding="utf-8")
    (broken,) = check_hooks(settings, environ)
    assert broken.finding.severity == "warning"
    assert broken.finding.what.startswith("Codex CLI: `")
    assert broken.finding.remedy == "nothing was changed in it; mend it first"
