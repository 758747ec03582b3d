from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from stillroom.config import StageTwo
from stillroom.sandbox import Jail, JailLimits, LevelReport, Worker, choose, probe

#: The unit tests try one jail with a shell, `make slow` every one.
LEVELS = ("bwrap", "landlock", "seatbelt")
SHELLS = ["bwrap", *(pytest.param(level, marks=pytest.mark.slow) for level in LEVELS[1:])]


@pytest.fixture
def limits() -> JailLimits:
    small = StageTwo(
        max_folder_bytes=8 * 1024 * 1024, max_folder_entries=500, max_call_seconds=10, max_shell_seconds=10
    )
    return JailLimits.of(small)


@pytest.fixture(scope="session")
def reports() -> dict[str, LevelReport]:
    return {report.level: report for report in probe()}


def _chosen(level: str, reports: dict[str, LevelReport]) -> Jail:
    if not reports[level].available:
        pytest.skip(f"no {level} jail here: {reports[level].reason}")
    return choose(level)  # type: ignore[arg-type]  # the parameters of the fixtures are levels


@pytest.fixture(params=["files", *(pytest.param(level, marks=pytest.mark.slow) for level in LEVELS)])
def any_jail(request: pytest.FixtureRequest, reports: dict[str, LevelReport]) -> Jail:
    """Every level that this machine has."""
    return _chosen(request.param, reports)


@pytest.fixture(params=SHELLS)
def shell_jail(request: pytest.FixtureRequest, reports: dict[str, LevelReport]) -> Jail:
    """Every level with a shell that this machine has."""
    return _chosen(request.param, reports)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The memory folder, with a neighbour that must not be reached."""
    inside = tmp_path / "staging"
    inside.mkdir()
    (inside / "MEMORY.md").write_text("one\ntwo\nthree\n", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("outside", encoding="utf-8")
    return inside


@pytest.fixture
def in_jail(limits: JailLimits) -> Callable[[Jail, Path, Callable[[Worker], Coroutine[Any, Any, None]]], None]:
    """Run a scene with a worker, and see that nothing of it is left."""

    def run(
        jail: Jail,
        folder: Path,
        scene: Callable[[Worker], Coroutine[Any, Any, None]],
        limits: JailLimits = limits,
    ) -> None:
        async def whole() -> None:
            async with asyncio.timeout(60), await jail.start(folder, limits=limits) as worker:
                await scene(worker)

        asyncio.run(whole())

    return run
