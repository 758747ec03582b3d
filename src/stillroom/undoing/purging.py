"""Takes what is to be forgotten out of the files of a memory folder, in any version of them.

What a file is shows in its content, so the same content comes out the same, in the folder and in every version that the
history has. In the handbook provenance decides; elsewhere a line goes when it names something forgotten, or says what
nothing else said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from stillroom.offline.folder import byhand
from stillroom.undoing.handbook import GROUP, RECORD_OPENS, cut_handbook, is_handbook, without_keys
from stillroom.undoing.traces import Finder
from stillroom.workspace.artifacts import raw_memories_text, raw_sections

SUMMARY_HEAD = re.compile(r"thread_id: (.+)\n")
_HEADING = re.compile(r"(#{1,6}) +(.*?)\s*")
_LISTED = re.compile(r"(\s*- (?:learnings|desc): )(.*)")


class Purge(msgspec.Struct):
    """Goes through texts; equal ones come out equal."""

    finder: Finder
    #: Hashes of lines taken out of a summary, in any version. The handbooks come last, when all are known.
    keys: set[str] = msgspec.field(default_factory=set)
    #: Hashes of generated lines of handbooks, as their records have them; None: there is no record.
    generated: frozenset[str] | None = None
    #: Hashes of lines taken out of a handbook, in any version. The records come after all handbooks.
    gone: set[str] = msgspec.field(default_factory=set)

    def learn_record(self, data: bytes) -> None:
        """Take the hashes of one record, ahead of the handbooks."""
        record = byhand.split_record(data.decode("utf-8", "replace"))[1]
        if record.handbook is not None:
            self.generated = (self.generated or frozenset()) | record.handbook

    def learn_handbooks(self, present: bytes, old: Iterable[bytes]) -> None:
        """Learn which hashes the records lose: of lines that go and stay nowhere. What there is now decides first."""
        now = self.text(present.decode("utf-8", "surrogateescape"))
        stays = set(map(byhand.key, (now.text or "").split("\n")))
        gone_now = set(map(byhand.key, now.dropped)) - stays
        gone_once: set[str] = set()
        for data in old:
            cut = self.text(data.decode("utf-8", "surrogateescape"))
            gone_once |= set(map(byhand.key, cut.dropped))
            stays |= set(map(byhand.key, (cut.text or "").split("\n")))
        self.gone |= gone_now | (gone_once - stays)

    def data(self, data: bytes) -> bytes | None:
        """A file's content without what is to be forgotten; None: the file goes whole."""
        if not self._may_change(data):
            return data
        cut = self.text(data.decode("utf-8", "surrogateescape"))
        return None if cut.text is None else cut.text.encode("utf-8", "surrogateescape")

    def _may_change(self, data: bytes) -> bool:
        """Of a history's many contents few do."""
        if self.finder.may_be_in(data):
            return True
        if data.startswith(b"v1\n"):
            return any(title.encode("utf-8", "replace") in data for title in self.finder.traces.titles)
        if data.startswith(RECORD_OPENS.encode()):
            return any(key.encode("ascii") in data for key in self.keys | self.gone)
        return GROUP.encode() in data and any(key.encode("ascii") in data for key in self.keys)

    def text(self, text: str) -> Purged:
        """The same of text, with what went."""
        if not self._may_change(text.encode("utf-8", "surrogateescape")):
            return Purged(text)
        if (head := SUMMARY_HEAD.match(text)) and head[1] in self.finder.traces.threads:
            return Purged(None)
        if (shorter := self._without_sections(text)) is not text:
            return self.text(shorter)
        lines = text.split("\n")
        if text.startswith(RECORD_OPENS):
            return Purged("\n".join(without_keys(lines, {"handbook": self.gone, "summary": self.keys})))
        if is_handbook(lines):
            cut = cut_handbook(lines, self.finder, summary_keys=self.keys, generated=self.generated)
            return Purged("\n".join(cut.lines), cut.dropped, cut.undecided, cut.emptied)
        dropped: list[str] = []
        kept = self._summary(lines, dropped) if lines[0] == "v1" else _filtered(lines, self.finder.is_traced, dropped)
        return Purged("\n".join(kept), dropped)

    def _without_sections(self, text: str) -> str:
        """`raw_memories.md` without the sections of these threads."""
        sections = list(raw_sections(text))
        kept = [section for thread_id, section in sections if thread_id not in self.finder.traces.threads]
        if len(kept) == len(sections):
            return text
        head = text[: len(text) - sum(len(section) for _, section in sections)]
        return "".join([head, *kept]) if kept else raw_memories_text(())

    def _summary(self, lines: Sequence[str], dropped: list[str]) -> list[str]:
        """Sections of projects of which nothing is left go whole, and lines that hold only there."""
        level, left = 0, list[str]()
        for line in lines:
            heading = _HEADING.fullmatch(line)
            if heading and level and len(heading[1]) <= level:
                level = 0
            if heading and not level and heading[2] in self.finder.traces.titles:
                level = len(heading[1])
            if level:
                dropped.append(line)
            else:
                left.append(self._shorter(line))
        kept = _filtered(left, lambda line: self._holds_nowhere(line) or self.finder.is_traced(line), dropped)
        gone = (line for line in dropped if not line.startswith("#") or self._is_title(line))
        self.keys |= set(map(byhand.key, gone)) - set(map(byhand.key, kept))
        return kept

    def _is_title(self, line: str) -> bool:
        """Whether it is the heading of a forgotten project: every other heading comes again."""
        heading = _HEADING.fullmatch(line)
        return heading is not None and heading[2] in self.finder.traces.titles

    def _holds_nowhere(self, line: str) -> bool:
        _, scope, titles = line.rpartition(" (in ")
        return bool(scope) and line.endswith(")") and self.finder.traces.titles.issuperset(titles[:-1].split(", "))

    def _shorter(self, line: str) -> str:
        """A list in one line, without what goes; the line itself when all of it goes, or nothing."""
        listed = _LISTED.fullmatch(line)
        if listed is None or not self.finder.is_traced(line):
            return line
        pieces = listed[2].split("; ")
        left = [piece for piece in pieces if not self.finder.is_traced(piece)]
        if not left or len(left) == len(pieces):
            return line
        self.keys.add(byhand.key(line))
        return f"{listed[1]}{'; '.join(left)}"


class Purged(msgspec.Struct):
    """A text that was gone through."""

    #: None: it goes whole.
    text: str | None
    dropped: list[str] = []
    #: Lines that rest on something forgotten, and on something else.
    undecided: list[str] = []
    #: Task groups of which no session is left.
    emptied: set[str] = msgspec.field(default_factory=set)


def _filtered(lines: Sequence[str], goes: Callable[[str], bool], dropped: list[str]) -> list[str]:
    """Without the lines that go; a list item goes with what is indented below it."""
    kept: list[str] = []
    above: int | None = None
    for line in lines:
        depth = len(line) - len(line.lstrip())
        if above is not None and line.strip() and depth <= above:
            above = None
        if (above is not None and line.strip()) or goes(line):
            dropped.append(line)
            if above is None and line.lstrip().startswith(("- ", "* ")):
                above = depth
        else:
            kept.append(line)
    return kept
