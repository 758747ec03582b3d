"""The sample homes of Claude Code; run it to write anew what the reader makes of them."""

from __future__ import annotations

from golden import DATA, describe

from stillroom.sessions.agents.claude_code import reader as claude_code

SAMPLES = DATA / "claude-code"
LAYOUTS = ("1.0.100", "2.0.30", "2.1.50", "2.1.150", "2.1.332-headless", "2.1.332-interactive-hooks")


if __name__ == "__main__":
    for layout in LAYOUTS:
        (SAMPLES / layout / "expected.txt").write_text(describe(claude_code, SAMPLES / layout), encoding="utf-8")
