"""What is still to be done to bring a result into the memory folder, kept on disk before the first of it is done."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

import msgspec

from stillroom import folders
from stillroom.errors import WorkspaceError
from stillroom.workspace.artifacts import is_written_by_code
from stillroom.workspace.git import Content
from stillroom.workspace.tree import Entry, blob_id, naming, opened, write_new

Checkpoint = Callable[[str], None]


def nothing(_: str) -> None:
    """The checkpoint that only tests replace."""


class Operation(NamedTuple):
    """One path of the folder: what it must still be, and what it becomes. None: absent."""

    path: str
    before: Entry | None
    after: Entry | None


class Journal(msgspec.Struct, frozen=True):
    """Everything that has to be done, before the first of it is."""

    NAME: ClassVar[str] = "journal.json"
    CONTENTS: ClassVar[str] = "contents"

    run_id: str
    root: Path
    message: str
    now: int
    head: str | None
    operations: list[Operation]
    #: What a person changed since the old baseline, as the agent saw it; None removes a path. Committed first.
    edits: dict[str, Entry | None]
    #: Differences of the new baseline from the old one with these edits.
    commit: dict[str, Entry | None]
    #: The same, for paths where a person's version stays: what the agent saw.
    seen: dict[str, Entry | None]

    @classmethod
    def plan(
        cls,
        *,
        run_id: str,
        root: Path,
        message: str,
        now: int,
        head: str | None,
        baseline: Mapping[str, Entry],
        copied: Mapping[str, Entry],
        seen: Mapping[str, Entry],
        final: Mapping[str, Entry],
    ) -> Self:
        """Work out what turns the folder into `final`."""
        operations = [
            Operation(path, copied.get(path), final.get(path))
            for path in sorted(copied.keys() | final.keys())
            if copied.get(path) != final.get(path)
        ]
        # Removals first: a folder may take the place of a file.
        operations.sort(key=lambda operation: operation.after is not None)
        edits = {
            path: entry
            for path, entry in _differences(baseline, seen, baseline.keys() | seen.keys()).items()
            if copied.get(path) == entry and not is_written_by_code(path)
        }
        edited = {path: entry for path, entry in {**baseline, **edits}.items() if entry is not None}
        return cls(
            run_id=run_id,
            root=root,
            message=message,
            now=now,
            head=head,
            operations=operations,
            edits=edits,
            commit=_differences(edited, final, edited.keys() | final.keys()),
            seen=_differences(edited, seen, (operation.path for operation in operations)),
        )

    @classmethod
    def load(cls, run: Path) -> tuple[Self, dict[str, tuple[int, int]]]:
        """Read a journal back, and where its contents are."""
        try:
            table = json.loads((run / cls.NAME).read_bytes())
            journal = cls(
                run_id=table["run_id"],
                root=Path(table["root"]),
                message=table["message"],
                now=table["now"],
                head=table["head"],
                operations=[Operation(path, _entry(old), _entry(new)) for path, old, new in table["operations"]],
                edits={path: _entry(entry) for path, entry in table.get("edits", {}).items()},
                commit={path: _entry(entry) for path, entry in table["commit"].items()},
                seen={path: _entry(entry) for path, entry in table["seen"].items()},
            )
            return journal, {blob: (start, size) for blob, (start, size) in table["contents"].items()}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise WorkspaceError(f"`{run / cls.NAME}` can't be read: {error}") from error

    def dump(self, contents: Mapping[str, tuple[int, int]]) -> bytes:
        """As bytes: ASCII, because names need not be UTF-8."""
        table = {
            "run_id": self.run_id,
            "root": str(self.root),
            "message": self.message,
            "now": self.now,
            "head": self.head,
            "operations": self.operations,
            "edits": self.edits,
            "commit": self.commit,
            "seen": self.seen,
            "contents": contents,
        }
        return json.dumps(table).encode("ascii")


def keep(run: Path, journal: Journal, contents: Mapping[str, Content], *, checkpoint: Checkpoint) -> None:
    """Put contents and journal on disk. Once this returns, the result will come into the folder, crash or not."""
    places: dict[str, tuple[int, int]] = {}
    start = 0
    for blob, content in contents.items():
        places[blob] = (start, len(content.data))
        start += len(content.data)
    with naming(str(run), "written"), opened(run) as folder:
        write_new(folder, Journal.CONTENTS, b"".join(c.data for c in contents.values()), executable=False, durable=True)
        checkpoint("contents kept")
        write_new(folder, f"{Journal.NAME}.new", journal.dump(places), executable=False, durable=True)
        checkpoint("journal written")
        folders.replace(folder, f"{Journal.NAME}.new", folder, Journal.NAME)
        folders.sync(folder)
    checkpoint("journal kept")


class Contents:
    """The contents of a journal, by object id; each is checked when it is read."""

    def __init__(self, run: Path, places: Mapping[str, tuple[int, int]]) -> None:
        self._places = places
        self._file = (run / Journal.CONTENTS).open("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def data(self, entry: Entry) -> bytes:
        start, size = self._places[entry.blob]
        self._file.seek(start)
        data = self._file.read(size)
        if blob_id(data) != entry.blob:
            raise WorkspaceError(f"`{self._file.name}` is damaged")
        return data


def _differences(old: Mapping[str, Entry], new: Mapping[str, Entry], paths: Iterable[str]) -> dict[str, Entry | None]:
    return {path: new.get(path) for path in paths if new.get(path) != old.get(path)}


def _entry(value: list[object] | None) -> Entry | None:
    return None if value is None else Entry(str(value[0]), bool(value[1]))
