"""Secrets that were stored under earlier rules leave every place, and only their kinds are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from undoing_house import House, every_byte

from stillroom.cli.app import run_command
from stillroom.config import Memories, StageOne
from stillroom.consolidate.outcome import Consolidated
from stillroom.offline.folder.byhand import key, split_record
from stillroom.store.records import Stage1Draft
from stillroom.undoing.redacting import find_secrets, redact_stored
from stillroom.workspace.git import Repository

# Put together here, so that no scanner takes this file for a leak.
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
OTHER = "ghp_" + "Z9y8X7w6V5u4T3s2R1q0P9o8N7m6L5k4J3i2"


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A home that stored a token when no rule knew it: in a session's output, an edit, a note, a log and a version."""
    house = House(tmp_path)
    house.run(max_threads=5)
    with house.store() as store:
        (claim,) = store.extraction.claim(
            worker_id="w", current_thread_id=None, memories=Memories(), stage=StageOne(), max_claims=8, backfill=True
        )
        draft = Stage1Draft(raw_memory=f"### Task 1: push\n\n- used {TOKEN}\n", rollout_summary=f"pushed with {TOKEN}")
        assert store.extraction.finish(claim, draft, engine="offline")
    handbook = house.root / "MEMORY.md"
    handbook.write_text(f"{handbook.read_text(encoding='utf-8')}\n- mine: {OTHER}\n", encoding="utf-8")
    house.run(hours=8)
    handbook.write_text(f"{handbook.read_text(encoding='utf-8')}\n- mine: {OTHER}\n", encoding="utf-8")
    (house.home / "hook.log").write_text(f"failed with {TOKEN}\n", encoding="utf-8")
    assert every_byte(house.home).count(TOKEN) > 4
    return house


def test_secrets_leave_every_place_and_their_kinds_are_told(house: House) -> None:
    with house.store() as store:
        before = every_byte(house.home)
        (kind,) = find_secrets(house.settings, store)
        assert every_byte(house.home) == before
        assert (kind.kind, kind.secrets) == ("github_token", 2)
        assert {"MEMORY.md", "history.git", "hook.log", "raw_memories.md", "state.sqlite3"} < set(kind.places)
        done = redact_stored(house.settings, store, now=house.clock.now())
        assert done.is_complete and done.kinds == (kind,)
        assert find_secrets(house.settings, store) == ()
    everything = every_byte(house.home)
    assert TOKEN not in everything and OTHER not in everything
    assert "[REDACTED_SECRET:github_token]" in everything
    assert Repository(house.settings.history).run("log", "-1", "--format=%s").decode().strip() == "Redact 2 secrets"
    said = house.said()
    assert "- mine: [REDACTED_SECRET:github_token]" in said["MEMORY.md"]
    assert isinstance(house.run(hours=8).consolidate, Consolidated)  # of the edit
    assert house.said() == said


def test_a_generated_line_without_its_secret_is_still_generated(house: House) -> None:
    plain = (house.root / "MEMORY.md").read_text(encoding="utf-8")
    (line,) = [line for line in plain.splitlines() if line.startswith("scope: ")][:1]
    leaky = f"{line} {OTHER}"
    (house.root / "MEMORY.md").write_text(plain.replace(line, leaky), encoding="utf-8")
    record = house.root / ".stillroom-lines"
    text = record.read_text(encoding="utf-8")
    assert key(line) in text
    record.write_text(text.replace(key(line), key(leaky)), encoding="utf-8")
    with house.store() as store:
        assert redact_stored(house.settings, store, now=house.clock.now()).is_complete
    handbook = (house.root / "MEMORY.md").read_text(encoding="utf-8")
    clean = next(each for each in handbook.splitlines() if each.startswith(line) and "REDACTED" in each)
    expected = split_record(text.replace(key(line), key(clean)))[1]
    assert split_record(record.read_text(encoding="utf-8"))[1] == expected


def test_the_command_shows_kinds_and_never_a_secret(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["redact", "--retro", "--home", str(house.home)]
    assert run_command(["redact", "--home", str(house.home)]) == 2
    assert run_command([*words, "--dry-run"]) == 0
    told = capsys.readouterr().err
    assert "2 × github_token  in MEMORY.md" in told
    assert run_command(words) == 2  # nobody is there to be asked
    assert run_command([*words, "--yes", "--json"]) == 0
    answer = capsys.readouterr()
    assert json.loads(answer.out)["done"]["left"] == []
    assert run_command([*words, "--yes"]) == 0
    last = capsys.readouterr().err
    assert "no secret is stored" in last
    assert "ghp_" not in told + answer.out + answer.err + last
