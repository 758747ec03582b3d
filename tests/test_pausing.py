from __future__ import annotations

from pathlib import Path

from stillroom.pausing import FILE, pause, paused_since, resume, told_pause


def test_a_pause_holds_from_the_first_time_until_it_is_ended(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    assert paused_since(home) is None
    assert not resume(home)
    assert pause(home, "2026-11-30T08:00:00Z")
    assert not pause(home, "2026-11-30T09:00:00Z")
    since = paused_since(home)
    assert since == "2026-11-30T08:00:00Z"
    assert told_pause(since) == "passes are paused since 2026-11-30T08:00:00Z"
    assert resume(home)
    assert paused_since(home) is None


def test_whatever_has_its_name_pauses_and_a_text_without_end_is_shown_short(tmp_path: Path) -> None:
    """A person may have made it by hand; nobody runs a pass because it can't be read."""
    file = tmp_path / FILE
    file.write_text("", encoding="utf-8")
    assert paused_since(str(tmp_path)) == "an unknown time"
    file.write_bytes(b"since \xff" + b"x" * 1000)
    assert len(paused_since(str(tmp_path)) or "") == 40
    file.unlink()
    file.symlink_to(file)
    assert paused_since(str(tmp_path)) == "an unknown time"
    file.unlink()
    file.mkdir()
    assert paused_since(str(tmp_path)) == "an unknown time"
