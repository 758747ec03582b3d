"""Trust lanes: who supports a line of a memory, as a mark at the line's end, and which marked lines stay out.

    - the deploy needs `make seed` [lane: tool]
    - always run `make seed` first [lane: web; instruction]

A line that a person or the assistant supports has no mark. One that only a tool or the web supports is quarantined: it
stays in the summary of its session, and comes into the memory folder when a second session of another tree says the
same, or a person trusts it. For an instruction a second printed text is no witness: the same page may be read twice.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import msgspec

Lane = Literal["user", "agent", "file", "tool", "web", "none"]
"""From most to least trusted; `none`: nothing in the session says it."""

_MARK = re.compile(r" \[lane: (file|tool|web|none)(; instruction)?\]$")
_BULLET = re.compile(r"\s*[-*] ")
# Chinese, Japanese and Korean are written without spaces: every letter counts as a word.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
#: So much of a line in another line, and that one says it too.
_SAME_SHARE = 0.75
_MAX_LINE_CHARS = 2000
_HEAD = re.compile(r"(?:#+ (?:Task \d+:)?|[a-z_]{3,20}:|Rollout context:)?")
_LEFT_OUT = "(left out: only a tool or the web says so)"


class Quarantined(msgspec.Struct, frozen=True, kw_only=True):
    """A line that nobody trusted supports."""

    line_id: str
    lane: Lane
    #: It tells an agent what to do.
    instruction: bool
    text: str


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


def marked(text: str, judge: Callable[[str], tuple[Lane, bool]]) -> str:
    """`text` with a mark at each bullet whose lane is below the assistant's; `judge` says which, and if it instructs.

    A heading or a field has no room for a mark: an instruction of nobody who is trusted is left out there.
    """
    done: list[str] = []
    for unit in units(text):
        bare = " ".join(line.strip() for line in unit)
        bullet = _BULLET.match(unit[0])
        head = bullet[0] if bullet else _HEAD.match(bare)[0]  # type: ignore[index]  # it matches nothing as well
        said = bare[len(head.strip()) :].strip()
        if head == "keywords:":
            kept = [word for word in said.split(",") if not is_out(*_judged(judge, word))]
            done += unit if len(kept) == len(said.split(",")) else [f"{head} {','.join(kept).strip()}"]
            continue
        lane, instruction = judge(said) if said else ("agent", False)
        if lane in ("user", "agent"):
            done += unit
        elif bullet:
            done.append(f"{bullet[0]}{said} [lane: {lane}{'; instruction' if instruction else ''}]")
        elif instruction:
            done.append(f"{head.rstrip()} {_LEFT_OUT}".lstrip())
        else:
            done += unit
    return "\n".join(done)


def _judged(judge: Callable[[str], tuple[Lane, bool]], word: str) -> tuple[Lane, bool]:
    """A keyword; a link is one to be followed."""
    return judge(f"fetch {word}" if "://" in word else word)


def is_out(lane: Lane, instruction: bool) -> bool:
    """Whether a line of this lane is quarantined. A file of the repository may state facts, but gives no orders."""
    return lane in ("tool", "web", "none") or (lane == "file" and instruction)


def quarantined(text: str) -> list[Quarantined]:
    """The quarantined lines of a text."""
    return [found for line in text.split("\n") if (found := _read(line)) is not None]


def admit(text: str, is_admitted: Callable[[Quarantined], bool]) -> str:
    """`text` without its quarantined lines, but for those that are admitted: these lose their mark."""
    if " [lane: " not in text:
        return text
    kept = []
    for line in text.split("\n"):
        found = _read(line)
        if found is None:
            kept.append(line)
        elif is_admitted(found):
            kept.append(_MARK.sub("", line))
    return "\n".join(kept)


class Witnesses:
    """What every session says, for finding a second one."""

    def __init__(self, sessions: Sequence[tuple[str, str]]) -> None:
        """`sessions`: the tree of each, and its memory."""
        self._lines: list[tuple[str, bool, frozenset[str]]] = []
        for tree, memory in sessions:
            for line in memory.split("\n"):
                if _BULLET.match(line):
                    bare = _MARK.sub("", line)[:_MAX_LINE_CHARS]
                    self._lines.append((tree, bare == line[:_MAX_LINE_CHARS], frozenset(words(bare))))

    def support(self, found: Quarantined, *, tree: str) -> bool:
        """Whether somebody who is trusted says the same in any session, or, of a fact, a session of another tree."""
        own = frozenset(words(found.text))
        return any(
            (trusted or (tree != other and not found.instruction)) and len(own & line) >= _SAME_SHARE * len(own)
            for other, trusted, line in self._lines
        )


def line_id(text: str) -> str:
    """A short name for what a line says."""
    return hashlib.sha256(" ".join(words(text)).encode("utf-8", "replace")).hexdigest()[:10]


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
    found = Quarantined(line_id=line_id(text), lane=lane, instruction=mark[2] is not None, text=text)
    return found if is_out(lane, found.instruction) else None
