from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from tests.marks import may_want

TESTS = Path(__file__).parent

# Thousands of tests and all that they import are made once and stay: looking through them again and again for what may
# go took a quarter of the time that they take to collect.
gc.disable()

settings.register_profile("default", deadline=None, max_examples=25)
#: `make slow` looks closer.
settings.register_profile("thorough", deadline=None, max_examples=250)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

_OF_THE_USER = (
    *("STILLROOM_", "CODEX_", "CLAUDE_", "OPENAI_", "ANTHROPIC_", "GIT_"),
    *(
        "XDG_DATA_HOME",
        "OPENCODE_",
        "GEMINI_",
        "QWEN_",
        "COPILOT_",
        "PI_",
        "LETTA_",
        "KIMI_",
        "CURSOR_",
        "AIDER_",
        "OPENHANDS_",
        "CLINE_",
        "CONTINUE_",
        "MSWEA_",
        "XDG_CONFIG_HOME",
    ),
)

#: Every test here runs whole passes, programs or servers: `make slow` has them, the unit tests are about one room.
WHOLE = (
    "budget/adapters",
    "cli/test_bad_decisions.py",
    "cli/test_bad_input.py",
    "cli/test_cli_folder.py",
    "cli/test_cli_ingest.py",
    "cli/test_cli_insight.py",
    "cli/test_cli_locked.py",
    "cli/test_cli_recall.py",
    "cli/test_cli_run.py",
    "cli/test_cli_search.py",
    "cli/test_cli_status.py",
    "cli/test_cli_switches.py",
    "consolidate/test_consolidation_agent.py",
    "consolidate/test_consolidation_history.py",  # imports Pydantic AI, which takes longer than its tests
    "evaluate/test_measures.py",
    "evaluate/test_mine.py",
    "insight/test_doctor.py",
    "integrations/test_doctor_command.py",
    "integrations/test_hook.py",
    "integrations/test_init.py",
    "mcp",
    "models/test_agent_model.py",
    "models/test_allowance.py",
    "models/test_model_clients.py",  # imports Pydantic AI and SDKs
    "pipeline",
    "reviewing",
    "recording/adapters",
    "sandbox/test_jail_tools.py",
    "service",
    "undoing/test_declaring.py",
    "undoing/test_forgetting.py",
    "undoing/test_redacting.py",
    "undoing/test_undo.py",
    "undoing/test_undoing_faults.py",
)
_WHOLE = frozenset(TESTS / place for place in WHOLE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What `-m` leaves out as a whole is not even imported: that would cost more than many tests."""
    left_out = _is_whole(collection_path) and not may_want(config.getoption("markexpr"), always="slow")
    return True if left_out else None


@pytest.hookimpl(tryfirst=True)  # ahead of `-m`, which looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    whole = {path for path in {item.path for item in items} if _is_whole(path)}
    for item in items:
        if item.path in whole:
            item.add_marker(pytest.mark.slow)


def _is_whole(path: Path) -> bool:
    return any(parent in _WHOLE for parent in (path, *path.parents))


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def _nothing_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test sees the homes, keys or settings of whoever runs it: the home is a folder that is not there."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(_OF_THE_USER):
                patch.delenv(name)
        patch.setenv("HOME", str(tmp_path_factory.getbasetemp() / "nobody"))
        yield


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
