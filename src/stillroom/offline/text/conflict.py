"""When two sentences are one wish told twice, and when the later one puts an end to the earlier."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stillroom.offline import cues
from stillroom.offline.text import words
from stillroom.pattern import late

_SAME = 0.75
_ALIKE = 0.6
#: What a wish is set against: "pnpm, not yarn".
_REFUSED = late(
    r"(?:[,;(–—-]\s*(?:(?:and|und|y|et|e|и|а)\s+)?(?:not|nicht|no|pas|não|не)(?:\s+(?:with|use|mit|con|avec|com))?"
    r"|\b(?:instead of|rather than|(?:an)?statt|au lieu d[e']|en (?:vez|lugar) de|em vez de|ao invés de|вместо))\s+"
    r"(?:(?:the|an?|der|die|das|el|la|le)\s+)?([\w.@/+-]+)"
    r"|而不是\s*([\w.@/+-]+)|([A-Za-z0-9.@/+-]+)\s*(?:ではなく|じゃなく|말고)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a sentence is about, without the words that make it a rule."""

    text: str
    subject: frozenset[str]
    numbers: frozenset[str]
    negative: bool
    changes: bool
    #: Words of the subject that it is set against.
    refused: frozenset[str]

    @property
    def wanted(self) -> frozenset[str]:
        return self.subject - self.refused


def claim(text: str) -> Claim:
    """Read a sentence for comparison."""
    return Claim(
        text=text,
        subject=words.content(cues.without("strong", cues.without("undo", text))),
        numbers=frozenset(re.findall(r"\d+(?:[.,]\d+)*", text)),
        negative=cues.has("negative", text),
        changes=cues.has("undo", text) or cues.has("explicit", text),
        refused=frozenset().union(*(words.content("".join(found)) for found in _REFUSED.findall(text))),
    )


def same(one: Claim, other: Claim) -> bool:
    """Whether both say one thing. Words alone never decide: numbers and the sign must agree."""
    if words.folded(one.text) == words.folded(other.text):
        return True
    if one.numbers != other.numbers or one.negative != other.negative or _are_opposite(one, other):
        return False
    return words.jaccard(one.subject, other.subject) >= _SAME


def supersedes(later: Claim, earlier: Claim) -> bool:
    """Whether `later` takes the place of `earlier`: same subject, and another value, or the opposite sign.

    Being near is not enough ("run the tests before a commit", "run the linter before a commit" both hold): the later
    one has to name what it ends, or want what that is set against, or give another number, or forbid what was asked.
    """
    common = later.subject & earlier.subject
    near = words.overlap(later.subject, earlier.subject)
    if len(common) < 2 or near < _ALIKE or same(later, earlier):
        return False
    if later.numbers and earlier.numbers and not earlier.numbers <= later.numbers:
        return len(common - later.numbers) >= 2
    if _are_opposite(later, earlier):
        return True
    if later.changes:
        return earlier.subject <= later.subject
    return later.negative != earlier.negative and near >= 0.8


def _are_opposite(one: Claim, other: Claim) -> bool:
    """Whether one wants what the other is set against."""
    return bool(one.refused & other.wanted or other.refused & one.wanted)
