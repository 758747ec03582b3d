"""Every agent's samples with a few values in the place of others: nothing that stands in a file raises."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from shutil import copy2
from typing import Any

import pytest
from golden import DATA, LIMIT
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stillroom.errors import RolloutError
from stillroom.homes import HOMES
from stillroom.rollouts.events import read_events
from stillroom.rollouts.found import Found
from stillroom.rollouts.readers import reader_of

#: Of another type, or of the same and odd.
STRANGE = (None, True, 7, -1, 1.5, 10**30, "", "x\ny", [], {}, [3], [{}], {"type": 3}, {"text": 4}, [[]])
layouts = st.sampled_from(
    [folder for agent in HOMES for folder in sorted((DATA / agent).glob("*")) if any(folder.rglob("*.json*"))]
)


@pytest.mark.slow
@given(layout=layouts, seed=st.integers(0, 1 << 32))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_no_value_in_the_place_of_another_raises(tmp_path_factory, layout: Path, seed: int):
    choice = random.Random(seed)
    home = tmp_path_factory.mktemp("fuzz")
    files = [_copied(path, layout, home) for path in sorted(layout.rglob("*")) if path.is_file()]
    _damage(choice.choice([path for path in files if path.suffix in (".json", ".jsonl")]), choice)
    reader = reader_of(layout.relative_to(DATA).parts[0])
    for found in list(reader.discover(home, {}, max_line_bytes=LIMIT)):
        if isinstance(found, Found):
            try:
                with reader.open_items(Path(found.thread.rollout_path), max_line_bytes=LIMIT) as items:
                    read_events(items)
            except RolloutError:  # what says of itself that it can't be read
                continue


def _copied(path: Path, layout: Path, home: Path) -> Path:
    copy = home / path.relative_to(layout)
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy2(path, copy)
    return copy


def _damage(path: Path, choice: random.Random) -> None:
    """Put up to four strange values into a document, or into one line."""
    lines = [path.read_text(encoding="utf-8")] if path.suffix == ".json" else path.read_text("utf-8").splitlines()
    number = choice.randrange(len(lines) or 1)
    try:
        value = json.loads(lines[number])
    except (ValueError, IndexError):
        return
    for _ in range(choice.randint(1, 4)):
        places = list(_places(value))
        if places:
            inside, name = choice.choice(places)
            inside[name] = json.loads(json.dumps(choice.choice(STRANGE)))
    lines[number] = json.dumps(value)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    names = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for name in names:
        yield value, name
        yield from _places(value[name])
