"""Who in a session says a line that a model wrote, and whether the line may be trusted.

Trust goes by the quotation first: when the quoted words stand in a message of the person, the line is the person's,
whatever situation and default the model wrote round them. A line is held back only when its words are found in what a
tool, a file or the web said, nowhere with the person, and it instructs. A line that nobody is found to have said is
held when it instructs, unless it may be a translation or a summary of the person's words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from stillroom.lanes import Lane, Verdict, marked
from stillroom.sessions.directives import is_directive, prescribes
from stillroom.sessions.events import Ran, Said
from stillroom.sessions.pasted import own_words
from stillroom.sessions.printed import lane_of, works
from stillroom.sessions.terms import Terms, is_address, is_english, plain, script_of, stems, terms_of

#: So much of a statement in one passage, and that passage says it; of the person's words less is enough: a model may
#: word them anew, or translate a part.
_PRINTED_SHARE, _PERSON_SHARE, _PARAPHRASE_SHARE = 0.6, 0.75, 0.34
#: Fewer words than these are in many texts.
_LEAST_WORDS = 3
_MAX_PASSAGE_CHARS, _MAX_QUOTE_CHARS, _MAX_LINE_CHARS = 400, 400, 4000
PRINTED: tuple[Lane, ...] = ("file", "tool", "web")
#: Where lines say what the person wants.
_OF_PERSON = re.compile(r"preference", re.IGNORECASE)
_CLAIMS = re.compile(
    r"\b(?:user|person|they|he|she)\b[^\"“「«]{0,60}[\"“「«]|\b(?:wish|preference|asked for)\b", re.IGNORECASE
)
_QUOTED = re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”|„([^“”\n]+)[“”]|«([^»\n]+)»|「([^」\n]+)」|『([^』\n]+)』")
_OUTER = re.compile(r"[\"“„«「](.+)[\"”“»」]")
_CLAUSE = re.compile(r"(?<=[.!?;])\s+|[。！？；]|\s->\s|\s→\s|\s\(|\)\s|: ")
_PASSAGE_END = re.compile(r"(?<=[.!?])\s+|[\n。！？]|<!--|-->|<[^<>]{0,300}>")
_CUT = re.compile(r"\[… \d+ characters cut …\]")
_ELLIPSIS = re.compile(r"\s*(?:…|\.\.\.|\[\.\.\.\])\s*")


class Found(NamedTuple):
    """Words of a session that a line rests on."""

    lane: Lane
    line_no: int
    quote: str


class Attribution(NamedTuple):
    """Whose a line is, and the words it rests on, where they were found."""

    verdict: Verdict
    found: Found | None = None


class Source(NamedTuple):
    """What a line of a text rests on."""

    line: str
    found: Found


class _Passage(NamedTuple):
    lane: Lane
    at: int  #: the event
    line_no: int
    text: str
    words: frozenset[str]


class Attributor:
    """Finds the lines of a memory among the events of its session."""

    def __init__(self, events: Callable[[], Sequence[Said | Ran]], *, of_model: bool = True) -> None:
        """`events` is called once, when a line is asked for. `of_model`: rules invent nothing, so what is found with
        nobody is only doubted of a model."""
        self._read = events
        self._of_model = of_model
        self._known: dict[tuple[str, str], Attribution] = {}

    def marked(self, text: str, *, of_person: Container[str] = ()) -> str:
        """`text` with a mark at each line that is held back. Of the lines `of_person` it is known that they quote the
        person's own words, and nothing else."""

        def verdict(line: str, section: str) -> Verdict:
            if line in of_person:
                return Verdict("user", instruction=False)
            return self.attribute(line, section).verdict

        return marked(text, verdict)

    def sources(self, *texts: str) -> list[Source]:
        """What the bullets of these texts rest on, as far as it is found."""
        found: dict[str, Source] = {}
        for text in texts:
            section = ""
            for line in text.split("\n"):
                section = (
                    line.strip() if line.rstrip().endswith(":") and not line.startswith(("-", "*", " ")) else section
                )
                if line.startswith(("- ", "* ")) and (rests := self.attribute(line[2:].strip(), section).found):
                    found.setdefault(line[2:].strip(), Source(line[2:].strip(), rests))
        return list(found.values())

    def slug(self, slug: str | None) -> str | None:
        """The name of a session, unless it is an order of nobody's."""
        said = (slug or "").replace("-", " ").replace("_", " ")
        if not is_directive(said):
            return slug
        whose = self.attribute(said, "")
        return slug if whose.found is not None and whose.verdict.lane in ("user", "agent") else None

    def attribute(self, line: str, section: str) -> Attribution:
        """Whose the line is; `section` is the heading or the field in which it stands."""
        asked = (line, section)
        if asked not in self._known:
            self._known[asked] = self._attribute(line[:_MAX_LINE_CHARS], section)
        return self._known[asked]

    def _attribute(self, line: str, section: str) -> Attribution:
        spans = _spans(line)
        with_person = [(span, found) for span in spans if (found := self._said_by_person(span)) is not None]
        claim = _CLAIMS.search(line)
        is_claimed = bool(_OF_PERSON.search(section) or claim)
        # An error's words are quoted too; they are no advice ahead of what the line claims for the person.
        claimed_from = 0 if _OF_PERSON.search(section) else claim.start() if claim else len(line)
        told = _without_errors(line[:claimed_from]) + line[claimed_from:]
        unfound = [span for span in spans if span in told and span not in {said for said, _ in with_person}]
        rest = _QUOTED.sub(" ", line)
        if (planted := self._planted(unfound, rest, with_person, is_claimed)) is not None:
            return Attribution(Verdict(planted.lane, instruction=True), planted)
        if with_person:
            return Attribution(Verdict("user", instruction=False), with_person[0][1])
        terms = terms_of(line)
        if (near := self._near(("user",), terms, _PERSON_SHARE)) is not None:
            return Attribution(Verdict("user", instruction=False), _found(near))
        if (near := self._near(("agent",), terms, _PRINTED_SHARE)) is not None:
            return Attribution(Verdict("agent", instruction=False), _found(near))
        if (near := self._near(PRINTED, terms, _PRINTED_SHARE)) is not None:
            return Attribution(Verdict("agent", instruction=False), _found(near))
        return self._unfound(line, unfound, is_claimed=is_claimed)

    def _unfound(self, line: str, spans: list[str], *, is_claimed: bool) -> Attribution:
        """A line that nobody is found to have said in these words."""
        terms = terms_of(line)
        near = self._paraphrased(spans[0] if spans else line)
        if near is not None:
            return Attribution(Verdict("user", instruction=False), _found(near))
        orders = is_directive(_without_errors(line)) or (is_claimed and bool(spans))
        if not self._of_model or not orders:
            return Attribution(Verdict("agent", instruction=False))
        if is_claimed and self._may_be_translated(spans):
            return Attribution(Verdict("user", instruction=False))
        spoken = self._vocabulary("user") | self._vocabulary("agent")
        if not spans and not terms.names - spoken and len(terms.words & spoken) * 2 >= len(terms.words):
            return Attribution(Verdict("agent", instruction=False))
        return Attribution(Verdict("none", instruction=True))

    def _planted(
        self, unfound: list[str], rest: str, with_person: list[tuple[str, Found]], is_claimed: bool
    ) -> Found | None:
        """The printed words by which a part of a line instructs, though the person never said them."""
        for span in unfound:
            if (found := self._order_printed(span, is_claimed=is_claimed)) is not None:
                return found
        said = frozenset(stem for span, _ in with_person for stem in stems(span))
        for clause in filter(str.strip, _CLAUSE.split(_without_errors(rest))):
            if said and said & stems(clause) and not any(map(is_address, terms_of(clause).names)):
                continue  # what follows from the person's words
            if (found := self._order_printed(clause)) is not None:
                return found
        return None

    def _order_printed(self, said: str, *, is_claimed: bool = False) -> Found | None:
        terms = terms_of(said)
        if not terms.words or self._near(("user",), terms, _PERSON_SHARE) is not None:
            return None
        orders = is_directive(said)
        if not (orders or is_claimed or prescribes(said) or any(map(is_address, terms.names))):
            return None
        printed = self._near(PRINTED, terms, _PRINTED_SHARE) or self._with_names(terms)
        if printed is None:
            return self._unseen(terms) if orders else None
        is_order = _orders(printed.text)
        if not (orders or is_claimed or is_order):
            return None
        agent = self._near(("agent",), terms, _PRINTED_SHARE)
        if agent is not None and agent.at < printed.at:
            return None
        if not orders and not is_claimed and self._is_proven(terms):
            return None
        return _found(printed)

    def _with_names(self, terms: Terms) -> _Passage | None:
        """A printed passage that instructs and has all names of a statement, in whatever language around them."""
        spoken = self._vocabulary("user")
        # Where it leads says more than with which program.
        names = frozenset(filter(is_address, terms.names)) or terms.names
        if not names or names <= spoken:
            return None
        for passage in self._candidates(PRINTED, names):
            if names <= passage.words and _orders(passage.text):
                return passage
        return None

    def _unseen(self, terms: Terms) -> Found | None:
        """What was cut out of a long output, if the names are the assistant's alone: it may have them from there."""
        names = terms.names - self._vocabulary("user")
        agent = self._near(("agent",), terms, _PRINTED_SHARE)
        if not names or agent is None:
            return None
        cut = [event for event in self._events[: agent.at] if isinstance(event, Ran) and _CUT.search(event.output)]
        return Found(lane_of(cut[0]), cut[0].line_no, "") if cut else None

    def _is_proven(self, terms: Terms) -> bool:
        """Whether the assistant did what a statement says, and it worked."""
        names = terms.names
        if not names or any(map(is_address, names)):
            return False
        if all(map(str.isalpha, names)) and len(names) * 5 < len(terms.words) * 2:
            return False
        return any(names <= done for done in self._done)

    @cached_property
    def _done(self) -> list[frozenset[str]]:
        return [terms_of(text).all for event in self._events if isinstance(event, Ran) for text in works(event)]

    def _said_by_person(self, span: str) -> Found | None:
        """Where the person says these words: to the letter, or nearly."""
        pieces = [piece for part in _ELLIPSIS.split(span) if (piece := plain(part))]
        if not pieces:
            return None
        for line_no, text, said in self._person:
            if all(_stands_in(piece, said) for piece in pieces):
                return Found("user", line_no, _around(text, span))
        terms = terms_of(span)
        least = 2 if len(terms.words) > 1 else 1
        near = self._near(("user",), terms, _PERSON_SHARE, least=least)
        return None if near is None else _found(near)

    def _paraphrased(self, said: str) -> _Passage | None:
        """A sentence of the person that shares enough stems with what a model worded anew."""
        wanted = stems(said)
        if len(wanted) < 2:
            return None
        passages = [passage for passage in self._passages if passage.lane == "user"]
        best = max(passages, key=lambda passage: len(wanted & stems(passage.text)), default=None)
        return best if best and len(wanted & stems(best.text)) >= max(2, _PARAPHRASE_SHARE * len(wanted)) else None

    def _may_be_translated(self, spans: list[str]) -> bool:
        """Whether the person speaks another language than the line."""
        text = " ".join(said for _, _, said in self._person)
        if not text:
            return False
        asked = " ".join(spans)
        return not spans or script_of(asked) != script_of(text) or is_english(asked) != is_english(text)

    def _near(self, lanes: Sequence[Lane], terms: Terms, share: float, *, least: int = _LEAST_WORDS) -> _Passage | None:
        """The first passage with so much of the words."""
        wanted = terms.words
        if len(wanted) < least and not (terms.names and terms.names == wanted):
            return None
        good = [p for p in self._candidates(lanes, wanted) if len(wanted & p.words) >= share * len(wanted)]
        return min(good, key=lambda passage: passage.at, default=None)

    def _candidates(self, lanes: Sequence[Lane], wanted: frozenset[str]) -> list[_Passage]:
        numbers = sorted({n for word in wanted for n in self._postings.get(word, ())})
        return [passage for n in numbers if (passage := self._passages[n]).lane in lanes]

    def _vocabulary(self, lane: Lane) -> frozenset[str]:
        return self._vocabularies.get(lane, frozenset())

    @cached_property
    def _vocabularies(self) -> dict[Lane, frozenset[str]]:
        words: dict[Lane, set[str]] = {}
        for passage in self._passages:
            words.setdefault(passage.lane, set()).update(passage.words)
        return {lane: frozenset(found) for lane, found in words.items()}

    @cached_property
    def _events(self) -> Sequence[Said | Ran]:
        return self._read()

    @cached_property
    def _person(self) -> list[tuple[int, str, str]]:
        return [(at, part, plain(part)) for at, part in _own(self._events)]

    @cached_property
    def _passages(self) -> list[_Passage]:
        return list(_passages(self._events))

    @cached_property
    def _postings(self) -> dict[str, list[int]]:
        postings: dict[str, list[int]] = {}
        for number, passage in enumerate(self._passages):
            for word in passage.words:
                postings.setdefault(word, []).append(number)
        return postings


def _spans(line: str) -> list[str]:
    """What a line quotes; a quotation within one is looked for with it too."""
    spans = [next(filter(None, match.groups())) for match in _QUOTED.finditer(line)]
    if len(spans) > 1 and (outer := _OUTER.search(line.rpartition(" -> ")[0] or line)) and len(outer[1]) < 300:
        whole = outer[1]
        if plain(whole) not in map(plain, spans) and ("said" not in whole):
            spans.append(whole)
    return [span for span in spans if plain(span)]


#: What is told as the words of an error is no advice.
_ERROR = re.compile(
    r"(\b(?:fail|error|exit|stop|abort|crash|die[sd]|exception)\w*[^`\"“]{0,40})"
    r"(?:`[^`]+`|\"[^\"]+\"|“[^”]+”)",
    re.IGNORECASE,
)


def _without_errors(line: str) -> str:
    return _ERROR.sub(r"\1", line)


def _orders(printed: str) -> bool:
    return prescribes(printed) or is_directive(" ".join(printed.split()))


def _stands_in(piece: str, said: str) -> bool:
    """Whether a piece stands in what was said, as whole words where it is short."""
    if len(piece) > 6 or not piece.isascii():
        return piece in said
    return re.search(rf"(?<!\w){re.escape(piece)}(?!\w)", said) is not None


def _around(text: str, span: str) -> str:
    at = text.casefold().find(span.casefold()[:40])
    return text[at : at + _MAX_QUOTE_CHARS] if at >= 0 else text[:_MAX_QUOTE_CHARS]


def _found(passage: _Passage) -> Found:
    return Found(passage.lane, passage.line_no, passage.text[:_MAX_QUOTE_CHARS])


def _own(events: Sequence[Said | Ran]) -> Iterator[tuple[int, str]]:
    for event in events:
        if isinstance(event, Said) and event.who == "user":
            for part in own_words(event.text):
                yield event.line_no, part


def _passages(events: Sequence[Said | Ran]) -> Iterator[_Passage]:
    begun = False
    for at, event in enumerate(events):
        begun = begun or isinstance(event, Ran) or event.who == "user"
        for lane, text in _texts_of(event, begun=begun):
            pieces = [piece.strip() for piece in _PASSAGE_END.split(text) if piece.strip()]
            # A line that is broken to fit is one of two.
            for one, two in zip(pieces, [*pieces[1:], ""], strict=False):
                if said := f"{one}\n{two}"[: 2 * _MAX_PASSAGE_CHARS].strip():
                    yield _Passage(lane, at, event.line_no, said, terms_of(said).all)


def _texts_of(event: Said | Ran, *, begun: bool) -> Iterator[tuple[Lane, str]]:
    if isinstance(event, Ran):
        yield "agent", event.command or event.arguments
        for edit in event.edits:
            yield "agent", f"{edit.path}\n{edit.diff}"
        yield lane_of(event), event.output
        return
    if event.who == "user":
        own = own_words(event.text)
        for part in own:
            yield "user", part
        pasted = event.text
        for part in own:
            pasted = pasted.replace(part, "\n", 1)
        yield "tool", pasted
        return
    # What a client put in is no person's word. Another agent gives the task at the beginning, where no person does;
    # what it tells later it may have read anywhere.
    from_agent: Lane = "tool" if begun else "agent"
    lanes: dict[str, Lane] = {"assistant": "agent", "agent": from_agent, "harness": "tool"}
    yield lanes[event.who], event.text
