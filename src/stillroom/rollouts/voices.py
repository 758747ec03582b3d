"""What each lane of a session says, and which event was the first to say a word."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

from stillroom.lanes import Lane, source_id, words
from stillroom.pattern import late
from stillroom.rollouts.absent import Record
from stillroom.rollouts.events import Ran, Said
from stillroom.rollouts.keys import says
from stillroom.rollouts.prescriptions import prescribes

#: From more to less trusted.
SPOKEN: tuple[Lane, ...] = ("user", "agent")
PRINTED: tuple[Lane, ...] = ("file", "tool", "web")

_WEB_TOOL = late(r"web|browser|fetch|http|url|crawl|scrape|navigate|page", re.IGNORECASE)
_WEB_COMMAND = late(r"\b(?:curl|wget|lynx|w3m|httpie|xh|gh|glab|az repos|tea|jira)\b|https?://")
_FILE_TOOL = late(r"^(?:read|view|cat|open)|read_?(?:file|many|text)|file_?read|view_?file|grep|glob", re.IGNORECASE)
_FILE_COMMAND = late(
    r"^\s*(?:cd\s+[^&;|]+(?:&&|;)\s*)?(?:cat|bat|sed|head|tail|less|more|rg|grep|ag|nl|awk|git\s+(?:show|diff|grep))\b"
)
#: Other people's files that happen to lie in the folder.
_FOREIGN = late(r"node_modules|site-packages|vendor/|\.venv|\.cargo|/pkg/mod/|dist-packages|third[_-]party|/tmp/")
_CUT = late(r"\[… \d+ characters cut …\]")
#: Also where a page has one of its marks.
_SENTENCE_END = late(r"(?<=[.!?])\s+|[\n。！？]|<!--|-->|<[^<>]{0,300}>")
_HOST = late(r"https?://(?:[^\s/@\"']*@)?([\w.-]+)", re.IGNORECASE)
#: What these are called with is said, not done.
_SAYING = late(r"\bgit\s+(?:commit|tag|notes)\b|^\s*(?:gh|glab|echo|printf)\b")
_DOCUMENT = late(r"\.(?:md|mdx|markdown|rst|txt|adoc|org)$", re.IGNORECASE)
#: Calls that are looked at for what printed a line.
_MAX_SOURCES = 4


class Voices:
    """The words of one session by lane. Events have numbers, in their order."""

    def __init__(self, events: Callable[[], Sequence[Said | Ran]], *, json: str | None) -> None:
        """`events` is called once, when a word is asked for that may stand in `json`, of which they are made."""
        self._read = events
        self._record = Record(json) if json is not None else None
        self._folded: dict[Lane, list[tuple[int, str]]] = {}
        self._known: dict[tuple[Lane, str], int | None] = {}

    def first(self, lane: Lane, key: str) -> int | None:
        """The first event in which `lane` says `key`; None: it never does."""
        if not self.may_say(key):
            return None
        asked = (lane, key)
        if asked not in self._known:
            self._known[asked] = next((at for at, text in self._said(lane) if says(text, key)), None)
        return self._known[asked]

    def may_say(self, key: str) -> bool:
        """Whether any lane may. Asks no event."""
        return self._record is None or self._record.may_say(key)

    def passage(self, lane: Lane, words: frozenset[str], *, names: frozenset[str], share: float) -> int | None:
        """The first event in which `lane` has so much of the words in one passage, or, in one that says what is to be
        done, all of the names."""
        if not all(map(self.may_say, names)):
            names = frozenset()
        if not names and sum(map(self.may_say, words)) < share * len(words):
            return None

        def holds(text: str) -> bool:
            said = frozenset(word for word in words if says(text, word))
            return len(said) >= share * len(words) or (bool(names) and names <= said and prescribes(text))

        return next((at for at, text in self._said(lane) if holds(text) and any(map(holds, _passages(text)))), None)

    def did(self, names: frozenset[str]) -> bool:
        """Whether the assistant did something with all of these, and it worked: a command, or an edit of code. To look
        for them, or to write them into a document, is to do nothing."""
        return any(all(says(done, name) for name in names) for done in self._done)

    @cached_property
    def _done(self) -> list[str]:
        return [text.casefold() for event in self._events if isinstance(event, Ran) for text in _done(event)]

    def sources(self, lane: Lane, keys: frozenset[str]) -> tuple[str, ...]:
        """What printed these words: the calls that first had them, each by host or program, and by the sentence."""
        calls = sorted({at for key in keys if (at := self.first(lane, key)) is not None})[:_MAX_SOURCES]
        return tuple(sorted({source_id(name) for at in calls for name in _sources_of(self._events[at], keys)}))

    @cached_property
    def has_web(self) -> bool:
        """Whether anything came from the web: most sessions have nothing of it."""
        return any(isinstance(event, Ran) and _lane_of(event) == "web" for event in self._events)

    @cached_property
    def cut(self) -> dict[Lane, int]:
        """For each lane the first event of which a part is missing here."""
        cut: dict[Lane, int] = {}
        for at, event in enumerate(self._events):
            if isinstance(event, Ran) and _CUT.search(event.output):
                cut.setdefault(_lane_of(event), at)
        return cut

    @cached_property
    def _events(self) -> Sequence[Said | Ran]:
        return self._read()

    @cached_property
    def _texts(self) -> dict[Lane, list[tuple[int, str]]]:
        texts: dict[Lane, list[tuple[int, str]]] = {lane: [] for lane in (*SPOKEN, *PRINTED)}
        begun = False
        for at, event in enumerate(self._events):
            begun = begun or isinstance(event, Ran)
            for lane, text in _texts_of(event, begun=begun):
                texts[lane].append((at, text))
        return texts

    def _said(self, lane: Lane) -> list[tuple[int, str]]:
        """Folded when it is asked for: what was printed is most of a session, and seldom needed."""
        if lane not in self._folded:
            self._folded[lane] = [(at, text.casefold()) for at, text in self._texts[lane]]
        return self._folded[lane]


def _texts_of(event: Said | Ran, *, begun: bool) -> Iterable[tuple[Lane, str]]:
    if isinstance(event, Said):
        # What a client put in is no person's word. Another agent gives the task at the beginning; what it tells later
        # it may have read anywhere.
        from_agent: Lane = "tool" if begun else "agent"
        lanes: dict[str, Lane] = {"user": "user", "assistant": "agent", "agent": from_agent, "harness": "tool"}
        yield lanes[event.who], event.text
        return
    yield "agent", event.command or event.arguments
    for edit in event.edits:
        yield "agent", f"{edit.path}\n{edit.diff}"
    yield _lane_of(event), event.output


def _done(run: Ran) -> Iterable[str]:
    if not (run.ok or run.exit_code == 0):
        return
    yield from (f"{edit.path}\n{edit.diff}" for edit in run.edits if not _DOCUMENT.search(edit.path))
    if run.command is not None and not run.edits and _lane_of(run) == "tool" and not _SAYING.search(run.command):
        yield run.command


def _passages(text: str) -> Iterator[str]:
    """Each sentence with the one behind it: a line that is broken to fit is one of two."""
    pieces = [piece for piece in _SENTENCE_END.split(text) if piece.strip()]
    return map(" ".join, zip(pieces, [*pieces[1:], ""], strict=True))


def _sources_of(event: Said | Ran, keys: frozenset[str]) -> Iterable[str]:
    if isinstance(event, Said):
        printed = event.text
        yield f"said by {event.who}"
    else:
        printed, asked = event.output, event.arguments if event.command is None else event.command
        hosts = {_owner(host) for host in _HOST.findall(asked)}
        program = event.tool if event.command is None else next(iter(asked.split()), "")
        yield from sorted(hosts) if hosts else [f"program {program}"]
    said = _SENTENCE_END.split(printed)
    best = max(said, key=lambda text: sum(key in text.casefold() for key in keys), default="")
    # Without numbers: times and counts differ, and the sentence is the same.
    yield "sentence " + " ".join(sorted({word for word in words(best) if word.isalpha()}))


def _owner(host: str) -> str:
    """`docs.example.org` and `example.org` are one source."""
    names = host.casefold().rstrip(".").split(".")
    is_below_country = len(names) > 2 and len(names[-1]) == 2 and len(names[-2]) <= 3
    return ".".join(names[-3 if is_below_country else -2 :])


def _lane_of(run: Ran) -> Lane:
    """Where the output of a call comes from."""
    asked = run.command if run.command is not None else run.arguments
    if run.command is None and _WEB_TOOL.search(run.tool):
        return "web"
    if run.command is not None and _WEB_COMMAND.search(run.command):
        return "web"
    reads = _FILE_COMMAND.search(run.command) if run.command is not None else _FILE_TOOL.search(run.tool)
    return "file" if reads and not _FOREIGN.search(asked) else "tool"
