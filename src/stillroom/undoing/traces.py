"""What tells that a text speaks of something that is to be forgotten.

A name says it wherever it stands: a thread's id, its files, a folder in which nothing else ran, and whatever a person
asked to have forgotten. A phrase says it too: the first words of what only forgotten threads said, as files repeat them
in bullets, quotes and lists. What another thread or a note says as well is no trace.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

import msgspec
import re2

from stillroom.store.forgetting import FORGOTTEN

#: So much of a phrase is compared: files shorten what they repeat, to ninety characters and more.
PHRASE_CHARS = 60
#: A shorter phrase is everybody's.
_LEAST_CHARS = 18
_LEAST_BLANKS = 2
#: In scripts without blanks a phrase is as telling at a third of the length.
_LEAST_WIDE_CHARS = 7
#: For the automaton of the names: thousands of them at once, when a whole project goes.
_MAX_MEMORY_BYTES = 256 * 1024 * 1024

_MARKS = " \t-*#>|+`"
_NUMBERED = re.compile(r"^(?:\[\d+\]|\d+[.)]|(?:Sub)?[Tt]ask \d+:?|[a-z_]{3,24}:)\s*")
#: What `str.split` parts words at; RE2's own class has fewer.
_SPACE = r"[\x09-\x0d\x1c-\x20\x{85}\pZ]+"
_REFERENCES = re.compile(r"(?:\s*\[Task \d+\])+$")
_QUOTED = re.compile(r"[\"“”`]([^\"“”`]{7,})[\"“”`…]?")
_BREAK = re.compile(r"; |: | -> | → | \(")
_CUT = "…"
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORD = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
#: Beyond so many phrases each line is looked at.
_MOST_AT_ONCE = 4000
#: What stands for a name in a text that stays.
GONE = FORGOTTEN


class Traces(msgspec.Struct, frozen=True, kw_only=True):
    """What must be nowhere any more."""

    threads: frozenset[str] = frozenset()
    #: Found wherever they stand as a whole word.
    names: frozenset[str] = frozenset()
    #: Asked for by a person: found anywhere, in upper and lower case alike.
    words: frozenset[str] = frozenset()
    phrases: frozenset[str] = frozenset()
    #: Task groups of the handbook of which nothing is left.
    titles: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.threads or self.names or self.words or self.phrases)


def phrases_of(line: str) -> Iterator[str]:
    """The phrases of a line: as a whole without what marks it, and what is quoted or listed in it."""
    bare = _REFERENCES.sub("", line.strip()).lstrip(_MARKS)
    if line.lstrip().startswith("#") and "Task" not in line:
        return  # a heading of the format
    seen: set[str] = set()
    for part in _parts(bare):
        text = " ".join(part.strip(_MARKS + "\"“”'.,;").split())
        if text.endswith(_CUT):
            text = text[: -len(_CUT)].rstrip()
        phrase = text[:PHRASE_CHARS].rstrip()
        if _tells(phrase) and phrase not in seen:
            seen.add(phrase)
            yield phrase


def _parts(bare: str) -> Iterator[str]:
    yield bare
    while match := _NUMBERED.match(bare):
        bare = bare[match.end() :]
        yield bare
    for quoted in _QUOTED.finditer(bare):
        yield quoted[1]
    start = 0
    for match in _BREAK.finditer(bare):
        yield bare[start : match.start()]
        yield bare[match.end() :]
        start = match.end()


def _tells(phrase: str) -> bool:
    if len(phrase) >= _LEAST_CHARS and phrase.count(" ") >= _LEAST_BLANKS:
        return True
    wide = sum(character > "\u2e7f" for character in phrase)
    return wide >= _LEAST_WIDE_CHARS


class Finder(msgspec.Struct):
    """Looks for traces, each line once however often it comes."""

    traces: Traces
    _names: re2._Regexp | None = None  # its type has no public name
    _words: re2._Regexp | None = None
    #: Finds whatever the others may find; None: there are too many phrases for one automaton.
    _anything: re2._Regexp | None = None
    _lines: dict[str, bool] = {}

    def __post_init__(self) -> None:
        options = _options()
        if self.traces.names:
            longest_first = sorted(_spellings(self.traces.names), key=lambda name: (-len(name), name))
            self._names = re2.compile("|".join(re2.escape(name) for name in longest_first), options)
        if self.traces.words:
            options.case_sensitive = False
            self._words = re2.compile("|".join(map(re2.escape, sorted(_spellings(self.traces.words)))), options)

        if len(self.traces.phrases) <= _MOST_AT_ONCE:
            apart = [_spaced(phrase) for phrase in self.traces.phrases]
            whole = [re2.escape(name) for name in _spellings(self.traces.names)]
            either = [f"(?i:{re2.escape(word)})" for word in _spellings(self.traces.words)]
            pattern = "|".join(sorted(apart) + sorted(whole) + sorted(either)) or r"[^\s\S]"
            self._anything = re2.compile(pattern.encode(), _options())

    def may_be_in(self, data: bytes) -> bool:
        """Whether it is worth looking at the lines of a text: a quick answer for the many that hold nothing of it."""
        return self._anything is None or self._anything.search(data) is not None

    def is_traced(self, line: str) -> bool:
        """Whether a line speaks of it."""
        known = self._lines.get(line)
        if known is None:
            known = self._lines[line] = self.names_in(line) or self.has_phrase(line)
        return known

    def names_in(self, text: str) -> bool:
        """Whether a name or a word is in a text of any length."""
        text = _searchable(text)
        if self._words is not None and self._words.search(text) is not None:
            return True
        return self._names is not None and any(_stands_alone(text, *span) for span in self._spans(text))

    def has_phrase(self, line: str) -> bool:
        return bool(self.traces.phrases) and any(phrase in self.traces.phrases for phrase in phrases_of(line))

    def without(self, line: str) -> str:
        """A line of a text that stays, with a word in place of each name. One with a phrase or a word goes whole."""
        if not self.is_traced(line):
            return line
        if self.has_phrase(line) or (self._words is not None and self._words.search(_searchable(line)) is not None):
            return GONE
        spans = [span for span in self._spans(line) if _stands_alone(line, *span)]
        for start, end in reversed(spans):
            line = line[:start] + GONE + line[end:]
        return line

    def text_without(self, text: str) -> str:
        """The same for a text of many lines."""
        if not self.may_be_in(text.encode("utf-8", "replace")):
            return text
        return "\n".join(map(self.without, text.split("\n")))

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        if self._names is not None:
            yield from (match.span() for match in self._names.finditer(_searchable(text)))


def shared_phrases(phrases: Iterable[str], texts: Iterable[str]) -> set[str]:
    """Those that stand in one of the texts."""
    wanted = sorted(phrases)
    shared: set[str] = set()
    batches = []
    for start in range(0, len(wanted), _BATCH):
        batch = re2.Set.SearchSet(_options())
        for phrase in wanted[start : start + _BATCH]:
            batch.Add(_spaced(phrase))
        batch.Compile()
        batches.append((start, batch))
    for text in texts:
        for start, batch in batches:
            shared.update(wanted[start + number] for number in batch.Match(_searchable(text)) or ())
    return shared


#: Phrases looked for at once: an automaton of more outgrows the processor's caches.
_BATCH = 400


def _spellings(names: Iterable[str]) -> set[str]:
    """As texts have them, and as JSON has them."""
    plain = set(names)
    return {_searchable(name) for name in plain} | {json.dumps(name)[1:-1] for name in plain}


def _spaced(phrase: str) -> str:
    """A phrase wherever it stands: a text may have a tab, or the end of a line, where the phrase has a blank."""
    return _SPACE.join(re2.escape(word) for word in _searchable(phrase).split(" "))


def _options() -> re2.Options:
    options = re2.Options()
    options.max_mem = _MAX_MEMORY_BYTES
    options.log_errors = False
    return options


def _stands_alone(text: str, start: int, end: int) -> bool:
    """`/sessions/a` is not in `/sessions/ab`."""
    before = text[start - 1] if start else ""
    after = text[end] if end < len(text) else ""
    return not ((before in _WORD and text[start] in _WORD) or (after in _WORD and text[end - 1] in _WORD))


def _searchable(text: str) -> str:
    """Lone surrogates, which no automaton takes, as one other character each."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


__all__ = ["GONE", "Finder", "Traces", "phrases_of", "shared_phrases"]
