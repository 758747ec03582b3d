"""The sentences of a session, each with what is known of it as numbers: its place, what came of it, a few cues."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from stillroom.offline import cues, shell
from stillroom.offline.sentences import identifiers, sentences, share, size, terms
from stillroom.offline.work import Fate, Turn, details, fates
from stillroom.sessions.events import Ran, Said
from stillroom.sessions.pasted import own_words

Features = dict[str, float]
_ASKS = ("?", "？")
_QUOTES = re.compile(r"[\"“«「']\w[^\"”»」']{2,}[\"”»」']")
_SHOUTS = re.compile(r"\b[A-ZА-Я]{3,}\b")
_JOINS = re.compile(r"[,，、;:：]")
_NUMBER = re.compile(r"\d")
_PATH = re.compile(r"[\w.~-]*/[\w.-]+/[\w./-]+|\b[\w-]+\.[a-z]{1,5}:\d+|\bline \d+")
_HEADING = re.compile(r"^#{1,4} \S", re.MULTILINE)
_LONG_MESSAGE, _DOCUMENT = 600, 1500
"""Characters: people rarely type more at once."""
_OUTPUT_CHARS, _REPLY_CHARS = 3000, 2000
_NEAR_TURNS, _NEAR_SENTENCES = 30, 8
"""How far a sentence is looked for again."""


@dataclass(slots=True)
class Sentence:
    """A sentence of the person or the assistant, to be scored."""

    who: Literal["user", "assistant"]
    text: str
    said: Said  #: the message that it stands in
    turn: int
    place: int  #: of its message among the session's events
    first: bool  #: it opens its message
    context: str = ""  #: the assistant's last sentence ahead of it, for one that opens its turn
    features: Features = field(default_factory=dict)
    score: float = 0.0


def found_in(turns: Sequence[Turn]) -> list[Sentence]:
    """All sentences in order, with their features."""
    done = [_Done.of(turn) for turn in turns]
    later = _later_terms(done)
    gone = _gone_after(done)
    lines = fates(turns)
    acted = any(each.edits or each.runs for each in done)
    spoken = [[terms(text) for text, _ in turn.sentences] for turn in turns]
    found: list[Sentence] = []
    for turn in turns:
        number = turn.number
        around = _Around(
            done=done[number],
            before=done[number - 1] if number else None,
            after=done[number + 1] if number + 1 < len(done) else None,
            later=later[number],
            gone=gone[number],
            fate=lines[number],
            last=number == len(turns) - 1,
            acted=acted,
            next_first=next((text for text, _ in turns[number + 1].sentences), "") if number + 1 < len(turns) else "",
            again=[one for near in spoken[number + 1 : number + _NEAR_TURNS] for one in near[:_NEAR_SENTENCES]],
            once=[one for near in spoken[max(0, number - _NEAR_TURNS) : number] for one in near[:_NEAR_SENTENCES]],
        )
        found += _of_person(turn, around)
        found += _of_assistant(turn, turns, around)
    return found


@dataclass(frozen=True, slots=True)
class _Done:
    """What was done in answer to a turn."""

    terms: frozenset[str]
    names: frozenset[str]  #: identifiers that were run, printed or put into files
    added: frozenset[str]  #: terms and identifiers that were put into files
    put: frozenset[str]
    out: frozenset[str]
    undo: bool
    edits: bool
    runs: bool
    failed: bool

    @classmethod
    def of(cls, turn: Turn) -> _Done:
        words, names, added = set[str](), set[str](), set[str]()
        plus, minus = set[str](), set[str]()
        for run in turn.runs:
            text = f"{run.command or ''} {run.output[:1500]}"
            words |= terms(text)
            names |= identifiers(text)
        for edit in turn.edits:
            rows = edit.diff.splitlines()
            text = "\n".join(row for row in rows if row[:1] == "+")
            words |= terms(edit.path + text)
            names |= identifiers(f"{edit.path} {text}")
            added |= terms(text) | identifiers(text)
            plus |= identifiers(text)
            minus |= identifiers("\n".join(row for row in rows if row[:1] == "-"))
        for reply in turn.replies:
            words |= terms(reply.text[:_REPLY_CHARS])
        commands = [run.command for run in turn.runs if run.command]
        return cls(
            terms=frozenset(words),
            names=frozenset(names),
            added=frozenset(added),
            put=frozenset(plus),
            out=frozenset(minus - plus),
            undo=any(shell.UNDOES.search(command) for command in commands),
            edits=bool(turn.edits),
            runs=bool(turn.runs),
            failed=any(shell.passed(run) is False for run in turn.runs if run.command),
        )


@dataclass(frozen=True, slots=True)
class _Around:
    """What surrounds the sentences of one turn."""

    done: _Done
    before: _Done | None
    after: _Done | None
    later: frozenset[str]  #: what was done and seen from this turn on
    gone: frozenset[str]  #: names that later turns took out of the files for good
    fate: Fate
    last: bool
    acted: bool  #: anything was run or edited in the session
    next_first: str  #: the first sentence of the next turn
    again: Sequence[frozenset[str]]  #: what the person says later
    once: Sequence[frozenset[str]]  #: what they said before


def _later_terms(done: Sequence[_Done]) -> list[frozenset[str]]:
    found: list[frozenset[str]] = []
    total: frozenset[str] = frozenset()
    for each in reversed(done):
        total |= each.terms
        found.append(total)
    return found[::-1]


def _gone_after(done: Sequence[_Done]) -> list[frozenset[str]]:
    """For each turn what later ones took out of the files and did not put back; newest first, so once is enough."""
    found: list[frozenset[str]] = []
    gone: frozenset[str] = frozenset()
    back: frozenset[str] = frozenset()
    for each in reversed(done):
        found.append(gone)
        gone |= each.out - back
        back |= each.put - each.out
    return found[::-1]


def _of_person(turn: Turn, around: _Around) -> list[Sentence]:
    tail = [s for own in own_words(turn.before) for s in sentences(own)][-3:] if turn.before else []
    asked = bool(tail) and tail[-1].rstrip().endswith(_ASKS)
    tail_terms = terms(" ".join(tail))
    many = len(turn.sentences)
    hits = [cues.found(text) for text, _ in turn.sentences]
    found = []
    for number, (text, said) in enumerate(turn.sentences):
        own, names = terms(text), identifiers(text)
        done, after = around.done, around.after
        x = _of_text(text, hits[number])
        x |= {
            "turn0": turn.number == 0,
            "turn0_first": turn.number == 0 and number == 0,
            "last_turn": around.last,
            "firstsent": number == 0,
            "lastsent": number == many - 1,
            "alone": many == 1,
            "many": many > 5,
            "verymany": many > 12,
            "long_message": len(said.text) > _LONG_MESSAGE,
            "document": len(said.text) > _DOCUMENT or bool(_HEADING.search(said.text)),
            "own_share": sum(len(s) for s, m in turn.sentences if m is said) / max(1, len(said.text)),
            "mark_up": "**" in text or text.startswith(("#", "|", "[")),
            "edits_after": done.edits,
            "runs_after": done.runs,
            "nothing_after": not done.edits and not done.runs,
            "failed_after": done.failed,
            "after_edit": bool(around.before and around.before.edits),
            "after_failed": bool(around.before and around.before.failed),
            "asked_before": asked,
            "ov_before": share(own, tail_terms),
            "ov_after": share(own, done.terms),
            "ov_later": share(own, around.later),
            "names_after": share(names, done.names),
            "no_names": not names,
            "again": max((len(own & other) / max(4, len(own)) for other in around.again), default=0.0),
            "once": max((len(own & other) / max(4, len(own)) for other in around.once), default=0.0),
            "gone": share(names, around.gone),
            "lost": around.fate.lost / around.fate.put if around.fate.put else 0.0,
            "lost_all": around.fate.lost > 0 and around.fate.lost >= 0.8 * around.fate.put,
            "lost_own": bool(around.fate.gone & details(text)),
            "undone": bool(after and after.undo),
            "undone_now": done.undo,
            "chat": not around.acted,
            "next_undo": number == 0 and cues.has("undo", around.next_first),
            "strong_turn0": x["strong"] and turn.number == 0,
            "strong_many": x["strong"] and many > 5,
        }
        for side, at in (("prev", number - 1), ("next", number + 1)):
            if 0 <= at < many:
                x |= {f"{side}_{kind}": hits[at][kind] > 0 for kind in _NEIGHBOUR_KINDS}
        context = tail[-1] if tail and number == 0 else ""
        found.append(Sentence("user", text, said, turn.number, turn.first - 1, number == 0, context, _numbers(x)))
    return found


_NEIGHBOUR_KINDS = ("lasting", "passing", "undo", "explicit")


def _of_assistant(turn: Turn, turns: Sequence[Turn], around: _Around) -> list[Sentence]:
    found: list[Sentence] = []
    seen, names_seen = set[str](), set[str]()
    failed = edited = False
    asked = frozenset().union(*(terms(text) for text, _ in turn.sentences)) if turn.sentences else frozenset[str]()
    reply = " ".join(text for text, _ in turns[turn.number + 1].sentences[:2]) if not around.last else ""
    answer = cues.found(reply) if reply else dict.fromkeys(cues.KINDS, 0)
    for at, step in enumerate(turn.steps):
        if isinstance(step, Ran):
            printed = step.output[:_OUTPUT_CHARS]
            seen |= terms(printed + step.output[-1000:])
            names_seen |= identifiers(printed)
            failed = failed or (step.command is not None and shell.passed(step) is False)
            edited = edited or bool(step.edits)
            continue
        if step.who != "assistant":
            continue
        follows = next((later for later in turn.steps[at + 1 :] if isinstance(later, Ran)), None)
        own_sentences = [s for own in own_words(step.text) for s in sentences(own)]
        for number, text in enumerate(own_sentences):
            own, names = terms(text), identifiers(text)
            x = _of_text(text, cues.found(text))
            x |= {
                "final": step.final,
                "then_edit": bool(follows and follows.edits),
                "then_run": bool(follows and follows.command),
                "after_failed": failed,
                "after_edit": edited,
                "ov_seen": share(own, seen),
                "names_seen": share(names, names_seen),
                "ov_asked": share(own, asked),
                "ov_edit": share(own, around.done.added),
                "names_edit": share(names, around.done.added),
                "firstsent": number == 0,
                "lastsent": number == len(own_sentences) - 1,
                "alone": len(own_sentences) == 1,
                "many": len(own_sentences) > 5,
                "turn0": turn.number == 0,
                "gone": share(names, around.done.out),
                "gone_later": share(names, around.gone),
                "lost_own": bool(around.fate.gone & details(text)),
                "no_names": not names,
                "chat": not around.acted,
                "next_undo": answer["undo"] > 0,
                "next_negative": answer["negative"] > 0,
                "next_nod": answer["nod"] > 0,
            }
            place = turn.first + at
            found.append(Sentence("assistant", text, step, turn.number, place, number == 0, features=_numbers(x)))
    return found


def _of_text(text: str, hit: dict[str, int]) -> Features:
    """What the words alone tell."""
    length = size(text)
    start = cues.found(" ".join(text.split()[:3])[:30])
    x: Features = {
        "bias": 1.0,
        "short": length < 4,
        "len4_8": 4 <= length < 8,
        "len8_16": 8 <= length < 16,
        "len16_30": 16 <= length < 30,
        "long": length >= 30,
        "question": text.rstrip(" )\"'").endswith(_ASKS),
        "exclaim": "!" in text or "！" in text,
        "code": bool(identifiers(text)),
        "number": bool(_NUMBER.search(text)),
        "comma": bool(_JOINS.search(text)),
        "upper": bool(_SHOUTS.search(text)),
        "quote": bool(_QUOTES.search(text)),
        "paren": "(" in text,
        "path": bool(_PATH.search(text)),
        "link": "://" in text,
        "names_many": len(identifiers(text)) > 2,
    }
    for kind in cues.KINDS:
        x[f"c_{kind}"] = hit[kind] > 0
        x[f"c2_{kind}"] = hit[kind] > 1
        x[f"s_{kind}"] = start[kind] > 0
    for one, other in _PAIRS:
        x[f"{one}&{other}"] = hit[one] > 0 and hit[other] > 0
    x["strong"] = hit["strong"] > 0
    x["c_none"] = not any(hit.values())
    return x


_PAIRS = (
    ("lasting", "negative"),
    ("lasting", "want"),
    ("lasting", "passing"),
    ("negative", "because"),
    ("strong", "passing"),
    ("want", "passing"),
    ("lasting", "opinion"),
)


def _numbers(x: Features) -> Features:
    return {name: float(value) for name, value in x.items() if value}
