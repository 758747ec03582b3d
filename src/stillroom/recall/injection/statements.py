"""What a session can be given, statement by statement, and the choice of those that fit. Imports nothing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PROFILE, PREFERENCES, NOTES, FAILURES, KNOWLEDGE, COMMANDS, INDEX = range(7)
"""Kinds of statements, in the order in which they are given until the budget is used up."""

NAMES = ("profile line", "preference", "note", "failure", "finding", "command", "task")
_EVERYWHERE = ", every project"
_OTHERS = ", other projects"
#: More than any line numbers take in a heading.
_NUMBERS = len(" (:1234567-1234567)\n\n\n## ")
#: A shorter beginning of a statement says too little.
_LEAST_CLAUSE_CHARS = 40


class Statement:
    """A bullet with what is indented below it, a paragraph, or a task in the index."""

    __slots__ = ("file", "first", "group", "kind", "last", "mark", "text", "title")

    def __init__(
        self,
        text: str,
        *,
        kind: int,
        title: str,
        file: str,
        first: int = 0,
        last: int = 0,
        group: int = 0,
        mark: str = "",
    ) -> None:
        self.text = text
        self.kind = kind
        #: The heading that it is given under.
        self.title = title
        #: Where it stands, below the memory folder, with its first and last line; 0: no lines can be named.
        self.file = file
        self.first = first
        self.last = last
        #: Those of one group stand together.
        self.group = group
        #: What is said at its end: that something in it is gone.
        self.mark = mark

    @property
    def row(self) -> str:
        """As a session reads it."""
        return self.text + self.mark

    @property
    def where(self) -> str:
        """As a citation names it."""
        return f"{self.file}:{self.first}-{self.last}" if self.first else self.file


class LeftOut:
    """What a session is not given."""

    __slots__ = ("by_kind", "bytes", "other_projects", "places")

    def __init__(self) -> None:
        #: How many statements of each kind had no room.
        self.by_kind: dict[str, int] = {}
        #: Of each file, the first and last line of those.
        self.places: dict[str, tuple[int, int]] = {}
        self.bytes = 0
        self.other_projects = 0

    @property
    def no_room(self) -> int:
        """Statements for which there was no room."""
        return sum(self.by_kind.values())

    def add(self, statement: Statement) -> None:
        """Count it."""
        name = NAMES[statement.kind]
        self.by_kind[name] = self.by_kind.get(name, 0) + 1
        first, last = self.places.get(statement.file, (statement.first, statement.last))
        self.places[statement.file] = min(first, statement.first), max(last, statement.last)
        self.bytes += len(statement.row.encode()) + 1


def select(
    own: Iterable[Statement], everywhere: Iterable[Statement], others: Iterable[Statement], *, limit_bytes: int
) -> tuple[str, LeftOut]:
    """At most `limit_bytes` of the statements under headings, each once, and what had no room.

    By kind, of each kind the session's own ones first; those of other projects come after all of them.
    """
    ranked = [(0, statement.kind, "", statement) for statement in own]
    ranked += [(0, statement.kind, _EVERYWHERE, statement) for statement in everywhere]
    ranked += [(1, statement.kind, _OTHERS, statement) for statement in others]
    ranked.sort(key=lambda each: (each[0], each[1], each[2]))
    blocks: dict[tuple[int, str, str, str, int], list[Statement]] = {}
    said: set[str] = set()
    left = LeftOut()
    room = limit_bytes
    for _, _, whose, statement in ranked:
        text = statement.text.casefold()
        if text in said:
            continue
        said.add(text)
        block = (statement.kind, statement.title, whose, statement.file, statement.group)
        heading = 0 if block in blocks else len(f"{statement.title}{whose}{statement.file}".encode()) + _NUMBERS
        size = len(statement.row.encode()) + 1
        if heading + size > room:
            left.add(statement)
            beginning = _clauses(statement, room - heading)
            if not beginning:
                continue
            statement, size = beginning, len(beginning.row.encode()) + 1
        blocks.setdefault(block, []).append(statement)
        room -= heading + size
    parts = [_block(title, whose, each) for (_, title, whose, _, _), each in blocks.items()]
    return "\n\n".join(parts), left


def _block(title: str, whose: str, statements: Sequence[Statement]) -> str:
    file = statements[0].file
    numbers = [number for each in statements for number in (each.first, each.last)]
    lines = f":{min(numbers)}-{max(numbers)}" if all(numbers) else ""
    return "\n".join([f"## {title}{whose} ({file}{lines})", *(statement.row for statement in statements)])


def _clauses(statement: Statement, room: int) -> Statement | None:
    """As many whole clauses of the statement as fit, and where the rest stands; None if none does."""
    rest = f" … (the rest: {statement.where})"
    text, end = statement.text, 0
    most = room - len(rest.encode()) - 2
    at = text.find("; ")
    while at >= 0:
        if len(text[:at].encode()) > most:
            break
        if text.count("`", 0, at) % 2 == 0:
            end = at
        at = text.find("; ", at + 1)
    if end < _LEAST_CLAUSE_CHARS:
        return None
    begun = text[:end] + ('"' if text.count('"', 0, end) % 2 else "")
    return Statement(
        begun + rest,
        kind=statement.kind,
        title=statement.title,
        file=statement.file,
        first=statement.first,
        last=statement.last,
        group=statement.group,
    )


__all__ = [
    "COMMANDS",
    "FAILURES",
    "INDEX",
    "KNOWLEDGE",
    "NAMES",
    "NOTES",
    "PREFERENCES",
    "PROFILE",
    "LeftOut",
    "Statement",
    "select",
]
