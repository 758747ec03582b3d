from __future__ import annotations

from pathlib import Path

import pytest

from stillroom.config import Memories, default_sources, load_settings
from stillroom.errors import ConfigError
from stillroom.homes import HOMES as CLIENT_HOMES
from stillroom.sessions.readers import reader_of


def write(home: Path, text: str) -> Path:
    (home / "config.toml").write_text(text, encoding="utf-8")
    return home


HOMES = {
    "CODEX_HOME": "/codex",
    "CLAUDE_CONFIG_DIR": "/claude",
    "XDG_DATA_HOME": "/data",
    "GEMINI_CLI_HOME": "/gemini",
    "QWEN_HOME": "/qwen",
    "COPILOT_HOME": "/copilot",
    "PI_CODING_AGENT_DIR": "/pi",
    "OPENHANDS_PERSISTENCE_DIR": "/openhands",
    "CONTINUE_GLOBAL_DIR": "/continue",
    "CLINE_DATA_DIR": "/cline",
    "LETTA_LOCAL_BACKEND_DIR": "/letta",
    "KIMI_CODE_HOME": "/kimi",
    "CURSOR_DATA_DIR": "/cursor",
    "MSWEA_GLOBAL_CONFIG_DIR": "/mini",
}


def test_every_format_has_a_reader_and_a_variable_that_moves_its_default() -> None:
    assert all(agent == reader_of(agent).AGENT for agent in CLIENT_HOMES)
    for agent, home in CLIENT_HOMES.items():
        moved = {home.variable: "/elsewhere"} if home.variable else {}
        roots = [Path(s.root) for s in default_sources(moved) if s.format == agent]
        assert all(root.is_relative_to("/elsewhere") for root in roots)


def test_without_a_file_the_defaults_are_codexs(tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path, environ={**HOMES, "OPENCODE_DB": "/other.db"})
    assert settings.memories == Memories()
    assert settings.root == tmp_path / "memories"
    assert [(source.format, source.root) for source in settings.sources] == [
        ("codex", "/codex"),
        ("claude-code", "/claude"),
        ("opencode", "/data/opencode"),
        ("opencode", "/other.db"),
        ("gemini-cli", "/gemini/.gemini"),
        ("qwen-code", "/qwen"),
        ("copilot-cli", "/copilot"),
        ("pi", "/pi"),
        ("openhands", "/openhands"),
        ("continue", "/continue"),
        ("cline", "/cline"),
        ("letta-code", "/letta"),
        ("kimi-code", "/kimi"),
        ("cursor", "/cursor"),
        ("swe-agent", "/mini"),
        ("stillroom", str(tmp_path)),
    ]


@pytest.mark.parametrize(("both", "roots"), [("true", ["/mine", "/codex"]), ("false", ["/mine"])])
def test_sources_stand_beside_the_clients_own_homes_unless_these_are_switched_off(
    tmp_path: Path, both: str, roots: list[str]
) -> None:
    text = f'memories.default_sources = {both}\n[[sources]]\nformat = "codex"\nroot = "/mine"\n'
    (tmp_path / "config.toml").write_text(text)
    sources = load_settings(home=tmp_path, environ=HOMES).sources
    assert [source.root for source in sources if source.format == "codex"] == roots
    assert sources[-1].format == "stillroom"
    assert len(sources) == (2 if both == "false" else len(set(sources)))


@pytest.mark.parametrize(
    ("key", "given", "taken"),
    [
        ("max_raw_memories_for_consolidation", 0, 1),
        ("max_raw_memories_for_consolidation", 5000, 4096),
        ("max_unused_days", -1, 0),
        ("max_unused_days", 1000, 365),
        ("max_rollout_age_days", -5, 0),
        ("max_rollout_age_days", 91, 90),
        ("max_rollouts_per_startup", 0, 1),
        ("max_rollouts_per_startup", 1000, 128),
        ("min_rollout_idle_hours", 0, 1),
        ("min_rollout_idle_hours", 100, 48),
        ("min_rate_limit_remaining_percent", -1, 0),
        ("min_rate_limit_remaining_percent", 101, 100),
    ],
)
def test_numbers_out_of_range_are_clamped(tmp_path: Path, key: str, given: int, taken: int) -> None:
    settings = load_settings(home=write(tmp_path, f"[memories]\n{key} = {given}\n"))
    assert getattr(settings.memories, key) == taken


def test_the_whole_table_of_a_codex_home_is_accepted_and_its_defaults_are_ours(tmp_path: Path) -> None:
    table = """[memories]
disable_on_external_context = false
generate_memories = true
use_memories = true
dedicated_tools = false
max_raw_memories_for_consolidation = 256
max_unused_days = 30
max_rollout_age_days = 10
max_rollouts_per_startup = 2
min_rollout_idle_hours = 6
min_rate_limit_remaining_percent = 25
version = "v1"
dual_write = false
"""
    assert load_settings(home=write(tmp_path, table)).memories == Memories()


def test_the_old_name_of_a_key_is_accepted_and_the_canonical_one_wins(tmp_path: Path) -> None:
    old = "no_memories_if_mcp_or_web_search = true\n"
    assert load_settings(home=write(tmp_path, f"[memories]\n{old}")).memories.disable_on_external_context
    both = write(tmp_path, f"[memories]\ndisable_on_external_context = false\n{old}")
    assert not load_settings(home=both).memories.disable_on_external_context


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[memories]\nmax_rollouts = 3\n", "max_rollouts"),
        ('[memories]\nmax_unused_days = "ten"\n', "memories.max_unused_days"),
        ("[memories\n", "config.toml"),
        ("memories = 3\n", "memories"),
    ],
)
def test_a_bad_file_is_an_error_that_names_the_place(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named.replace(".", r"\.")):
        load_settings(home=write(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('[memories]\nextract_effort = "huge"\n', "`extract_effort` is one of: minimal, low, medium, high"),
        ('[memories]\nversion = "v2"\n', "`version` is one of: v1"),
        ("[memories]\nmax_rollouts = 3\n", "the keys are: enabled, root, "),
        ("[memory]\n", "the keys are: memories, providers, sources"),
        ('[providers.x]\nkind = "soap"\nbase_url = "http://x"\n', "`kind` is one of: openai-responses, openai-chat"),
        ('[[sources]]\nformat = "codex"\n', "the keys are: format, root"),
    ],
)
def test_the_hint_says_what_is_allowed(tmp_path: Path, text: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(home=write(tmp_path, text))
    assert (caught.value.hint or "").startswith(hint)
