"""Runs the offline engine's second phase on the sets in `sets/` and says which expectations fail."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.quality.build import from_table, thread_of, write_rollout
from tests.quality.score import distil_offline

from stillroom.config import StageTwo
from stillroom.offline import consolidate
from stillroom.store.records import Stage1Output
from stillroom.workspace.artifacts import render
from stillroom.workspace.syncing import sync

ROUNDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidated:
    """What came of a set: the two files, and every expectation that they don't meet."""

    memory: str
    summary: str
    failures: tuple[str, ...]


def run(path: Path, work: Path) -> Consolidated:
    """Two rounds: the sessions of the first, a person's edits, then all sessions that are still there."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    folder, home = work / "memories", work / "home"
    folder.mkdir()
    for note in table.get("notes", []):
        notes = folder / "extensions" / "ad_hoc" / "notes"
        notes.mkdir(parents=True, exist_ok=True)
        (notes / note["name"]).write_text(note["text"], encoding="utf-8")
    for number in range(1, ROUNDS + 1):
        present = [s for s in table["sessions"] if s.get("round", 1) <= number < s.get("gone_in", ROUNDS + 1)]
        outputs = [output for s in present if (output := _output(s, home))]
        outputs.sort(key=lambda output: output.thread_id)
        sync(folder, render(outputs))
        consolidate(folder, outputs, now=int(table["now"].timestamp()), limits=StageTwo())
        if number == 1:
            for edit in table.get("edits", []):
                _insert(folder / edit["file"], after=edit["after"], line=edit["insert"])
    memory = (folder / "MEMORY.md").read_text(encoding="utf-8")
    summary = (folder / "memory_summary.md").read_text(encoding="utf-8")
    return Consolidated(memory=memory, summary=summary, failures=tuple(_failures(table["expect"], memory, summary)))


def _output(session: dict[str, Any], home: Path) -> Stage1Output | None:
    scenario = from_table(session["name"], session)
    rollout = write_rollout(scenario, home)
    draft, thread = distil_offline(scenario, rollout), thread_of(scenario, rollout)
    if draft is None:
        return None
    return Stage1Output(
        thread_id=thread.thread_id,
        source_updated_at=thread.updated_at,
        raw_memory=draft.raw_memory,
        rollout_summary=draft.rollout_summary,
        rollout_slug=draft.rollout_slug,
        rollout_path=thread.rollout_path,
        cwd=thread.cwd,
        git_branch=thread.git_branch,
        git_origin_url=thread.git_origin_url,
        generated_at=thread.updated_at + 3600,
        engine="offline",
    )


def _insert(path: Path, *, after: str, line: str) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    at = next((number for number, text in enumerate(lines) if re.match(after, text)), len(lines) - 1)
    lines.insert(at + 1, line)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _failures(expect: dict[str, Any], memory: str, summary: str) -> list[str]:
    found = []
    for key, text in (("memory", memory), ("summary", summary)):
        wanted = expect.get(key, [])
        found += [f"{key}: no line with {entry['all']}" for entry in wanted if not _matching(text, entry)]
        for entry in expect.get(f"not_{key}", []):
            found += [f"{key}: must not hold `{line}`" for line in _matching(text, entry)]
    for entry in expect.get("once", []):
        lines = _matching(memory, entry)
        if len(lines) != 1:
            found.append(f"memory: {len(lines)} lines with {entry['all']}, not 1: {lines}")
    for entry in expect.get("groups", []):
        for heading, body in _groups(memory):
            here, inside = f"cwd={entry['cwd']}" in body or entry["cwd"] in heading, bool(_matching(body, entry))
            if here != inside:
                found.append(f"group `{heading}`: {entry['all']} is {'there' if inside else 'missing'}")
    return found


def _matching(text: str, entry: dict[str, Any]) -> list[str]:
    """The bullets and paragraphs of `text` that an entry describes; keyword lists and file references don't count."""
    lines = [line for line in text.splitlines() if line.strip() and "rollout_path=" not in line]
    every = [re.compile(pattern, re.I) for pattern in entry["all"]]
    unless = re.compile(entry["unless"], re.I) if "unless" in entry else None
    kept = []
    heading = ""
    for line in lines:
        if line.startswith("#"):
            heading = line
        if heading.strip() == "### keywords" or line.startswith(("#", "scope:", "applies_to:")):
            continue
        if all(p.search(line) for p in every) and not (unless and unless.search(line)):
            kept.append(line)
    return kept


def _groups(memory: str) -> list[tuple[str, str]]:
    parts = re.split(r"^# Task Group: (.*)$", memory, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))
