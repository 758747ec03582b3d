"""What a person typed, without what they pasted, cut into sentences."""

from __future__ import annotations

import re

from stillroom.offline.sizes import MAX_MESSAGE_CHARS, MAX_SENTENCES
from stillroom.offline.text import mentions
from stillroom.pattern import late

_FENCE = late(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_BLOCK_OPEN = late(r"^[ \t]*<([A-Za-z][\w-]*)(?:\s[^<>\n]*)?>", re.MULTILINE)
_BULLET = late(r"^[ \t]*(?:[-*•+・]|\d{1,2}[.)]|[（(]?[a-zA-Z\d一二三四五六七八九十][)）])[ \t]+")
_HEADING = late(r"^[ \t]*#{1,6}[ \t]+")

# A line that a program wrote. Each alternative is cheap to refuse: it is anchored at the start.
_LOG = late(
    r"""^\s*(?:
      [\[(]?\d{4}[-/]\d\d[-/]\d\d[T\s]\d\d:\d\d            # a time stamp
    | [\[(]?\d\d:\d\d:\d\d
    | \w{3}\s+\d+\s\d\d:\d\d:\d\d
    | [\[(<]?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL|PANIC|SEVERE
      |FAIL|FAILED|PASS|PASSED)(?:[\])>:|]|\s+[\w./\[(-]*[:\]/._]|\s{2,})
    | [\[【(](?:AVISO|ADVERTENCIA|FALLO|ERRO|WARNUNG|FEHLER|HINWEIS|AVERTISSEMENT|ERREUR|ОШИБКА|ВНИМАНИЕ
      |ПРЕДУПРЕЖДЕНИЕ|警告|错误|提示|信息|エラー|오류|경고)[\])】]
    | [\[(](?:info|warn|warning|error|debug)[\])]\s | (?:[Ee]rror|fatal|panic|warning)(?:\[\w+\])?:\s
    | (?:npm|pnpm|yarn)\s(?:ERR!|WARN) | (?:make|ld|gcc|clang)(?:\[\d+\])?:\s | remote:\s
    | at\s[\w$.<>/\\\[\] ]+\(.*:\d+.*\)\s*$ | at\s\S+:\d+
    | File\s".*",\sline\s\d+ | Traceback\s\(most | Caused\sby:\s\w+[.:] | \.\.\.\s\d+\smore | goroutine\s\d+
    | [\w.]+(?:Error|Exception|Warning)(?::|\s\[)
    | [✓✔✗✘✖×●○◯⨯]\s | \d+:\d+\s+(?:error|warning|warn|info)\b
    | [$%❯➜#]\s\S+ | PS\s\S+>\s | \w+@[\w.-]+[:\s].*[$\#]\s
    | (?:\+\+\+|---|@@|diff\s--git|index\s[0-9a-f]{7})\s
    | [+-]\s*(?:import|def|class|const|let|var|return|if|function|fn|pub)\b
    | [E>]\s{2,}\S | \d+\s*\|\s | -->\s | \|\s | \^+ | ~+\^
    | ==+ | --+\s*$ | \*\*\*+ | \#\#\#\#+\s*$
    | [{}\[\]()]+[,;]?\s*$ | "[\w.-]+":\s | <\/?[\w-]+[^>]*>\s*$
    | from\s\S+\simport\s | import\s\S.*\sfrom\s | import\s[\w.]+;?\s*$
    | (?:def|class|func|fn|public|private|const|var)\s\S.*[{:;(]\s*$
    | (?:export\s+)?[A-Z][A-Z0-9_]{2,}=\S*\s*$ | \S+\.\w{1,5}:\d+(?::\d+:?|:)\s | \[\d+/\d+\]\s | HTTP/\d
    | (?:GET|POST|PUT|DELETE|PATCH)\s\S*/\S*\s+(?:HTTP|\d{3})
    | Step\s\d+/\d+\s: | \#\d+\s(?:\[|DONE|CACHED|sha256|ERROR|\d) | exit\s(?:status|code)\s\d
    | (?:FROM|RUN|COPY|ENV|CMD|ENTRYPOINT|WORKDIR)\s\S
    | (?:SELECT|INSERT|UPDATE|ALTER|CREATE|DROP)\s.*\b(?:FROM|INTO|SET|TABLE|INDEX)\b
    )""",
    re.VERBOSE,
)
_ENDS = tuple(".!?。！？:：")
"""A line that ends so goes on in no other one."""
_RULE = late(r"^[ \t]*([-=_*~#])\1{4,}.*$", re.MULTILINE)
"""A line that rules off what was put in, with its name in it or without."""
_CLAUSE_NUMBER = late(r"^[ \t]*§?\d{1,2}(?:\.\d{1,2})+[.)]?[ \t]+\S")
_NUMBERED_CLAUSES = 3
"""From this many lines with numbers like 2.4 on, a message holds a part of some document."""
_SHORT = 12
"""A line shorter than this is not judged by its symbols: people type smileys."""
_SYMBOLS, _SYMBOLS_WITHOUT_WORDS = 0.4, 0.25
"""A line with more symbols than this share was written by a program; with fewer, if it has no word in it."""
_PROSE = late(r"[a-zß-ÿа-яё]{3}|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")
_UNBROKEN = late(r"\S{160,}")

# Where a sentence ends: CJK marks at once, Latin ones before a space. `…` and `...` end too.
_END = late(
    r"(?<=[。！？])(?![」』）”’])|(?<=[。！？][」』”])|(?<=[!?])[\"'”’)\]]?\s+|(?<=[^.]\.)[\"'”’)\]]?\s+"
    r"|(?:(?<=…)|(?<=\.\.))\s+(?=[A-ZÀ-ÞА-Я])"
)
_ABBREVIATION = late(
    r"(?:^|[\s(])(?:e\.g|i\.e|etc|incl|excl|max|min|est|dept|vs|cf|approx|resp|nr|dr|mr|mrs|ms|st|z\.\s?B|bzw|d\.\s?h|u\.\s?a|ggf|ca|usw|inkl|evtl|p\.\s?ej|p\.\s?ex|ex|aprox|т\.\s?е|т\.\s?д|т\.\s?п|напр|[A-Za-zА-Яа-я])\.$",
    re.IGNORECASE,
)


def without_pastes(text: str) -> str:
    """`text` without fenced code, quoted lines, wrapped blocks, logs, stack traces and listings."""
    text = text[:MAX_MESSAGE_CHARS].replace("\r\n", "\n")
    text = _without_ruled_off(_without_blocks(_FENCE.sub("\n", text)))
    lines = text.split("\n")
    loggy = [_is_pasted(line) for line in lines]
    clauses = [number for number, line in enumerate(lines) if _CLAUSE_NUMBER.match(line)]
    if len(clauses) >= _NUMBERED_CLAUSES:
        for number in clauses:
            loggy[number] = True
    kept: list[str] = []
    within = False  # the last line that holds anything was pasted
    for number, line in enumerate(lines):
        if not line.strip():
            kept.append(line)
            continue
        # A line between two pasted ones, set in under one, or alone between a gap and one, belongs to the paste.
        before = number > 0 and loggy[number - 1]
        after = number + 1 < len(lines) and loggy[number + 1]
        heads = after and number > 0 and not lines[number - 1].strip() and not line.rstrip().endswith(_ENDS)
        if (heads or (before and after) or (within and line[:1] in " \t")) and not _BULLET.match(line):
            loggy[number] = True
        within = loggy[number]
        if not within:
            kept.append(line)
    return "\n".join(kept)


def split(text: str) -> list[str]:
    """The sentences of `text` in order. List items and headings stand alone, hard-wrapped lines are joined."""
    found: list[str] = []
    for paragraph in _paragraphs(text):
        found.extend(_sentences(paragraph))
        if len(found) >= MAX_SENTENCES:
            break
    return found[:MAX_SENTENCES]


def _without_blocks(text: str) -> str:
    """Without `<tag>…</tag>` blocks that begin on a line of their own: agents wrap what they inject so."""
    out: list[str] = []
    position = 0
    while match := _BLOCK_OPEN.search(text, position):
        closing = f"</{match[1]}>"
        end = text.find(closing, match.end())
        if end < 0:
            out.append(text[position : match.end()])
            position = match.end()
            continue
        out.append(text[position : match.start()])
        position = end + len(closing)
    out.append(text[position:])
    return "".join(out)


def _without_ruled_off(text: str) -> str:
    """Without what stands between two lines that rule it off ("----- policy -----" … "----- end -----")."""
    rules = list(_RULE.finditer(text))
    for opening, closing in reversed(list(zip(rules[::2], rules[1::2], strict=False))):
        text = text[: opening.start()] + text[closing.end() :]
    return text


def _is_pasted(line: str) -> bool:
    stripped = line.strip()
    if not stripped:
        return False
    if stripped.startswith(">") and not stripped.startswith(">="):
        return True
    if _UNBROKEN.search(stripped) and not re.search(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]", stripped):
        return True
    if _LOG.match(line):
        return not _HEADING.match(line)
    if len(stripped) < _SHORT:
        return False
    share = sum(not (c.isalnum() or c.isspace()) for c in stripped) / len(stripped)
    return share > _SYMBOLS or (share > _SYMBOLS_WITHOUT_WORDS and not _PROSE.search(stripped))


def _paragraphs(text: str) -> list[str]:
    paragraphs: list[str] = []
    open_paragraph = False
    for line in text.split("\n"):
        stripped = line.strip()
        if not stripped:
            open_paragraph = False
            continue
        heading = _HEADING.match(line)
        bullet = _BULLET.match(line)
        if heading or bullet:
            paragraphs.append(line[(heading or bullet).end() :].strip())  # type: ignore[union-attr]
            open_paragraph = bullet is not None
            continue
        continues = open_paragraph and len(paragraphs[-1]) >= 50 and not paragraphs[-1].endswith(_ENDS)
        if continues and (stripped[0].islower() or not stripped[0].isascii() or stripped[0] in "`(\"'"):
            glue = "" if ord(stripped[0]) > 0x2E80 and ord(paragraphs[-1][-1]) > 0x2E80 else " "
            paragraphs[-1] += glue + stripped
        else:
            paragraphs.append(stripped)
            open_paragraph = True
    return paragraphs


def _sentences(paragraph: str) -> list[str]:
    found: list[str] = []
    start = 0
    for match in _END.finditer(paragraph):
        piece = paragraph[start : match.end()]
        if piece.count("`") % 2 or mentions.splits(paragraph, start, match.end()):
            continue
        if _ABBREVIATION.search(paragraph[start : match.start()]):
            continue
        if piece.strip():
            found.append(piece.strip())
        start = match.end()
    if paragraph[start:].strip():
        found.append(paragraph[start:].strip())
    return found
