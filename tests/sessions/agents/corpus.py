"""The sample homes of every agent, each as its client left it; what is added under `tests/data` is in every test."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from shutil import copy2
from typing import NamedTuple

from stillroom.homes import HOMES

DATA = Path(__file__).parents[2] / "data"
_CODEX_HOME = DATA.parents[1] / "examples" / "codex-home"
#: What a test expects of a sample stands beside it.
_NOT_THE_CLIENTS = frozenset({"expected.txt"})


class Sample(NamedTuple):
    """One layout, or version, of one agent."""

    agent: str
    folder: Path

    def __str__(self) -> str:
        return f"{self.agent}-{self.folder.name}"

    def files(self) -> list[Path]:
        files = (path for path in sorted(self.folder.rglob("*")) if path.is_file())
        return [path for path in files if path.name not in _NOT_THE_CLIENTS]

    def put(self, home: Path) -> Path:
        """A copy that a test may change. Dumps of databases are made into databases."""
        for path in self.files():
            copy = home / path.relative_to(self.folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".sql":
                with closing(sqlite3.connect(copy.with_suffix(".db"))) as db:
                    db.executescript(path.read_text(encoding="utf-8"))
            else:
                copy2(path, copy)
        return home


def samples_of(agent: str) -> list[Sample]:
    """The layouts of one agent."""
    if agent == "codex":
        return [Sample(agent, _CODEX_HOME)]
    return [Sample(agent, folder) for folder in sorted((DATA / agent).glob("*")) if folder.is_dir()]


CORPUS = [sample for agent in HOMES for sample in samples_of(agent)]
