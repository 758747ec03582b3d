"""What a short answer of the user is about: the proposal, question or action that stands before it."""

from __future__ import annotations

import re
from functools import lru_cache

from stillroom.offline import cues
from stillroom.offline.session import options, shell
from stillroom.offline.session.options import plain
from stillroom.offline.session.turns import Turn
from stillroom.offline.session.wish import LEANING
from stillroom.offline.text import sentences, words
from stillroom.offline.text.secrets import gives_secret
from stillroom.pattern import late
from stillroom.rollouts.events import Ran

_NUMBERED = late(r"(?:^|(?<=[\s,;，；、。.]))([1-9])[\s.):：、）]+")
_SAID_LAST = 14


def offers(turn: Turn) -> list[str]:
    """What the assistant put forward at the end of `turn`: its last run of proposals and questions, in order."""
    said = _said(turn)
    spoken = cues.spoken_in(turn.last_reply, turn.spoken[0])
    found: list[str] = []
    for sentence in reversed(said):
        asks = sentence.endswith(("?", "？"))
        if not asks and not cues.has("proposal", sentence, spoken):
            if found:
                break
            continue
        if not is_process(sentence, spoken):
            found.append(sentence)
        if len(found) == 3:
            break
    return found[::-1]


def proposal(turn: Turn) -> str:
    """What a yes to the end of `turn` takes; choices that it names are spelt out. "" when it is only about going on."""
    found = offers(turn) or _put_forward(turn)
    if not found:
        return ""
    text = " ".join(found)
    spelt = options.mentioned(_choices(turn), text, cues.spoken_in(turn.last_reply, turn.spoken[0]))
    return f"{spelt} — {text}" if spelt and spelt not in text else text


def picked(turn: Turn, answer: str, spoken: tuple[str, ...]) -> str:
    """The choice that `answer` takes, if the assistant had laid out some."""
    return options.picked(_choices(turn), answer, spoken)


def lays_out(turn: Turn) -> bool:
    """Whether the assistant ended `turn` with choices to pick from."""
    return len(_choices(turn)) > 1


def named_choice(turn: Turn, sentence: str, spoken: tuple[str, ...]) -> str:
    """The choice that a later sentence of an answer takes by its name."""
    choices = _choices(turn)
    return options.by_name(choices, sentence, spoken) if len(choices) > 1 else ""


def settled(turn: Turn) -> str:
    """The choice that the assistant made by itself in `turn` and gave a reason for."""
    spoken = cues.spoken_in(turn.last_reply, turn.spoken[0])
    return next((s for s in _said(turn) if cues.has("choice", s, spoken)), "")


def named(turn: Turn, answer: str) -> str:
    """The sentence of the last message that a word or two of an answer names ("swap")."""
    own = words.content(answer)
    if not own or words.weight(own) > 2 or not turn.last_reply:
        return ""
    named = (s for s in _said(turn) if own < words.content(s) and not s.endswith(("?", "？")))
    return next(named, "")


def paired(turn: Turn, answer: str, spoken: tuple[str, ...]) -> list[tuple[str, str]]:
    """The numbered questions of `turn` with what the numbered answers in `answer` come to."""
    asked = {label: text for label, text in _choices(turn) if label.isdigit() and _asks(text, spoken)}
    parts = _NUMBERED.split(answer)
    given = dict(zip(parts[1::2], (part.strip(" ,;.，；。") for part in parts[2::2]), strict=False))
    if len(asked) < 2 or len(given) < 2:
        return []
    return [
        (text, options.picked(options.sides(text, spoken), given[label], spoken) or given[label])
        for label, text in asked.items()
        if given.get(label)
    ]


def _asks(text: str, spoken: tuple[str, ...]) -> bool:
    return text.endswith(("?", "？")) or bool(options.sides(text, spoken))


def answer(turn: Turn) -> str:
    """The sentence that `turn` answers the user's question with, if it asks nothing back."""
    said = _said(turn)
    if not said or any(s.endswith(("?", "？")) for s in said):
        return ""
    return next((s for s in said if words.weight(words.content(s)) >= 2), "")


def asked_about(turn: Turn) -> list[str]:
    """What stands before a question that only asks whether to go on ("a countdown is easy. want it?")."""
    said = _said(turn)
    return said[-3:] if said and said[-1].endswith(("?", "？")) else []


def question(turn: Turn) -> str:
    """The question that the assistant ended `turn` with; "" if it asked none."""
    asked = [s for s in _said(turn)[-4:] if s.endswith(("?", "？"))]
    return asked[-1] if asked else ""


def asks_what_was_meant(turn: Turn) -> bool:
    """Whether `turn` ended with a question on the user's own words: the answer to it decides nothing."""
    return cues.has("clarifying", question(turn), cues.spoken_in(turn.last_reply, turn.spoken[0]))


def action(turn: Turn) -> str:
    """What the assistant did last in `turn`, in few words."""
    for step in reversed(turn.steps):
        if not isinstance(step, Ran):
            continue
        if step.edits:
            paths = list(dict.fromkeys(edit.path for edit in step.edits))
            return "editing " + ", ".join(f"`{words.shorten(path, 80)}`" for path in paths[:3])
        if step.command:
            heads = [p.text for p in shell.parts(step.command) if not shell.only_looks(p.head)]
            if heads:
                return f"running `{words.shorten(heads[-1], 100)}`"
    return ""


def evidence(turn: Turn, quote: str) -> str:
    """The added line of this turn's edits that holds a number or name of `quote`."""
    names = [*re.findall(r"\d+(?:[.,]\d+)*", quote), *words.identifiers(quote)]
    for run in turn.runs:
        for edit in run.edits:
            for line in edit.diff.splitlines():
                if (
                    line.startswith("+")
                    and not gives_secret(line)
                    and any(re.search(rf"(?<![\w.]){re.escape(name)}(?:_?000)*(?![\w])", line) for name in names)
                ):
                    return f"now `{words.shorten(line[1:].strip().replace('`', ''), 100)}` in `{edit.path}`"
        if "mv " in (run.command or "") and (moved := _moved_to(run.command or "", names)):
            return f"now `{moved}`"
    return ""


def _moved_to(command: str, names: list[str]) -> str:
    """The name of `names` that a command gave to a file."""
    for part in shell.parts(command):
        told = shell.words(part.head)
        if told[:1] == ["mv"] or told[:2] == ["git", "mv"]:
            new = told[-1].rstrip("/")
            if any(new == name or new.endswith("/" + name) for name in names):
                return words.shorten(new, 100)
    return ""


def is_process(sentence: str, spoken: tuple[str, ...]) -> bool:
    """Whether an offer is only about going on ("shall I run the tests and commit?")."""
    if words.identifiers(sentence):
        return False
    left = words.content(sentence)
    for code in spoken:
        table = cues.table(code).cues.get("process", ())
        left -= frozenset(stem for word in table for stem in words.content(word))
    return words.weight(left) < 2.5


def _said(turn: Turn) -> list[str]:
    return list(_sentences_of(turn.last_reply))


# Several rules ask of the same reply.
@lru_cache(maxsize=64)
def _sentences_of(reply: str) -> tuple[str, ...]:
    return tuple(plain(s) for s in sentences.split(sentences.without_pastes(reply)))[-_SAID_LAST:]


def _choices(turn: Turn) -> list[tuple[str, str]]:
    return list(_choices_in(turn.last_reply, turn.spoken[0]))


@lru_cache(maxsize=64)
def _choices_in(reply: str, session: str) -> tuple[tuple[str, str], ...]:
    return tuple(options.options(reply, list(_sentences_of(reply)), cues.spoken_in(reply, session)))


def _put_forward(turn: Turn) -> list[str]:
    """What stands before a bare "ok?" or "shall I start?": the plan, or the list that was one."""
    said = _said(turn)
    if not said:
        return []
    spoken = cues.spoken_in(turn.last_reply, turn.spoken[0])
    if not said[-1].endswith(("?", "？", "。")):
        return [s for s in said[-2:] if cues.has("plan", s, spoken)]
    consent = cues.has("consent", said[-1], spoken)
    if not consent and not (said[-1].endswith(("?", "？")) and is_process(said[-1], spoken)):
        return []
    steps = options.listed(turn.last_reply)
    if len(steps) >= 2 and not any(step.endswith(("?", "？")) for step in steps):
        return ["; ".join(step.rstrip(" .;。；") for step in steps)]
    own = cues.without("consent", said[-1], spoken)
    if consent and words.weight(words.content(own)) >= LEANING:
        return [said[-1]]
    before = [s for s in said[-4:-1] if cues.has("plan", s, spoken)]
    if not before and consent and len(said) > 1 and not cues.has("done", said[-2], spoken):
        before = [said[-2]]
    return [s for s in before if not is_process(s, spoken)]
