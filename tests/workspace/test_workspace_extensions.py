from __future__ import annotations

from pathlib import Path

import pytest

from stillroom.workspace.extensions import INSTRUCTIONS, prune_resources, resource_timestamp, seed_instructions

DAY = 86_400
NOW = 1_775_476_799 + 7 * DAY


def test_instructions_are_seeded_once_and_an_edit_is_kept(tmp_path: Path) -> None:
    assert seed_instructions(tmp_path)
    path = tmp_path / INSTRUCTIONS
    assert "[ad-hoc note]" in path.read_text(encoding="utf-8")
    path.write_text("my own", encoding="utf-8")
    assert not seed_instructions(tmp_path)
    assert path.read_text(encoding="utf-8") == "my own"


def test_seeding_does_not_write_through_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "root").mkdir()
    (tmp_path / "root/extensions").symlink_to(outside)
    with pytest.raises(Exception, match="can't be created"):
        seed_instructions(tmp_path / "root")
    assert not list(outside.iterdir())


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("2026-04-06T11-59-59-note.md", 1_775_476_799),
        ("2026-04-06T11-59-59", 1_775_476_799),
        ("2026-13-06T11-59-59-note.md", None),
        ("2026-04-06 11-59-59-note.md", None),
        ("note.md", None),
    ],
)
def test_resource_timestamp(name: str, seconds: int | None) -> None:
    """Spec §10.2 item 22."""
    assert resource_timestamp(name) == seconds


def test_pruning_takes_what_is_a_week_old_and_nothing_else(tmp_path: Path) -> None:
    kept = [
        "extensions/chat/instructions.md",
        "extensions/chat/resources/2026-04-06T12-00-00-newer.md",
        "extensions/chat/resources/2026-04-01T00-00-00-picture.png",
        "extensions/chat/resources/no-date.md",
        "extensions/chat/resources/deep/2026-04-01T00-00-00-nested.md",
        "extensions/chat/2026-04-01T00-00-00-outside.md",
        "extensions/loose/resources/2026-04-01T00-00-00-no-instructions.md",
        "extensions/file.md",
    ]
    gone = [
        "extensions/chat/resources/2026-04-01T00-00-00-older.md",
        "extensions/chat/resources/2026-04-06T11-59-59-cutoff.md",
    ]
    for path in kept + gone:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x", encoding="utf-8")
    outside = tmp_path / "outside.md"
    outside.touch()
    (tmp_path / "extensions/chat/resources/2026-04-01T00-00-00-link.md").symlink_to(outside)
    assert prune_resources(tmp_path, now=NOW, days=7) == gone
    assert all((tmp_path / path).exists() for path in kept)
    assert outside.exists()


def test_pruning_without_extensions_does_nothing(tmp_path: Path) -> None:
    assert prune_resources(tmp_path, now=NOW, days=7) == []
