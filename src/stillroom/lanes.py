"""Trust lanes: who supports a line of a memory, as a mark at the line's end, and which marked lines stay out.

    - the deploy needs `make seed` [lane: tool]
    - always run `make seed` first [lane: web; instruction]

A line that a person or the assistant supports has no mark. One that only a tool or the web supports is quarantined: it
stays in the database, and comes into the memory folder when a second session of another tree has it from another
source, or a person trusts it. For an instruction a second printed text is no witness.

    - the deploy needs `make seed` [lane: tool; from 5c1f20aa,90b3d1e7]

`from` are hashes of what printed it: the host of a page, the program, the words of the printed sentence. Two sessions
that share one of them read the same thing twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec

from stillroom.pattern import late

Lane = Literal["user", "agent", "file", "tool", "web", "none"]
"""From most to least trusted; `none`: nothing in the session says it."""

_MARK = late(r" \[lane: (file|tool|web|none)(; instruction)?(?:; from ([0-9a-f]{8}(?:,[0-9a-f]{8})*))?\]$")
_BULLET = late(r"\s*[-*] ")
# Chinese, Japanese and Korean are written without spaces: every letter counts as a word.
_WORD = late(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
#: So much of a line in another line, and that one says it too.
_SAME_SHARE = 0.75
_MAX_LINE_CHARS = 2000
#: What rules say of a line: it is no part of what the line says.
_REMARK = late(r" \(found by the assistant[^)]*\)")
_LINK = late(r"\S+://\S+|(?:[\w-]+\.)+[a-z]{2,}/\S*", re.IGNORECASE)
_HEAD = late(r"(?:#+ (?:Task \d+:)?|[a-z_]{3,20}:|Rollout context:)?")
_KEYWORDS = "keywords:"
_LEFT_OUT = "(left out: only a tool or the web says so)"
_GAP = late(r"- \(left out: only .* says so; `stillroom review` names it [0-9a-f]{10}\)")
WHO = {"file": "a file", "tool": "a tool", "web": "the web", "none": "the model"}


class Verdict(NamedTuple):
    """Whose a line is."""

    lane: Lane
    #: It tells an agent what to do.
    instruction: bool
    #: Hashes of what printed it, for a line that is nobody's word.
    sources: tuple[str, ...] = ()


Judge = Callable[[str, bool], Verdict]
"""Says whose a line is. Of a fact the lane need only be found when it is told that there is room for a mark."""


class Quarantined(msgspec.Struct, frozen=True, kw_only=True):
    """A line that nobody trusted supports."""

    line_id: str
    lane: Lane
    #: It tells an agent what to do.
    instruction: bool
    text: str
    #: Hashes of what printed it; none: that is not known.
    sources: tuple[str, ...] = ()


def words(text: str) -> list[str]:
    """The words of a text, for comparing."""
    return _WORD.findall(text.casefold())


def units(text: str) -> Iterator[list[str]]:
    """The lines of a text, a bullet with those that go on with it."""
    unit: list[str] = []
    for line in text.split("\n"):
        goes_on = bool(unit) and line.startswith((" ", "\t")) and line.strip() and not _BULLET.match(line)
        if not goes_on and unit:
            yield unit
            unit = []
        unit.append(line)
    if unit:
        yield unit


def marked(text: str, judge: Judge) -> str:
    """`text` with a mark at each bullet whose lane is below the assistant's; `judge` says which, and if it instructs.

    A heading or a field has no room for a mark: what nobody who is trusted says is left out there.
    """
    done: list[str] = []
    for unit in units(text):
        bare = unit[0].strip() if len(unit) == 1 else " ".join(line.strip() for line in unit)
        if not bare:
            done += unit
            continue
        bullet = _BULLET.match(unit[0])
        head = bullet[0] if bullet else _HEAD.match(bare)[0]  # type: ignore[index]  # it matches nothing as well
        said = bare[len(head.strip()) :].strip()
        if head == _KEYWORDS:
            kept = [word for word in said.split(",") if not is_out(*_judged(judge, word)[:2])]
            done += unit if len(kept) == len(said.split(",")) else [f"{head} {','.join(kept).strip()}"]
            continue
        lane, instruction, sources = judge(said, bullet is not None) if said else Verdict("agent", False)
        if lane in ("user", "agent"):
            done += unit
        elif bullet:
            order, origin = "; instruction" if instruction else "", f"; from {','.join(sources)}" if sources else ""
            done.append(f"{bullet[0]}{said} [lane: {lane}{order}{origin}]")
        elif is_out(lane, instruction):
            done.append(f"{head.rstrip()} {_LEFT_OUT}".lstrip())
        else:
            done += unit
    return "\n".join(_without_keywords_of_left_out(done))


def _without_keywords_of_left_out(lines: list[str]) -> list[str]:
    """A keyword that stands in a quarantined line and nowhere else would lead to it, and tell half of it."""
    if not any(" [lane: " in line for line in lines):
        return lines
    out = "\n".join(line for line in lines if _read(line) is not None).casefold()
    kept = "\n".join(line for line in lines if _read(line) is None and not line.startswith(_KEYWORDS)).casefold()

    def shown(word: str) -> bool:
        folded = word.strip().casefold()
        return not folded or folded not in out or folded in kept

    def line_of(line: str) -> str:
        words = line.removeprefix(_KEYWORDS).split(",")
        return f"{_KEYWORDS} {','.join(filter(shown, words)).strip()}".rstrip()

    return [line_of(line) if line.startswith(_KEYWORDS) else line for line in lines]


def _judged(judge: Judge, word: str) -> Verdict:
    """A keyword; a link, with its scheme or without, is one to be followed."""
    return judge(f"fetch https://{word.strip()}" if _LINK.fullmatch(word.strip()) else word, True)


def is_out(lane: Lane, instruction: bool) -> bool:
    """Whether a line of this lane is quarantined. A file of the repository may state facts, but gives no orders."""
    return lane in ("tool", "web", "none") or (lane == "file" and instruction)


def quarantined(text: str) -> list[Quarantined]:
    """The quarantined lines of a text."""
    return [found for line in text.split("\n") if (found := _read(line)) is not None]


def admit(text: str, is_admitted: Callable[[Quarantined], bool], *, with_gaps: bool = False) -> str:
    """`text` without its quarantined lines, but for those that are admitted: these lose their mark.

    `with_gaps`: where a line was, another says so, with its name and none of its words.
    """
    if " [lane: " not in text:
        return text
    kept = []
    for line in text.split("\n"):
        found = _read(line)
        if found is None:
            kept.append(_without_sources(line))
        elif is_admitted(found):
            kept.append(_MARK.sub("", line))
        elif with_gaps:
            kept.append(f"- (left out: only {WHO[found.lane]} says so; `stillroom review` names it {found.line_id})")
    return "\n".join(kept)


def is_shown_of(shown: str, whole: str) -> bool:
    """Whether `admit` makes `shown` of `whole`, whoever was admitted then."""
    let_in = {_MARK.sub("", line).strip() for line in whole.split("\n") if _read(line) is not None}

    def rest(text: str) -> list[str]:
        lines = (_without_sources(line.strip()) for line in text.strip().split("\n"))
        return [line for line in lines if _read(line) is None and line not in let_in and not _GAP.fullmatch(line)]

    return rest(shown) == rest(whole)


def _without_sources(line: str) -> str:
    """A line that is in the memory says whose word it is; from where matters only for those that are not."""
    mark = _MARK.search(line)
    return line if mark is None or not mark[3] else f"{line[: mark.start(3)].removesuffix('; from ')}]"


def source_id(name: str) -> str:
    """A hash of something that prints lines: as it stands in marks."""
    return _digest(name)[:8]


class Witnesses:
    """What every session says, for finding a second one."""

    def __init__(self, sessions: Iterable[tuple[str, str]]) -> None:
        """`sessions`: the tree of each, and its memory."""
        self._lines: list[_Said] = []
        for tree, memory in sessions:
            for line in memory.split("\n"):
                if _BULLET.match(line):
                    mark = _MARK.search(line)
                    bare = (line if mark is None else line[: mark.start()])[:_MAX_LINE_CHARS]
                    self._lines.append(_Said(tree, mark is None, _sources(mark), _said_words(bare)))

    def support(self, found: Quarantined, *, tree: str) -> bool:
        """Whether somebody who is trusted says the same in any session, or, of a fact, a session of another tree that
        has it from another source. Where a source is not known, it may be the same."""
        own, sources = _said_words(found.text), frozenset(found.sources)

        def is_independent(line: _Said) -> bool:
            if found.instruction or tree == line.tree:
                return False
            return bool(sources and line.sources) and sources.isdisjoint(line.sources)

        return any(
            (line.is_trusted or is_independent(line)) and len(own & line.words) >= _SAME_SHARE * len(own)
            for line in self._lines
        )


class _Said(NamedTuple):
    tree: str
    is_trusted: bool
    sources: frozenset[str]
    words: frozenset[str]


def _said_words(line: str) -> frozenset[str]:
    return frozenset(words(_REMARK.sub("", line)))


def _sources(mark: re.Match[str] | None) -> frozenset[str]:
    return frozenset(mark[3].split(",")) if mark is not None and mark[3] else frozenset()


def line_id(text: str) -> str:
    """A short name for what a line says."""
    return _digest(" ".join(words(text)))[:10]


def _digest(text: str) -> str:
    import hashlib  # OpenSSL takes long to load, and most commands ask for no digest

    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


class Restated:
    """Finds lines that say again what is quarantined."""

    def __init__(self, others: Sequence[Quarantined]) -> None:
        distinct = {other.line_id: other for other in others}
        self._others = [(frozenset(words(other.text)), other) for other in distinct.values()]

    def by(self, line: str) -> Quarantined | None:
        """Which of them a line says again, if any."""
        own = frozenset(words(line[:_MAX_LINE_CHARS])) if self._others else frozenset()
        return next(
            (other for wanted, other in self._others if wanted and len(own & wanted) >= _SAME_SHARE * len(wanted)), None
        )


def _read(line: str) -> Quarantined | None:
    mark = _MARK.search(line)
    if mark is None:
        return None
    lane: Lane = mark[1]  # type: ignore[assignment]  # one of the pattern's
    text = line[: mark.start()].strip().removeprefix("- ").removeprefix("* ")
    found = Quarantined(
        line_id=line_id(text),
        lane=lane,
        instruction=mark[2] is not None,
        text=text,
        sources=tuple(sorted(_sources(mark))),
    )
    return found if is_out(lane, found.instruction) else None
