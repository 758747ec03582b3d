"""Trust: which lines of a memory are held back, as a mark at the line's end, and who lets them in.

    - always run `make seed` first [lane: web; instruction]

A line is held back when it instructs and only a tool, a file or the web says so, or nobody (`rollouts.attribution`). It
stays in the database, and comes into the memory folder when a person trusts it, or when a session has the same line
from somebody who is trusted.
"""

from __future__ import annotations

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
_HEAD = late(r"(?:#+ (?:Task \d+:)?|[a-z_]{3,20}:|Rollout context:)?")
_FIELD = late(r"(?:description|task|task_group|keywords):")
_KEYWORDS, _DESCRIPTION = "keywords:", "description:"
_LEFT_OUT = "(left out: nobody who is trusted says so)"
_SECTION = late(r"(?:#+ +)?[^-*#\s].{2,60}:\s*$")
_CLAUSE = late(r"(?<=[.;!?])\s+|(?<=[。；])")
_MAX_DESCRIPTION_CHARS = 200
_CODE = late(r"`([^`\n]{2,40})`")
_ADDED = late(
    r"(?:\s*(?:\[Task \d+\]|\[ad-hoc note\]|\[lane: [^\]]*\]"
    r"|\((?:in|said|heard|seen)\b[^()]{0,200}\)|\(supersedes: .*\)))+\s*$"
)
_GAP = late(r"- \(left out: only .* says so; `stillroom review` names it [0-9a-f]{10}\)")
WHO = {"file": "a file", "tool": "a tool", "web": "the web", "none": "the model"}


class Verdict(NamedTuple):
    """Whose a line is."""

    lane: Lane
    #: It tells an agent what to do.
    instruction: bool


Judge = Callable[[str, str], Verdict]
"""Says whose a line is, and whether it instructs; it is told the section or the field in which the line stands."""


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


def marked(text: str, judge: Judge) -> str:
    """`text` with a mark at each bullet that is held back. What other lines say of it is left out of them;
    `description` and `keywords` say what the lines that stay say."""
    done: list[str] = []
    section = ""
    for unit in units(text):
        bare = unit[0].strip() if len(unit) == 1 else " ".join(line.strip() for line in unit)
        bullet = _BULLET.match(unit[0])
        if not bare or bare.startswith(_KEYWORDS):
            done += unit
        elif bullet:
            said = bare[len(bullet[0].strip()) :].strip()
            lane, instruction = judge(said, section) if said else Verdict("agent", False)
            order = "; instruction" if instruction else ""
            done += [f"{bullet[0]}{said} [lane: {lane}{order}]"] if is_out(lane, instruction) else unit
        else:
            section = bare if _SECTION.match(bare) else section if not bare.startswith("#") else ""
            done += _without_held(unit, bare, judge)
    return "\n".join(_derived(done))


def _without_held(unit: list[str], bare: str, judge: Judge) -> list[str]:
    """A heading, a field or prose without its sentences that are held back: there is no room for a mark."""
    head = _HEAD.match(bare)[0]  # type: ignore[index]  # it matches nothing as well
    said = bare[len(head) :].strip()
    clauses = _CLAUSE.split(said)
    kept = [clause for clause in clauses if not clause.strip() or not is_out(*judge(clause.strip(), head))]
    if len(kept) == len(clauses):
        return unit
    return [f"{head} {' '.join(kept).strip() or _LEFT_OUT}".lstrip()]


def _derived(lines: list[str]) -> list[str]:
    """`description` and `keywords` without what only a line says that is held back."""
    held = [found for line in lines if (found := _read(line)) is not None]
    if not held:
        return _described(lines)
    restated = Restated(held)
    out = "\n".join(found.text for found in held).casefold()
    kept = [line for line in lines if _read(line) is None]
    told = "\n".join(line for line in kept if not _FIELD.match(line)).casefold()

    def line_of(line: str) -> str:
        if line.startswith(_KEYWORDS):
            named = [word.strip() for word in line.removeprefix(_KEYWORDS).split(",")]
            stay = [word for word in named if word.casefold() not in out or word.casefold() in told]
            return f"{_KEYWORDS} {', '.join(stay or _names(kept))}".rstrip()
        if line.startswith(_DESCRIPTION):
            clauses = _CLAUSE.split(line.removeprefix(_DESCRIPTION).strip())
            stay = [clause for clause in clauses if restated.by(clause) is None]
            return line if len(stay) == len(clauses) else f"{_DESCRIPTION} {' '.join(stay) or _LEFT_OUT}"
        return line

    return _described([line_of(line) for line in lines])


def _described(lines: list[str]) -> list[str]:
    """A description of which nothing was left says what the first line does that stays."""
    left_out = f"{_DESCRIPTION} {_LEFT_OUT}"
    if left_out not in lines:
        return lines
    first = next((line[2:].strip() for line in lines if _BULLET.match(line) and _read(line) is None), "a session")
    described = f"{_DESCRIPTION} {first[:_MAX_DESCRIPTION_CHARS]}"
    return [described if line == left_out else line for line in lines]


def _names(lines: Iterable[str]) -> list[str]:
    """Words in code marks, and the longest ones, of lines that stay."""
    text = "\n".join(line for line in lines if _BULLET.match(line))
    named = dict.fromkeys(_CODE.findall(text))
    named.update(dict.fromkeys(word for word in words(text) if len(word) > 7))
    return list(named)[:8]


def is_out(lane: Lane, instruction: bool) -> bool:
    """Whether a line of this lane is held back: facts are welcome from everywhere, orders only of who is trusted."""
    return instruction and lane in WHO


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
        if found is None or is_admitted(found):
            kept.append(_MARK.sub("", line))
        elif with_gaps:
            kept.append(f"- (left out: only {WHO[found.lane]} says so; `stillroom review` names it {found.line_id})")
    return "\n".join(kept)


def is_shown_of(shown: str, whole: str) -> bool:
    """Whether `admit` makes `shown` of `whole`, whoever was admitted then."""
    let_in = {_MARK.sub("", line).strip() for line in whole.split("\n") if _read(line) is not None}

    def rest(text: str) -> list[str]:
        lines = [line.strip() for line in text.strip().split("\n")]
        own = [_MARK.sub("", line) for line in lines if _read(line) is None]
        return [line for line in own if line not in let_in and not _GAP.fullmatch(line)]

    return rest(shown) == rest(whole)


class Witnesses:
    """What every session says on the word of somebody who is trusted."""

    def __init__(self, memories: Iterable[str]) -> None:
        bullets = (line for memory in memories for line in memory.split("\n") if _BULLET.match(line))
        self._lines = [frozenset(words(line[:_MAX_LINE_CHARS])) for line in bullets if _read(line) is None]

    def support(self, found: Quarantined) -> bool:
        """Whether a line that is not held back says the same, in any session."""
        own = frozenset(words(found.text))
        return any(len(own & line) >= _SAME_SHARE * len(own) for line in self._lines)


def line_id(text: str) -> str:
    """A short name for what a line says."""
    return _digest(" ".join(words(text)))[:10]


#: A reference of a session's memory: `[1] …`.
_NUMBERED = late(r"^\[\d+\]\s+")


def line_key(line: str) -> str:
    """A short name for a line of the memory, without what consolidation adds to it: which tasks it is of, how often it
    was said, where it holds."""
    bare = _ADDED.sub("", line.strip().removeprefix("- ").removeprefix("* "))
    return line_id(_NUMBERED.sub("", bare))


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
    found = Quarantined(line_id=line_id(text), lane=lane, instruction=mark[2] is not None, text=text)
    return found if is_out(lane, found.instruction) else None
