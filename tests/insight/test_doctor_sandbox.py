from __future__ import annotations

import sys
from pathlib import Path

import pytest

from stillroom.clock import FixedClock
from stillroom.config import JailChoice, Memories, Settings
from stillroom.insight.doctor.reachable import check_models
from stillroom.insight.doctor.sandbox import level_found
from stillroom.sandbox import LevelReport
from stillroom.sandbox.jail import Level

AUTO = 'set `memories.jail = "auto"`'
INSTALL = "bubblewrap"
NO_BWRAP = "`bwrap` is not installed"


def reports(*working: Level) -> list[LevelReport]:
    levels: tuple[Level, ...] = ("bwrap", "landlock", "seatbelt", "files")
    reasons = {"bwrap": NO_BWRAP}
    return [
        LevelReport(
            level=level, available=level in working, reason="" if level in working else reasons.get(level, "no")
        )
        for level in levels
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is nothing to choose")
@pytest.mark.parametrize(
    ("asked", "working", "by_model", "by_rules", "says", "remedy"),
    [
        ("auto", ("bwrap", "files"), "ok", "ok", "bwrap, the strongest", None),
        ("auto", ("landlock", "files"), "note", "note", "landlock (no namespaces): `bwrap` is not installed", INSTALL),
        ("auto", ("files",), "warning", "note", "files (file tools only, no shell): `bwrap`", INSTALL),
        ("auto", (), "error", "note", "none works on this machine: `bwrap` is not installed; no; no; no", INSTALL),
        ("bwrap", ("files",), "error", "note", "`memories.jail` asks for `bwrap`, which can't be had", INSTALL),
        ("seatbelt", ("bwrap",), "error", "note", "`memories.jail` asks for `seatbelt`, which can't be had: no", AUTO),
        ("landlock", ("bwrap", "landlock"), "note", "note", "landlock, as `memories.jail` asks", f"{AUTO} for `bwrap`"),
        ("landlock", ("landlock",), "note", "note", "landlock (no namespaces)", INSTALL),
        ("files", ("landlock", "files"), "note", "note", "files, as `memories.jail` asks", f"{AUTO} for `landlock`"),
    ],
)
def test_the_level_in_force_is_told_with_what_would_better_it(
    asked: JailChoice, working: tuple[Level, ...], by_model: str, by_rules: str, says: str, remedy: str | None
) -> None:
    for model, severity in (("openai:gpt-5", by_model), ("offline", by_rules)):
        told = level_found(Memories(jail=asked, consolidation_model=model), reports(*working)).finding
        assert told.severity == severity
        assert told.what.replace(" (not needed: the offline engine consolidates)", "").startswith(says)
        assert ("not needed" in told.what) == (model == "offline")
        assert told.remedy is None if remedy is None else remedy in (told.remedy or "")


def test_where_the_offline_engine_does_everything_no_model_is_asked(tmp_path: Path) -> None:
    (told,) = check_models(Settings(home=tmp_path), FixedClock(0))
    assert (told.finding.severity, told.finding.what) == (
        "ok",
        "none is configured: the offline engine does both phases",
    )
