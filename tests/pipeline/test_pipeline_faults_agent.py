"""An agent that does everything that it should not, in whole passes with the real jail."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from faulty_house import FaultyHouse, files

from stillroom.config import Memories, StageTwo
from stillroom.consolidate.outcome import Consolidated
from stillroom.sandbox import probe
from stillroom.testing import SAMPLE_MEMORY, CallTool, LoopbackModel, RecordedRequest, Reply, Say

LEVELS = probe(until_one_works=True)
STRONGEST = LEVELS[-1]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        STRONGEST.level == "files",
        reason="no jail with a shell here: " + "; ".join(f"{level.level}: {level.reason}" for level in LEVELS),
    ),
]

WORK = """
f=$(cd rollout_summaries && ls | grep -v forged | head -1)
cat > MEMORY.md <<END
# Task Group: ledgerkit

scope: the ledgerkit library
applies_to: cwd=/home/dev/work/ledgerkit; reuse_rule=safe in every checkout

## Task 1: what the agent wrote

### rollout_summary_files

- rollout_summaries/$f (cwd=/home/dev/work/ledgerkit, rollout_path=unknown, updated_at=2026-11-29)

### keywords

- ledgerkit, split_evenly
END
printf 'v1\\n\\n## User Profile\\n\\n## User preferences\\n\\n## General Tips\\n' > memory_summary.md
"""
MARK = "stillroom_fault_4711_"
#: What it does, and whether its work may be published all the same.
MISDEEDS: dict[str, tuple[str, str]] = {
    "links": ("ln -s /etc/passwd skills; ln -s / root; ln /etc/passwd hard", "published"),
    "binary": ("mkdir -p skills/x; head -c 5000 /dev/urandom > skills/x/SKILL.md", "failed_invalid_artifacts"),
    "binary handbook": ("", "failed_invalid_artifacts"),
    "one gigabyte": ("mkdir -p skills/x; head -c 1073741824 /dev/zero > skills/x/big.md", "failed"),
    "many files": ("mkdir -p skills/x; for i in $(seq 4000); do : > skills/x/$i.md; done", "any"),
    "deletes all": ("rm -rf ./* .[a-z]*", "published"),
    "edits inputs": (
        "echo forged >> raw_memories.md; echo forged > rollout_summaries/forged.md; rm extensions/ad_hoc/*",
        "published",
    ),
    "writes .git": ("mkdir -p .git/hooks; printf '[core]\\nfsmonitor=touch /tmp/x\\n' > .git/config", "failed_invalid"),
    "git attributes": ("echo '* filter=x' > .gitattributes", "failed_invalid"),
    "odd names": ("mkdir -p 'skills/a\nb'; echo x > 'skills/a\nb/SKILL.md'; echo x > 'skills/a\nb/-rf'", "published"),
    "deep": ("d=skills; for i in $(seq 200); do d=$d/d; done; mkdir -p $d; echo x > $d/x.md", "failed_invalid"),
    "closed folder": ("mkdir -p skills/x; echo x > skills/x/SKILL.md; chmod 0 skills/x skills", "any"),
    "pipe": ("mkdir skills; mkfifo skills/pipe", "published"),
    "floods tmp": (f"head -c 3000000000 /dev/zero > /tmp/{MARK}; head -c 3000000000 /dev/zero > /dev/shm/x", "any"),
    "forks": ("b() { b | b & }; b; b; b", "any"),
    "background": (f"(exec -a {MARK} sleep 1000) & (setsid sh -c 'exec -a {MARK} sleep 1000') & true", "published"),
    "floods output": ("yes | head -c 50000000", "published"),
}


@pytest.fixture
def house(tmp_path: Path) -> FaultyHouse:
    return FaultyHouse(tmp_path)


def processes_marked() -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if MARK.encode() in (process / "cmdline").read_bytes():
                found.append(process.name)
        except OSError:
            continue
    return [pid for pid in found if int(pid) != os.getpid()]


def test_an_agent_that_fills_its_folder_is_told_and_may_clean_it_up(house: FaultyHouse) -> None:
    fill = "for i in 1 2 3 4; do head -c 900000 /dev/zero > big$i; done; sleep 5"
    turns = ["call", fill, "call", WORK, "done", "call", "sleep 0.2; rm big*; sleep 0.2", "done"]
    told: list[str] = []

    def answer(request: RecordedRequest) -> Reply:
        if not request.json.get("tools"):
            return Say(SAMPLE_MEMORY)
        told.append(str(request.json))
        return CallTool("shell", {"command": turns.pop(0)}) if turns.pop(0) == "call" else Say("done")

    with LoopbackModel(answer) as server:
        house.set(
            memories=Memories(extract_model="loopback:gpt-5-mini", consolidation_model="loopback:gpt-5"),
            providers={"loopback": server.provider()},
            stage_two=StageTwo(max_folder_bytes=2_000_000, max_file_bytes=1_000_000),
        )
        report = house.run()
    assert isinstance(report.consolidate, Consolidated), report.consolidate
    assert "the tools were stopped: the folder holds" in told[1]
    assert "the folder holds more than 2,000,000 bytes" in told[3]
    assert turns == []


@pytest.mark.parametrize("name", MISDEEDS)
def test_whatever_the_agent_does_the_folder_is_whole_and_nothing_else_is_touched(house: FaultyHouse, name: str) -> None:
    misdeed, ends = MISDEEDS[name]
    turns: list[Reply] = [CallTool("shell", {"command": misdeed}), CallTool("shell", {"command": WORK}), Say("done")]
    if name == "binary handbook":
        turns = [*turns[1:2], CallTool("shell", {"command": "head -c 9000 /dev/urandom >> MEMORY.md"}), Say("done")]

    def answer(request: RecordedRequest) -> Reply:
        if not request.json.get("tools"):
            return Say(SAMPLE_MEMORY)
        return turns.pop(0) if len(turns) > 1 else turns[0]

    house.root.mkdir(parents=True)
    (house.root / "mine.md").write_text("mine", encoding="utf-8")
    codex = files(house.codex)
    with LoopbackModel(answer) as server:
        house.set(
            memories=Memories(extract_model="loopback:gpt-5-mini", consolidation_model="loopback:gpt-5"),
            providers={"loopback": server.provider()},
            stage_two=StageTwo(max_requests=12, max_shell_seconds=8, max_run_seconds=60, max_folder_entries=500),
        )
        report = house.run()
    outcome = report.consolidate
    assert isinstance(outcome, Consolidated), outcome
    reason = outcome.fallback_reason
    if ends == "published":
        assert reason is None, outcome
    elif ends != "any":
        assert reason is not None and reason.startswith(ends)
        assert len(reason) < 2000
    assert report.failed is (reason is not None)
    present = files(house.root)
    assert present["mine.md"] == b"mine"
    assert b"forged" not in b"".join(present.values())
    assert "MEMORY.md" in present
    assert "extensions/ad_hoc/instructions.md" in present
    assert not any(path.is_symlink() or path.is_fifo() for path in house.root.rglob("*"))
    assert sum(map(len, present.values())) < 1_000_000
    assert files(house.codex) == codex
    assert processes_marked() == []
    assert [path.name for path in house.settings.staging.iterdir() if path.name not in (".lock", "spare")] == []
    assert not Path(f"/tmp/{MARK}").exists()
    house.set(memories=Memories())
    assert not house.later().failed
