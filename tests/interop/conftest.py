from __future__ import annotations

from pathlib import Path

import pytest
from tests.interop.codex_client import CodexUnavailable, codex_binary


@pytest.fixture(scope="session")
def binary() -> Path:
    """The real Codex CLI."""
    try:
        return codex_binary()
    except CodexUnavailable as error:
        pytest.skip(f"the real Codex CLI can't be had: {error}")
