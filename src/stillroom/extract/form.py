"""Takes our own words out of an answer: a small model gives the form back as it is, or sentences of its instructions.

Left in, they would stand in the memory as if a session had said them. The titles that the form asks for stay, and an
answer in free form is put into it.
"""

from __future__ import annotations

import re
from functools import cache

import msgspec

from stillroom.errors import InvalidReply
from stillroom.extract.prompt import all_words, system_prompt
from stillroom.store.records import Stage1Draft

#: What the form leaves to be filled in. One word alone, such as `<name>`, may be a session's own.
_BLANK = re.compile(r"<[^<>\n]*[ |][^<>\n]*>")
#: A sentence of fewer words may be anybody's.
_LEAST_WORDS = 5
_MARKS = "-*#>` \t\r\n"
#: What a later reader can use: a point, or a filled line of a block's head.
_CLAIM = re.compile(r"^\s*(?:(?:[-*•]|\d+[.)]) +\S|(?:description|task|keywords): *\S)", re.MULTILINE)
_SHOWN_CHARS = 60
_FENCE = "```"
#: What ends a statement of prose, in any script. A point inside a name or a number ends nothing.
_STATEMENT_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_WORD = re.compile(r"[^\W\d_]{2,}")
#: Fewer words say nothing, in a script that writes no spaces fewer letters.
_LEAST_STATED_WORDS = 5
_LEAST_STATED_LETTERS = 10
_DESCRIPTION_CHARS = 200


def filled_in(draft: Stage1Draft) -> Stage1Draft:
    """`draft` without our words, in the form. Raises `InvalidReply` if nothing is left that says anything."""
    raw_memory, summary = without_form(draft.raw_memory), without_form(draft.rollout_summary)
    if summary.strip() and _CLAIM.search(raw_memory) is None:
        raw_memory = _in_form(raw_memory)
    if not summary.strip() or not raw_memory:
        shown = " ".join(draft.raw_memory[:_SHOWN_CHARS].split())
        raise InvalidReply(f"the answer has nothing of the form that was asked for: it begins `{shown}`")
    return msgspec.structs.replace(draft, raw_memory=raw_memory, rollout_summary=summary)


def _in_form(prose: str) -> str:
    """The statements of `prose` as what is known of one task; "" if it states nothing."""
    statements = dict.fromkeys(" ".join(part.split()) for part in _STATEMENT_END.split(prose))
    stated = [each for each in statements if each not in _titles() and _states(each)]
    if not stated:
        return ""
    # No task is named: whoever reads the line names it by its session.
    points = "\n".join(f"- {each}" for each in stated)
    return f"---\ndescription: {stated[0][:_DESCRIPTION_CHARS]}\n---\n\nReusable knowledge:\n{points}\n"


def _states(text: str) -> bool:
    words = _WORD.findall(text)
    if all(word.isascii() for word in words) or len(words) >= _LEAST_STATED_WORDS:
        return len(words) >= _LEAST_STATED_WORDS
    return sum(map(len, words)) >= _LEAST_STATED_LETTERS


def without_form(text: str) -> str:
    """`text` without the lines that are the form or the instructions to the letter. The rest stays as it is."""
    lines = text.splitlines(keepends=True)
    kept = [line for line in lines if not _is_ours(line)]
    return text if len(kept) == len(lines) else "".join(kept)


def _is_ours(line: str) -> bool:
    if "<" in line and any(blank in _blanks() for blank in _BLANK.findall(line)):
        return True
    words = line.strip(_MARKS).split()
    if len(words) < _LEAST_WORDS or " ".join(words) in _titles():
        return False
    return " ".join(words[:_LEAST_WORDS]) in _beginnings() and " ".join(words) in _words()


@cache
def _blanks() -> frozenset[str]:
    return frozenset(_BLANK.findall(system_prompt()))


@cache
def _titles() -> frozenset[str]:
    """What the form asks for as it stands: a line of its shapes that leaves nothing to be filled in."""
    shapes = "\n".join(system_prompt().split(_FENCE)[1::2])
    return frozenset(" ".join(line.strip(_MARKS).split()) for line in shapes.splitlines() if line.endswith(":"))


@cache
def _words() -> str:
    """All that every request says, on one line."""
    return " ".join(all_words().split())


@cache
def _beginnings() -> frozenset[str]:
    words = _words().split()
    return frozenset(" ".join(words[at : at + _LEAST_WORDS]) for at in range(len(words) - _LEAST_WORDS + 1))
