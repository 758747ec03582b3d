"""The words that phase 2 sends: `consolidation.md` as instructions, `task.md` as the task, filled in for one folder.

What is filled in comes from code alone; nothing that a session said gets into these texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stillroom.config import StageTwo
from stillroom.template import render

_DIFF_FILE = "phase2_workspace_diff.md"
_BYTES_PER_TOKEN = 4
_TEMPLATES = ("consolidation.md", "skills.md", "extensions.md", "task.md", "corrections.md")
#: A procedure that repeats shows in no fewer sessions.
_SESSIONS_FOR_SKILLS = 5
_VERSION_DIGITS = 12
#: The checks that the agent hears of; a longer list would only hide the first ones.
_MAX_FINDINGS = 40
_MAX_FINDING_CHARS = 500

_SKILL_ROW = "| `skills/<name>/` | procedures that repeat | **yes** |\n"
_SKILL_POINTER = "- Point to a skill with a line in a section: `- Related skill: skills/<name>/SKILL.md`.\n"
_EXTENSION_ROW = "| `extensions/<name>/` | notes and resources from other sources, with `instructions.md` each | no |\n"


@dataclass(frozen=True, slots=True)
class AgentPrompt:
    """What the consolidation agent is told."""

    instructions: str
    task: str


def render_prompt(folder: Path, *, limits: StageTwo | None = None, reply_tokens: int | None = None) -> AgentPrompt:
    """The prompt for one staging folder: its mode, its state, and of skills and extensions only if there may be some.

    `reply_tokens`: what one answer may have; None: as its provider likes.
    """
    limits = limits or StageTwo()
    extended = (folder / "extensions").is_dir()
    skilled = (folder / "skills").is_dir() or _sessions(folder) >= _SESSIONS_FOR_SKILLS
    instructions = render(
        read("consolidation.md"),
        diff_file=_DIFF_FILE,
        extension_rows=_EXTENSION_ROW if extended else "",
        extension_rules=read("extensions.md") if extended else "",
        skill_row=_SKILL_ROW if skilled else "",
        skill_rules=read("skills.md") if skilled else "",
        skill_pointer=_SKILL_POINTER if skilled else "",
        extension_deletions=" and `extensions/*/resources/*.md`" if extended else "",
        max_handbook_bytes=f"{limits.max_handbook_bytes:,}",
        max_summary_bytes=f"{limits.max_summary_tokens * _BYTES_PER_TOKEN:,}",
    )
    handbook, summary = _start(folder / "MEMORY.md"), _start(folder / "memory_summary.md")
    state = f"`MEMORY.md`: {_size(handbook)}. `memory_summary.md`: {_size(summary)}"
    if summary and summary.partition(b"\n")[0] != b"v1":
        state += ", but its first line is not `v1`: build it anew after `MEMORY.md`"
    room = f"At most {reply_tokens:,} tokens" if reply_tokens else "Some thousand tokens"
    return AgentPrompt(
        instructions=instructions,
        task=render(
            read("task.md"),
            mode="INCREMENTAL UPDATE" if handbook and handbook.strip() else "INIT",
            state=f"{state}.",
            reply_room=room,
            diff_file=_DIFF_FILE,
        ),
    )


def _sessions(folder: Path) -> int:
    return sum(1 for _ in (folder / "rollout_summaries").glob("*.md"))


def prompt_version() -> str:
    """Which words these are: a hash of all templates, so that a result can be told from one by other words."""
    texts = "\0".join(map(read, _TEMPLATES))
    return hashlib.sha256(texts.encode()).hexdigest()[:_VERSION_DIGITS]


def corrections_prompt(findings: Sequence[str]) -> str:
    """What the validators found, for the agent to mend. File names in it are the agent's own."""
    shown = [f"- {' '.join(finding.split())[:_MAX_FINDING_CHARS]}" for finding in findings[:_MAX_FINDINGS]]
    if len(findings) > _MAX_FINDINGS:
        shown.append(f"- [cut: {len(findings) - _MAX_FINDINGS} more]")
    return render(read("corrections.md"), findings="\n".join(shown))


def read(name: str) -> str:
    """One of the templates beside this module."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _start(path: Path) -> bytes | None:
    """The file's contents, as far as the prompt needs to know them; None when it is missing."""
    try:
        if path.is_symlink():
            return None
        return path.read_bytes()
    except (FileNotFoundError, IsADirectoryError):
        return None


def _size(content: bytes | None) -> str:
    if content is None:
        return "missing"
    return f"{len(content):,} bytes" if content.strip() else "empty"
