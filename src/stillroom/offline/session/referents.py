"""What a short answer of the user is about: the proposal, question or action that stands before it."""

from __future__ import annotations

import re

from stillroom.offline import cues
from stillroom.offline.session import shell
from stillroom.offline.session.turns import Turn
from stillroom.offline.text import sentences, words
from stillroom.offline.text.pattern import late
from stillroom.rollouts.events import Ran

_LABEL = r"[1-9]|[A-Ea-e]"
_SIGNS = {
    "①": "1",
    "②": "2",
    "③": "3",
    "④": "4",
    "甲": "1",
    "乙": "2",
    "丙": "3",
    "一": "1",
    "二": "2",
    "三": "3",
    "四": "4",
}
_SIGNED = late(r"([①②③④]|[甲乙丙](?=[、.：:）)]))[、.：:）)]?\s*([^①②③④\n]{3,200}?)(?=[。.；;\n]|[①②③④]|$)")
_LISTED = late(
    rf"^[ \t]*(?:[-*•][ \t]*)?(?:\*\*)?(?:(?:option|variante|opci[oó]n|op[cç][aã]o|вариант|方案|案|옵션)[ \t]*)?"
    rf"[(（]?({_LABEL}|[一二三四])(?:\*\*)?[.)）:：、][ \t]*(?:\*\*)?(.{{3,300}}?)[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
_INLINE = late(
    rf"(?:^|(?<=[\s(（:：;；,，、]))({_LABEL})[)）.][ \t]*(.{{3,200}}?)(?=[,;，；、。]?[ \t]*"
    rf"(?:or |and |oder |und |o |ou |y |или "
    rf"|和|或|と|または)?[ \t]*[(（]?(?<!\w)(?:{_LABEL})[)）.]|[?？。]|\.(?:\s|$)|$)",
    re.MULTILINE,
)
_PICKS = {
    1: r"first|former|1st|erste[nrs]?|primer[ao]?|premi[eè]re?|primeir[ao]|перв\w+|第一|最初の|一つ目|1つ目|"
    r"첫\s?(?:번째|째)|前者",
    2: r"second|2nd|zweite[nrs]?|segund[ao]|deuxi[eè]me|seconde?|втор\w+|第二|二つ目|2つ目|(?:두\s?번째|둘째)",
    3: r"third|3rd|dritte[nrs]?|tercer[ao]?|troisi[eè]me|terceir[ao]|трет\w+|第三|三つ目|3つ目|(?:세\s?번째|셋째)",
    -1: r"latter|last (?:one|option)|letzte[nrs]?|[uú]ltim[ao]|derni[eè]re?|последн\w+|后者|後者|最后一个|마지막",
}
_LED = late(
    rf"^\W*(?:[\w']+\s){{0,3}}?[就选選用要取]{{0,2}}(?:the |die |la |el |a |o )?"
    rf"(?:option|variante|opci[oó]n|op[cç][aã]o|вариант|方案|选项|案|옵션)?\s*[(（]?({_LABEL})(?:[)）]|\b(?!\s?[%\w])|[案番号번])",
    re.IGNORECASE,
)
_SAID_LAST = 14


def plain(text: str) -> str:
    """Markdown marks that only decorate, removed."""
    return re.sub(r"\*\*|__|^#+\s*|^[-*•]\s+", "", text).strip()


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
    """What a yes to the end of `turn` takes; labels such as "(a)" are spelt out. "" when it is only about going on."""
    found = offers(turn)
    if not found:
        return ""
    options = dict(reversed(_options(turn.last_reply)))
    text = " ".join(found)
    named = re.findall(rf"[(（]({_LABEL})[)）]|\b(?:option|variante)\s+({_LABEL})\b", text, re.IGNORECASE)
    spelt = [options[label] for pair in named[:1] if (label := (pair[0] or pair[1]).upper()) in options]
    return " — ".join([*(s for s in spelt if s not in text), text])


def picked(turn: Turn, answer: str) -> str:
    """The option that `answer` names, if the assistant had listed some."""
    options = _options(turn.last_reply)
    if len(options) < 2:
        return ""
    label = _LED.match(answer)
    if label:
        for name, text in options:
            if name == label[1].upper():
                return text
    short = answer[:80]
    for position, pattern in _PICKS.items():
        if re.search(
            pattern
            if not pattern.isascii() and re.search(r"[\u3040-\u9fff\uac00-\ud7a3]", short)
            else rf"\b(?:{pattern})\b",
            short,
            re.IGNORECASE,
        ):
            index = position if position < 0 else position - 1
            if index < len(options):
                return options[index][1]
    return ""


def named(turn: Turn, answer: str) -> str:
    """The sentence of the last message that a word or two of an answer names ("swap")."""
    own = words.content(answer)
    if not own or words.weight(own) > 2 or not turn.last_reply:
        return ""
    return next((s for s in _said(turn) if own <= words.content(s) and not s.endswith(("?", "？"))), "")


def paired(turn: Turn, answer: str) -> str:
    """Numbered questions with the numbered answers that `answer` gives them; "" if it gives none."""
    asked = [
        (label, text) for label, text in _options(turn.last_reply) if text.endswith(("?", "？")) and label.isdigit()
    ]
    if len(asked) < 2:
        return ""
    parts = re.split(r"(?:^|(?<=[\s,;，；、。.]))([1-9])[\s.):：、）]+", answer)
    given = dict(zip(parts[1::2], parts[2::2], strict=False))
    return "; ".join(f"{text} {given[label].strip(' ,;.')}" for label, text in asked if label in given)


def question(turn: Turn) -> str:
    """The question that the assistant ended `turn` with; "" if it asked none."""
    asked = [s for s in _said(turn)[-4:] if s.endswith(("?", "？"))]
    return asked[-1] if asked else ""


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
    names = [*re.findall(r"\d+", quote), *words.identifiers(quote)]
    for run in turn.runs:
        for edit in run.edits:
            for line in edit.diff.splitlines():
                if line.startswith("+") and any(
                    re.search(rf"(?<![\w.]){re.escape(name)}(?![\w])", line) for name in names
                ):
                    return f"now `{words.shorten(line[1:].strip().replace('`', ''), 100)}` in `{edit.path}`"
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
    return [plain(s) for s in sentences.split(sentences.without_pastes(turn.last_reply))][-_SAID_LAST:]


def _options(reply: str) -> list[tuple[str, str]]:
    found = [(_SIGNS.get(m[1], m[1].upper()), plain(m[2])) for m in _LISTED.finditer(reply)]
    if len(found) < 2:
        found = [(_SIGNS[m[1]], plain(m[2])) for m in _SIGNED.finditer(reply)]
    if len(found) < 2:
        found = [(m[1].upper(), plain(m[2])) for m in _INLINE.finditer(reply)]
    return found
