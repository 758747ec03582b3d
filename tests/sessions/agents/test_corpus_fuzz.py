"""Every agent's samples with something else in the place of a value, a cell or some bytes: nothing of it raises."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from corpus import CORPUS, Sample
from golden import LIMIT
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stillroom.errors import RolloutError
from stillroom.sessions.discovery import Broken, Found, Unchanged
from stillroom.sessions.events import read_events
from stillroom.sessions.readers import open_thread, reader_of
from stillroom.thread import FileStamp

#: Of another type, or of the same and odd.
STRANGE = (None, True, 7, -1, 1.5, 10**30, "", "x\ny", [], {}, [3], [{}], {"type": 3}, {"text": 4}, [[]])
CELLS = (None, 7, -1, 1.5, "", "x", b"", b"\xff\x00", "[]", "{", '{"type":3}')


@pytest.mark.slow
@given(sample=st.sampled_from(CORPUS), seed=st.integers(0, 1 << 32))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_no_value_in_the_place_of_another_raises(tmp_path_factory, sample: Sample, seed: int) -> None:
    choice = random.Random(seed)
    home = sample.put(tmp_path_factory.mktemp("fuzz"))
    path = choice.choice(files_in(home))
    match path.suffix:
        case ".json" | ".jsonl":
            damage_values(path, choice)
        case ".db":
            damage_cells(path, choice)
        case _:
            damage_bytes(path, choice)
    read_all(sample.agent, home)


@pytest.mark.slow
@given(sample=st.sampled_from(CORPUS), seed=st.integers(0, 1 << 32))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_a_file_that_is_cut_or_overwritten_anywhere_raises_nothing_and_fails_alone(
    tmp_path_factory, sample: Sample, seed: int
) -> None:
    choice = random.Random(seed)
    home = sample.put(tmp_path_factory.mktemp("fuzz"))
    known = read_all(sample.agent, home)
    path = choice.choice(files_in(home))
    damage_bytes(path, choice)
    named = read_all(sample.agent, home, known)
    # What is known of others stays; a description beside them may belong to all.
    others = {name for name in known if Path(name.partition("#")[0]).parent not in (path, *path.parents, path.parent)}
    assert others <= named.keys()
    read_all(sample.agent, home)


def read_all(agent: str, home: Path, known: dict[str, FileStamp] | None = None) -> dict[str, FileStamp]:
    """Look at a home and read what is new; the threads that are there, by their paths."""
    there: dict[str, FileStamp] = {}
    for found in list(reader_of(agent).discover(home, known or {}, max_line_bytes=LIMIT)):
        match found:
            case Found(thread, stamp):
                there[thread.rollout_path] = stamp
                try:
                    with open_thread(thread, max_line_bytes=LIMIT) as items:
                        read_events(items)
                except RolloutError:  # what says of itself that it can't be read
                    continue
            case Unchanged(path):
                there[path] = (known or {})[path]
            case Broken(path, reason):
                assert path and reason
    return there


def files_in(home: Path) -> list[Path]:
    return [path for path in sorted(home.rglob("*")) if path.is_file()]


def damage_values(path: Path, choice: random.Random) -> None:
    """Put up to four strange values into a document, or into one line."""
    lines = [path.read_text(encoding="utf-8")] if path.suffix == ".json" else path.read_text("utf-8").splitlines()
    number = choice.randrange(len(lines) or 1)
    try:
        lines[number] = strange(lines[number], choice)
    except (ValueError, IndexError):
        return
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def damage_cells(path: Path, choice: random.Random) -> None:
    """Put up to four strange values into the cells of a database, or into the JSON that stands there."""
    with closing(sqlite3.connect(path)) as db, db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        filled = [name for name in tables if db.execute(f'SELECT 1 FROM "{name}"').fetchone()]
        for _ in range(choice.randint(1, 4)):
            table = choice.choice(filled)
            column = choice.choice([row[1] for row in db.execute(f'PRAGMA table_info("{table}")')])
            keys = [key for (key,) in db.execute(f'SELECT rowid FROM "{table}"')]
            key = choice.choice(keys)
            (value,) = db.execute(f'SELECT "{column}" FROM "{table}" WHERE rowid = ?', (key,)).fetchone()
            try:
                value = strange(value, choice)
            except (ValueError, TypeError):
                value = choice.choice(CELLS)
            with suppress(sqlite3.IntegrityError):  # it is no value for this column
                db.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (value, key))


def damage_bytes(path: Path, choice: random.Random) -> None:
    """Cut a file anywhere, or write something over a part of it."""
    data = bytearray(path.read_bytes())
    at = choice.randrange(len(data) + 1)
    if choice.random() < 0.5:
        del data[at:]
    else:
        data[at : at + choice.randrange(200)] = choice.randbytes(choice.randrange(80))
    path.write_bytes(data)


def strange(text: str, choice: random.Random) -> str:
    """JSON with up to four strange values in it. Raises `ValueError` for what is no JSON."""
    value = json.loads(text)
    for _ in range(choice.randint(1, 4)):
        places = list(_places(value))
        if places:
            inside, name = choice.choice(places)
            inside[name] = json.loads(json.dumps(choice.choice(STRANGE)))
    return json.dumps(value)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    names = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for name in names:
        yield value, name
        yield from _places(value[name])
