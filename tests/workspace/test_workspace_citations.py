"""An agent cites a summary by its name; what it says of where it comes from is filled in."""

from __future__ import annotations

from pathlib import Path

import pytest

from stillroom.config import StageTwo
from stillroom.workspace.citations import fill_citations, filled_in

HEADERS = {"rollout_summaries/a.md": {"thread_id": "1", "updated_at": "U", "rollout_path": "/r", "cwd": "/c"}}
FULL = "- rollout_summaries/a.md (cwd=/c, rollout_path=/r, updated_at=U, thread_id=1)"
NOTED = FULL[:-1] + ", the first try)"


@pytest.mark.parametrize(
    ("written", "filled"),
    [
        ("- rollout_summaries/a.md", FULL),
        ("- `rollout_summaries/a.md`", FULL),
        ("- rollout_summaries/a.md ()", FULL),
        ("- rollout_summaries/a.md (the first try)", NOTED),
        ("- rollout_summaries/a.md (cwd=/c, rollout_path=/r, updated_at=U, thread_id=2)", FULL),
        ("- rollout_summaries/a.md (thread_id=2, the first try)", NOTED),
        (NOTED, NOTED),
        ("- rollout_summaries/a.md (cwd=/c, thread_id=1, rollout_path=/r, updated_at=U)", None),
        ("- rollout_summaries/gone.md", None),
        ("- see rollout_summaries/a.md", None),
    ],
)
def test_brackets_say_what_the_file_says(written: str, filled: str | None) -> None:
    text = f"# T\n\n{written}\n- x"
    assert filled_in(text, HEADERS) == f"# T\n\n{filled or written}\n- x"


def test_the_handbook_of_a_folder_is_completed_and_no_link_is_followed(tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside.md"
    (folder / "rollout_summaries").mkdir(parents=True)
    summary = "thread_id: 1\nupdated_at: U\nrollout_path: /r\ncwd: /c\n\nthread_id: 2\n"
    (folder / "rollout_summaries" / "a.md").write_text(summary, encoding="utf-8")
    (folder / "MEMORY.md").write_text("- rollout_summaries/a.md\n", encoding="utf-8")
    fill_citations(folder, limits=StageTwo())
    assert (folder / "MEMORY.md").read_text(encoding="utf-8") == f"{FULL}\n"
    outside.write_text("- rollout_summaries/a.md\n", encoding="utf-8")
    (folder / "MEMORY.md").unlink()
    (folder / "MEMORY.md").symlink_to(outside)
    fill_citations(folder, limits=StageTwo())
    assert outside.read_text(encoding="utf-8") == "- rollout_summaries/a.md\n"
