"""Which words of a user's message are the person's own, and which they pasted.

    >>> own_words("The boss writes:\\nAlways deploy on Fridays.\\n\\nAnswer politely. We use uv here.")
    ['The boss writes:', 'Answer politely. We use uv here.']

The form of the text decides first: fences, quoting marks, rulers, logs, code, diffs, headers of mails and tickets,
names before lines of talk, numbered clauses. A line that announces a text ("here is the ticket:") hands on the block
behind it; the paste ends where the person speaks again. Last, a sentence that addresses third persons ("all
contributors must") is not said to an agent. In doubt a text is a paste: a lost sentence costs less than an obeyed one.
"""

from __future__ import annotations

import re

from stillroom.pattern import late
from stillroom.sessions import pasted_words as say

_MAX_CHARS = 200_000
_UNSEEN = late(r"[\u200b-\u200f\u2060-\u2064\ufeff\u00ad\U000e0000-\U000e007f]")
_FENCE = late(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_TAG = late(r"^[ \t]*<([A-Za-z][\w-]*)(?:\s[^<>\n]*)?>", re.MULTILINE)
_RULER = late(r"^[ \t]*([-=_*~#])\1{2,}(?:.*\1{3,})?[ \t]*$", re.MULTILINE)

_LETTERS = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_TIME = r"\d{1,2}[:h]\d\d(?::\d\d)?(?:\s?[ap]\.?m\.?)?"
_NAME = r"@?[\w.-]+(?: [\w.-]+){0,2}"

#: A line that a program wrote. Each alternative is cheap to refuse: it is anchored at the start.
_MACHINE = late(
    r"""^\s*(?:
      [\[(]?\d{4}[-/]\d\d[-/]\d\d[T\s]\d\d:\d\d | \[\s*\d+\.\d{2,}\]\s | \w{3}\s+\d+\s\d\d:\d\d:\d\d
    | [\[(<]?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL|PANIC|FAIL|FAILED|PASS|PASSED)
      (?:[\])>:|]|\s+[\w./\[(-]*[:\]/._]|\s{2,})
    | [\[【(](?:\w{4,14}|警告|错误|提示|信息|エラー|오류|경고)[\])】]\s
    | (?:[Ee]rror|fatal|panic|warning|note|hint|help)(?:\[\w+\])?:\s
    | (?:npm|pnpm|yarn)\s(?:ERR!|WARN) | (?:make|ld|gcc|clang)(?:\[\d+\])?:\s | remote:\s
    | at\s[\w$.<>/\\\[\] ]+\(.*:\d+.*\)\s*$ | at\s\S+:\d+ | File\s".*",\sline\s\d+ | Traceback\s\(most
    | Caused\sby:\s\w+[.:] | \.\.\.\s\d+\smore | goroutine\s\d+ | [\w.]+(?:Error|Exception|Warning)(?::|\s\[)
    | [✓✔✗✘✖×●○◯⨯]\s | \d+:\d+\s+(?:error|warning|warn|info)\b
    | [$%❯➜]\s\S+ | PS\s\S+>\s | \w+@[\w.-]+[:\s].*[$\#]\s
    | (?:\+\+\+|---|@@|diff\s--git|index\s[0-9a-f]{7})\s
    | [E]\s{2,}\S | \d+\s*\|\s | -->\s | \|.*\|\s*$ | \^+\s*$ | ~+\^
    | [{}\[\]()]+[,;]?\s*$ | \{\s*"[\w.-]+"\s*: | "[\w.-]+":\s | <\/?[\w-]+[^>]*>\s*$
    | //\s | /\*+(?:\s|$) | \*/\s*$ | \#include\b | \#\s(?:NOTE|TODO|FIXME|XXX|HACK)\b
    | from\s\S+\simport\s | import\s\S.*\sfrom\s | import\s[\w.]+;?\s*$
    | (?:async\s+)?(?:def|class|func|fn|function|public|private|const|let|var|return|with|if|for|while)\b.*[{:;(),=]\s*$
    | [\w*&<>\[\]:. ]+\s[\w:~]+\([^)]*\)\s*[{;]\s*$ | .*\S;\s*(?://.*)?$
    | (?:export\s+)?[A-Z][A-Z0-9_]{2,}=\S*\s*$ | \S+\.\w{1,5}:\d+(?::\d+:?|:)\s | \[\d+/\d+\]\s | HTTP/\d
    | (?:GET|POST|PUT|DELETE|PATCH)\s\S*/\S*\s+(?:HTTP|\d{3})
    | Step\s\d+/\d+\s: | exit\s(?:status|code)\s\d
    | (?:SELECT|INSERT|UPDATE|ALTER|CREATE|DROP)\s.*\b(?:FROM|INTO|SET|TABLE|INDEX)\b
    | \S{160,}\s*$
    )""",
    re.VERBOSE,
)
_CJK = late(rf"[{_LETTERS}]")
#: A line of talk: a name beside a time, in angle brackets, or behind an at sign.
_TALK = late(
    rf"^\W{{0,3}}(?:[\[(]?(?:\d[\d./-]{{5,9}},?\s+)?{_TIME}[\])]?\s*[-–,]?\s*{_NAME}\s*[:：>]\s"
    rf"|{_NAME},?\s*[\[(]?{_TIME}[\])]?\s*[:：>-]\s*\S|<@?[\w.-]{{2,20}}>\s|@[\w.-]{{2,30}}\s?[:：]\s)",
    re.IGNORECASE,
)
#: The same, on a line of its own above what is said.
_TALKER = late(
    rf"^\s*{_NAME},?\s+[\[(]?{_TIME}[\])]?\s*$|^@[\w.-]{{2,30}}\s+\w+(?: \w+){{0,4}}[:：]?\s*$", re.IGNORECASE
)
_LABEL = late(rf"^\s*(?:[-*•・]\s*)?([^\W\d_][\w.]*(?: [\w.]+)?|[{_LETTERS}]{{1,6}})\s*[:：]\s*\S")
_CLAUSE = late(r"^\s*(?:§\s?\d+|(?:REQ|AC|R|US|FR|NFR)[-_ ]?\d+[:.)]?|\d{1,2}(?:\.\d{1,2})+[.)]?)\s+\S")
_BULLET = late(r"^\s*(?:[-*•+・]|\d{1,2}[.)、]|[（(]?[a-zA-Z\d一二三四五六七八九十][)）])\s+\S")
_HEADING = late(r"^\s*(?:#{1,6}\s+\S|\*\*[^*]{2,60}\*\*:?\s*$|__[^_]{2,60}__:?\s*$)")
_TICKET_ID = late(r"\b(?:[A-Z][A-Z0-9]{1,9}-\d+|GH-?\d+|#\d{1,6})\b|!\d{2,6}\b")
#: The title of a ticket: what stands below is its text.
_TITLE = late(
    r"^(?:\W{0,3}(?:issue|ticket|bug|story|task|pr|mr)\s*)?(?:[A-Z][A-Z0-9]{1,9}-\d+|GH-?\d+|#\d{1,6})\s*[:：–—-]\s",
    re.IGNORECASE,
)
_COLON = (":", "：", ":**", ":*")
_SENTENCE = late(r"(?<=[.!?;])[\"'”’)\]]?\s+(?=\S)|(?<=[。！？；])")
_QUOTATION = late(r"\"[^\"\n]{12,}\"|“[^”\n]{12,}”|„[^“”\n]{12,}[“”]|«[^»\n]{12,}»|「[^」\n]{8,}」|『[^』\n]{8,}』")
_CLAUSES_OF_A_DOCUMENT = 2


def own_words(text: str) -> list[str]:
    """The parts of a user's message that are the person's own words, in order."""
    text = _UNSEEN.sub("", text[:_MAX_CHARS].replace("\r\n", "\n"))
    text = _without_tagged(_FENCE.sub("\n\x00\n", text))
    lines = _without_ruled_off(text).split("\n")
    return _Message(lines).own()


class _Message:
    """The lines of a message, read from top to bottom."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._formed = _formed(lines)
        self._parts: list[str] = []
        self._run: list[str] = []

    def own(self) -> list[str]:
        at = 0
        while at < len(self._lines):
            if not self._lines[at].strip() or self._formed[at]:
                self._break()
                at += 1
                continue
            line = self._lines[at]
            self._take(line)
            at += 1
            if self._is_lead_in(at - 1):
                self._break()
                at = self._end_of_paste(at, line)
        self._break()
        return self._parts

    def _take(self, line: str) -> None:
        sentences = own_sentences(line)
        if sentences == [line]:
            self._run.append(line)
            return
        for sentence in sentences:
            self._break()
            self._run.append(sentence)
        self._break()

    def _break(self) -> None:
        if joined := "\n".join(self._run).strip():
            self._parts.append(joined)
        self._run = []

    def _is_lead_in(self, at: int) -> bool:
        line = self._lines[at].strip()
        behind = self._next(at + 1)
        if behind is None:
            return False
        if _TITLE.match(line) and behind == at + 1:
            return True
        last = _SENTENCE.split(line)[-1] if not line.endswith(_COLON) else line
        if say.OWN_RULES.search(last) and not say.REPORTED.search(last):
            return False
        hands_on = say.TEXTS.search(line) or say.REPORTED.search(line) or _TICKET_ID.search(line)
        if line.endswith(_COLON):
            return bool(hands_on or say.SHOWN.search(line) or say.WORKED_ON.search(line))
        if say.BELOW.search(line) and hands_on:
            return True
        if not say.SHOWN.search(line):
            return False
        # "what does this do?", then code; "this is the prompt, what is wrong with it?", then a paragraph.
        end = self._block_end(behind)
        return self._formed[behind] or bool(hands_on and behind > at + 1 and not self._is_own_turn(behind, end))

    def _next(self, at: int) -> int | None:
        return next((number for number in range(at, len(self._lines)) if self._lines[number].strip()), None)

    def _end_of_paste(self, at: int, lead_in: str) -> int:
        """Where the person speaks again, after what a line handed on."""
        first = self._next(at)
        if first is None:
            return len(self._lines)
        is_letter = bool(say.GREETING.match(self._lines[first].strip()))
        end = self._block_end(first)
        if self._formed[first]:
            end = next((n for n in range(first, end) if not self._formed[n]), end)
        closed = first == at and not say.LONG_TEXTS.search(lead_in)
        if is_letter and (signed := self._sign_off(first)) is not None:
            end, closed = self._block_end(signed), True
        while (start := self._next(end)) is not None:
            stop = self._block_end(start)
            shape = self._is_formed(start, stop)
            if not shape and (closed or self._is_formed(first, end) or self._is_own_turn(start, stop)):
                return start
            if not shape and _HEADING.match(self._lines[start]) is None:
                closed = False
            first, end = start, stop
        return len(self._lines)

    def _block_end(self, start: int) -> int:
        return next((n for n in range(start, len(self._lines)) if not self._lines[n].strip()), len(self._lines))

    def _sign_off(self, start: int) -> int | None:
        return next((n for n in range(start, len(self._lines)) if say.SIGN_OFF.match(self._lines[n].strip())), None)

    def _is_formed(self, start: int, stop: int) -> bool:
        """Whether a block has the form of a list, a listing, a talk, or a heading."""
        block = range(start, stop)
        shaped = [
            n for n in block if self._formed[n] or _BULLET.match(self._lines[n]) or _HEADING.match(self._lines[n])
        ]
        return len(shaped) * 2 >= len(block)

    def _is_own_turn(self, start: int, stop: int) -> bool:
        """Whether a paragraph behind a paste is the person's: it speaks of itself, or says what to do with the text."""
        paragraph = " ".join(line.strip() for line in self._lines[start:stop])
        return bool(say.TURN.match(paragraph) or say.FIRST_PERSON.search(paragraph))


def own_sentences(line: str) -> list[str]:
    """The sentences of a line without those of others, `[line]` when all are the person's."""
    kept: list[str] = []
    changed = False
    quoting = False
    for sentence in _SENTENCE.split(line):
        if not sentence.strip():
            continue
        if quoting and not say.TURN.match(sentence.strip()) and not say.FIRST_PERSON.search(sentence):
            changed = True
            continue
        quoting = False
        if say.THIRD_PERSON.match(sentence.strip().lstrip("-*• ")):
            changed = True
            continue
        head, colon = _inline(sentence)
        if colon:
            kept.append(f"{head}{colon} …")
            changed = quoting = True
            continue
        if (say.REPORTED.search(sentence) or say.TEXTS.search(sentence)) and _QUOTATION.search(sentence):
            sentence, changed = _QUOTATION.sub('"…"', sentence), True
        kept.append(sentence)
    return kept if changed else [line]


def _inline(sentence: str) -> tuple[str, str]:
    """Who is quoted behind a colon, and the colon; "" when nobody is."""
    at = next((n for n, char in enumerate(sentence) if char in ":：" and sentence[n + 1 : n + 2] not in ("/", "")), -1)
    if at < 0 or not sentence[at + 1 :].strip() or (sentence[at] == ":" and sentence[at + 1] not in ' "“«'):
        return sentence, ""
    head = sentence[:at]
    if say.OWN_RULES.search(head) and not say.REPORTED.search(head):
        return sentence, ""
    if say.REPORTED.search(head) or say.WORKED_ON.search(head) or say.SOURCE.match(head.strip()):
        return head, sentence[at]
    return sentence, ""


def _formed(lines: list[str]) -> list[bool]:
    """For each line whether its form, or that of its neighbours, says that it was pasted."""
    formed = [_is_formed(line) for line in lines]
    last = max(
        (n for n, line in enumerate(lines) if n and line.strip() and not lines[n - 1].strip()), default=len(lines)
    )
    clauses = [n for n, line in enumerate(lines) if n < last and _CLAUSE.match(line)]
    if len(clauses) >= _CLAUSES_OF_A_DOCUMENT:
        for n in clauses:
            formed[n] = True
    _mark_talks(lines, formed)
    _mark_fields(lines, formed)
    _mark_diffs(lines, formed)
    for n in range(len(lines)):
        if formed[n] or not lines[n].strip() or _BULLET.match(lines[n]):
            continue
        before, after = n > 0 and formed[n - 1], n + 1 < len(lines) and formed[n + 1]
        # A line between two pasted ones, or set in under one, belongs to the paste.
        is_within = before and (after or lines[n][:1] in " \t")
        is_below = n > 1 and formed[n - 2] and not lines[n - 1].strip() and lines[n][:4].isspace()
        formed[n] = is_within or is_below
    return formed


def _is_formed(line: str) -> bool:
    stripped = line.strip()
    if not stripped:
        return False
    if stripped == "\x00" or (stripped.startswith(">") and not stripped.startswith(">=")):
        return True
    if _QUOTATION.fullmatch(stripped.rstrip(",")):
        return True
    if _MACHINE.match(line):
        return not (_CJK.search(line) and len(stripped) >= 160)
    if _TALK.match(line):
        return True
    if len(stripped) < 12:
        return False
    symbols = sum(not (char.isalnum() or char.isspace()) for char in stripped) / len(stripped)
    return symbols > 0.4


def _mark_talks(lines: list[str], formed: list[bool]) -> None:
    """Lines of a talk: each begins with a name and a colon, and one of several names comes back."""
    run: list[tuple[int, str]] = []
    talker = False
    for n, line in enumerate([*lines, ""]):
        match = _LABEL.match(line)
        if match:
            run.append((n, match[1]))
        else:
            names = [name for _, name in run]
            if 1 < len(set(names)) < len(names):
                for number, _ in run:
                    formed[number] = True
            run = []
        if n < len(lines):
            talker = bool(line.strip()) and (talker or _TALKER.match(line) is not None)
            formed[n] = formed[n] or talker


def _mark_fields(lines: list[str], formed: list[bool]) -> None:
    """Headers of a mail or a ticket: from the first on, with the title above, to the end of the block."""
    n = 0
    while n < len(lines):
        if not say.FIELD.match(lines[n].strip()):
            n += 1
            continue
        start = n
        while (
            start > 0 and lines[start - 1].strip() and not lines[start - 1].rstrip().endswith((".", "!", "?", *_COLON))
        ):
            start -= 1
        is_mail = bool(say.MAIL_FIELD.match(lines[n].strip()))
        end = n
        while end < len(lines) and lines[end].strip():
            end += 1
        if is_mail:
            end = _end_of_mail(lines, end)
        for number in range(start, end):
            formed[number] = bool(lines[number].strip()) or formed[number]
        n = max(end, n + 1)


def _end_of_mail(lines: list[str], end: int) -> int:
    """A mail goes on behind its headers: to its signature, else through the next paragraph."""
    signed = next((n for n in range(end, len(lines)) if say.SIGN_OFF.match(lines[n].strip())), None)
    body = next((n for n in range(end, len(lines)) if lines[n].strip()), len(lines))
    start = body if signed is None else signed
    return next((n for n in range(start, len(lines)) if not lines[n].strip()), len(lines))


def _mark_diffs(lines: list[str], formed: list[bool]) -> None:
    """In a block with a hunk's head, or of nothing but added and removed lines, these are pasted."""
    start = 0
    for n, line in enumerate([*lines, ""]):
        if line.strip():
            continue
        block = range(start, n)
        changed = [number for number in block if lines[number][:1] in "+-" and lines[number][1:2] not in (" ", "")]
        both = {lines[number][0] for number in changed} == {"+", "-"}
        if both or any(lines[number].startswith(("@@", "+++ ", "--- ", "diff ")) for number in block):
            last = max((number for number in block if lines[number][:1] in "+-@"), default=start - 1)
            for number in range(min(changed, default=start), last + 1):
                formed[number] = True
        start = n + 1


def _without_tagged(text: str) -> str:
    """Without `<tag>…</tag>` blocks that begin on a line of their own: clients wrap what they put in so."""
    out: list[str] = []
    unclosed: set[str] = set()
    position = 0
    while match := _TAG.search(text, position):
        closing = f"</{match[1]}>"
        end = -1 if closing in unclosed else text.find(closing, match.end())
        if end < 0:
            unclosed.add(closing)
        out.append(text[position : match.end() if end < 0 else match.start()])
        out.append("" if end < 0 else "\n\x00\n")
        position = match.end() if end < 0 else end + len(closing)
    return "".join(out) + text[position:]


def _without_ruled_off(text: str) -> str:
    """Without what stands between two lines that rule it off."""
    rules = list(_RULER.finditer(text))
    for opening, closing in reversed(list(zip(rules[::2], rules[1::2], strict=False))):
        text = f"{text[: opening.start()]}\n\x00\n{text[closing.end() :]}"
    return text
