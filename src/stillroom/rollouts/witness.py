"""Who in a session says what: the lane of a line, found by its telling words among the session's events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property

from stillroom.lanes import Lane, Verdict, is_out, marked, source_id, words
from stillroom.rollouts.directives import is_directive
from stillroom.rollouts.events import Ran, Said

_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}|[^\W_]+(?:[_./:@$+\\-]+[^\W_]+)*")
_PART = re.compile(r"[^\W_]{2,}")
_QUOTED = re.compile(r"`([^`\n]{2,400})`|“([^”\n]{2,400})”|\"([^\"\n]{2,400})\"")
_MIN_PLAIN_CHARS = 4
#: So much of an order must be in a person's words to be theirs, and in a printed text to be its.
_ORDER_SHARE, _SOURCE_SHARE = 0.8, 0.6
#: So much of a fact in what the assistant said or ran: it knows what it speaks of, however a tool worded it.
_VOUCHED_SHARE = 0.25
_WEB_TOOL = re.compile(r"web|browser|fetch|http|url|crawl|scrape|navigate|page", re.IGNORECASE)
_WEB_COMMAND = re.compile(r"\b(?:curl|wget|lynx|w3m|httpie|xh|gh|glab|az repos|tea|jira)\b|https?://")
_FILE_TOOL = re.compile(
    r"^(?:read|view|cat|open)|read_?(?:file|many|text)|file_?read|view_?file|grep|glob", re.IGNORECASE
)
_FILE_COMMAND = re.compile(
    r"^\s*(?:cd\s+[^&;|]+(?:&&|;)\s*)?(?:cat|bat|sed|head|tail|less|more|rg|grep|ag|nl|awk|git\s+(?:show|diff|grep))\b"
)
_HOST = re.compile(r"https?://(?:[^\s/@\"']*@)?([\w.-]+)", re.IGNORECASE)
#: Calls that are looked at for what printed a line.
_MAX_SOURCES = 4
_CUT = re.compile(r"\[… \d+ characters cut …\]")
#: How the rules tell of a person's words.
_TOLD = frozenset(("user", "asked", "corrected", "decided", "said", "agreed", "then", "changed", "they", "otherwise"))
#: Other people's files that happen to lie in the folder.
_FOREIGN = re.compile(r"node_modules|site-packages|vendor/|\.venv|\.cargo|/pkg/mod/|dist-packages|third[_-]party|/tmp/")


class Witness:
    """The events of one session. What is asked of it is answered from words, never from meaning."""

    def __init__(self, events: Sequence[Said | Ran], *, about: Iterable[str]) -> None:
        """`about`: all texts that will be asked about. Only their words are looked for: a session has a thousand times
        as many."""
        self._events = events
        self._about = about

    def marked(self, text: str, *, of_model: bool) -> str:
        """`text` with the lane of each line that is below the assistant's.

        Of what rules took out of a session only orders are looked at: all else is somebody's words or a command's end.
        """

        def judge(line: str) -> Verdict:
            if is_directive(line):
                asked = line if of_model else _without_conclusion(line)
                return Verdict(self._of_order(asked, of_model=of_model), instruction=True)
            lane = self._of_fact(line) if of_model else "agent"
            return Verdict(lane, instruction=False, sources=self._sources(line, lane) if lane in _PRINTED else ())

        return marked(text, judge)

    def slug(self, slug: str | None) -> str | None:
        """The name of a session, unless it is an order of nobody's."""
        said = slug_words(slug)
        return None if is_directive(said) and is_out(self._of_order(said, of_model=True), True) else slug

    def _of_order(self, line: str, *, of_model: bool) -> Lane:
        keys = keys_of(line)
        # Where it leads says more than with which program.
        keys = frozenset(key for key in keys if "://" in key) or keys
        if not keys or self._share(keys, "user") >= _ORDER_SHARE:
            return "user"
        printed = [(since, lane) for lane in _PRINTED if (since := self._since(keys, lane)) is not None]
        agent = self._since(keys, "agent")
        if agent is not None and all(agent <= since for since, _ in printed):
            # What was cut out of a long output may have said it before.
            unseen = [lane for lane in _PRINTED if self._cut.get(lane, agent) < agent]
            return unseen[-1] if unseen else "agent"
        if printed:
            return printed[-1][1]
        # Rules invent nothing: it is the words of whoever said most of it.
        return "none" if of_model else max((*_PRINTED[::-1], *_SPOKEN[::-1]), key=lambda lane: self._share(keys, lane))

    def _of_fact(self, line: str) -> Lane:
        keys = keys_of(line)
        if not keys or any(self._share(keys, lane) >= _VOUCHED_SHARE for lane in _SPOKEN):
            return "agent"
        for lane in _PRINTED:
            if self._share(keys, lane) >= _SOURCE_SHARE:
                return lane
        # Only names are missed: a plain sentence may be a summary in other words.
        names = names_of(line)
        invented = bool(names) and not any(self._share(names, lane) for lane in (*_SPOKEN, *_PRINTED))
        return "none" if invented else "agent"

    def _sources(self, line: str, lane: Lane) -> tuple[str, ...]:
        """What printed it: the calls that first had its words, each by host or program and by the printed line."""
        keys = keys_of(line)
        first = self._first(lane)
        calls = sorted({at for key in keys if (at := first.get(key)) is not None})[:_MAX_SOURCES]
        return tuple(sorted({source_id(name) for at in calls for name in _sources_of(self._events[at], keys)}))

    def _share(self, keys: frozenset[str], lane: Lane) -> float:
        found = self._first(lane)
        return sum(key in found for key in keys) / len(keys)

    def _since(self, keys: frozenset[str], lane: Lane) -> int | None:
        """The event by which this lane had said enough of it; None: never."""
        found = sorted(at for key in keys if (at := self._first(lane).get(key)) is not None)
        needed = max(1, -(-len(keys) * 6 // 10))
        return found[needed - 1] if len(found) >= needed else None

    @cached_property
    def _cut(self) -> dict[Lane, int]:
        """For each lane the first event of which a part is missing here."""
        cut: dict[Lane, int] = {}
        for at, event in enumerate(self._events):
            if isinstance(event, Ran) and _CUT.search(event.output):
                cut.setdefault(_lane_of(event), at)
        return cut

    def _first(self, lane: Lane) -> dict[str, int]:
        """The words of a lane that are asked about, with the event that said each first."""
        return (self._spoken if lane in _SPOKEN else self._printed)[lane]

    @cached_property
    def _spoken(self) -> dict[Lane, dict[str, int]]:
        return self._index(_SPOKEN)

    @cached_property
    def _printed(self) -> dict[Lane, dict[str, int]]:
        """Apart: it is most of a session, and seldom needed."""
        return self._index(_PRINTED)

    def _index(self, lanes: tuple[Lane, ...]) -> dict[Lane, dict[str, int]]:
        first: dict[Lane, dict[str, int]] = {lane: {} for lane in lanes}
        wanted = frozenset(key for text in self._about for key in _possible_keys(text))
        begun = False
        for at, event in enumerate(self._events):
            begun = begun or isinstance(event, Ran)
            for lane, text in _texts(event, begun=begun) if wanted else ():
                if lane in first:
                    said = " ".join(set(text.casefold().split()))  # each word once: most come many times
                    for word in wanted.intersection(_TOKEN.findall(said)) | wanted.intersection(_PART.findall(said)):
                        first[lane].setdefault(word, at)
        return first


_SPOKEN: tuple[Lane, ...] = ("user", "agent")
_PRINTED: tuple[Lane, ...] = ("file", "tool", "web")  # from more to less trusted


def _texts(event: Said | Ran, *, begun: bool) -> Iterable[tuple[Lane, str]]:
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


def _sources_of(event: Said | Ran, keys: frozenset[str]) -> Iterable[str]:
    if isinstance(event, Said):
        printed = event.text
        yield f"said by {event.who}"
    else:
        printed, asked = event.output, event.arguments if event.command is None else event.command
        hosts = {_owner(host) for host in _HOST.findall(asked)}
        program = event.tool if event.command is None else next(iter(asked.split()), "")
        yield from sorted(hosts) if hosts else [f"program {program}"]
    line = max(printed.splitlines(), key=lambda line: sum(key in line.casefold() for key in keys), default="")
    # Without numbers: times and counts differ, and the line is the same.
    yield "line " + " ".join(sorted({word for word in words(line) if word.isalpha()}))


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


def tokens_of(text: str) -> Iterable[str]:
    """The words of a text, paths and options whole and in their parts."""
    for token in _TOKEN.findall(text.casefold()):
        yield token
        if not token.isalnum():
            yield from _PART.findall(token)


def names_of(text: str) -> frozenset[str]:
    """What stands in code marks, and words that look like paths, options and identifiers."""
    quoted = " ".join("".join(groups) for groups in _QUOTED.findall(text) if groups[0])
    found = set(_TOKEN.findall(quoted.casefold()))
    found |= {token for token in _TOKEN.findall(text.casefold()) if re.search(r"\w[_/.:@$-]\w|\d", token)}
    return frozenset(token for token in found if len(token) > 1)


def keys_of(text: str) -> frozenset[str]:
    """The telling words: names, else all words of some length."""
    names = names_of(text)
    if len(names) >= 2:
        return names
    return names | (_possible_keys(text) - _TOLD)


def _possible_keys(text: str) -> frozenset[str]:
    """What `keys_of` may find in any line of a text."""
    plain = {t for t in _TOKEN.findall(text.casefold()) if len(t) >= _MIN_PLAIN_CHARS or not t.isascii()}
    return names_of(text) | plain


def slug_words(slug: str | None) -> str:
    """The words in the name of a session."""
    return (slug or "").replace("-", " ").replace("_", " ")


def _without_conclusion(line: str) -> str:
    """A line of the rules without what follows from it in their words (`-> default in app`)."""
    said, _, conclusion = line.rpartition(" -> ")
    return said if said and not is_directive(conclusion) else line
