"""What two statements are to each other: one told twice, the later in place of the earlier, or both beside each other.

Nearness of words alone never decides. "Run the tests before a commit" and "run the linter before a commit" both hold;
"the port is 5433" and "the port moved to 6543" don't. The later one has to name what it ends, or set another value
where the earlier had one, or want the opposite of the same thing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from stillroom.offline import cues
from stillroom.offline.text import words
from stillroom.pattern import late

#: What a wish is set against: "pnpm, not yarn".
_REFUSED = late(
    r"(?:[,;(–—-]\s*(?:(?:and|und|y|et|e|и|а)\s+)?(?:not|nicht|no|pas|não|не|nie|non)(?:\s+(?:with|use|mit|con|avec|com))?"
    r"|\b(?:instead of|rather than|(?:an)?statt|au lieu d[e']|en (?:vez|lugar) de|em vez de|ao invés de|invece di"
    r"|zamiast|вместо))\s+(?:(?:the|an?|der|die|das|el|la|le)\s+)?([\w.@/+-]+)"
    r"|而不是\s*([\w.@/+-]+)|([A-Za-z0-9.@/+-]+)\s*(?:ではなく|じゃなく|말고)",
    re.IGNORECASE,
)
_CLAUSE = late(r"[.,;:!?。，、；：！？]\s*|\s[–—-]\s|\b(?:and|but|und|aber|et|mais|y|pero|e|mas|и|а|но)\b")
_NUMBER = late(r"\d+(?:[.,]\d+)*")
#: Between a word and the cue that ends it, in characters: "npm is not used any more".
_REACH = 24
_SAME = 0.7
_COVERED = 0.6


@dataclass(frozen=True, slots=True)
class Claim:
    """What a sentence is about, without the words that make it a rule."""

    text: str
    subject: frozenset[str]
    numbers: frozenset[str]
    negative: bool
    #: It says that something is other than it was.
    changes: bool
    #: It begins a rule, with or without an older one: "from now on".
    begins: bool
    #: Words of the subject that it is set against: "pnpm, not yarn".
    against: frozenset[str]
    #: These, and what it says to be over: "tox is dead".
    refused: frozenset[str]
    #: The name that it chooses, by the family of the name: `{"node_packages": {"pnpm"}}`.
    choices: dict[str, frozenset[str]]
    #: The words of each clause that forbids something.
    forbidden: tuple[frozenset[str], ...]

    @property
    def wanted(self) -> frozenset[str]:
        return frozenset() if self.negative else self.subject.union(*self.choices.values()) - self.refused

    @property
    def topic(self) -> frozenset[str]:
        """The subject without its values."""
        chosen = frozenset().union(*self.choices.values())
        return frozenset(word for word in self.subject - chosen if not word[0].isdigit())


def claim(text: str) -> Claim:
    """Read a sentence for comparison."""
    subject = _content(text)
    without_begin = cues.without("explicit", text)
    set_against = ["".join(found) for found in _REFUSED.findall(text)]
    refused = frozenset().union(*map(words.content, set_against)) | {
        name for name in map(words.folded, set_against) if name in cues.families()
    }
    clauses = [part for part in _CLAUSE.split(text) if part]
    return Claim(
        text=text,
        subject=subject,
        numbers=frozenset(_NUMBER.findall(text)),
        negative=cues.has("negative", _REFUSED.sub(" ", text)),
        changes=any(cues.has(kind, without_begin) for kind in ("undo", "changed", "ended")),
        begins=cues.has("explicit", text),
        against=refused,
        refused=refused | (_ended(clauses) & subject),
        choices=_choices(text, refused),
        forbidden=tuple(_content(part) for part in clauses if cues.has("negative", part)),
    )


def _content(text: str) -> frozenset[str]:
    for kind in ("strong", "undo", "want", "changed"):
        text = cues.without(kind, text)
    return words.content(text)


def _ended(clauses: list[str]) -> frozenset[str]:
    """Words near a cue that says that something is over."""
    found: set[str] = set()
    for clause in clauses:
        for begin, end in cues.places("ended", clause):
            found |= words.content(clause[max(0, begin - _REACH) : end + _REACH])
    return frozenset(found)


def _choices(text: str, refused: frozenset[str]) -> dict[str, frozenset[str]]:
    """Names of families, without what is refused; of scripts without spaces, wherever they stand."""
    families = cues.families()
    plain = words.folded(text)
    met = set(re.findall(r"[^\W_]+(?:-[^\W_]+)*", plain)) | {
        name for name in families if not name.isascii() and len(name) > 1 and name in plain
    }
    met |= {part for word in met for part in re.findall(r"[a-z0-9-]+", word) if not word.isascii()}
    found: dict[str, set[str]] = {}
    for name in met:
        if (family := families.get(name)) and name not in refused and not words.content(name) & refused:
            found.setdefault(family, set()).add(name)
    return {family: frozenset(names) for family, names in found.items()}


def same(one: Claim, other: Claim) -> bool:
    """Whether both say one thing. Words alone never decide: numbers, names of a family and the sign must agree."""
    if words.folded(one.text) == words.folded(other.text):
        return True
    if one.numbers != other.numbers or one.negative != other.negative or _are_opposite(one, other):
        return False
    if any(one.choices.get(family) != other.choices.get(family) for family in one.choices | other.choices):
        return False
    mine, theirs = one.subject - one.refused, other.subject - other.refused
    common = _common(mine, theirs)
    if not common:
        return False
    only_one, only_other = len(mine) - common, len(theirs) - common
    if common >= 2 and min(only_one, only_other) <= 0 and max(only_one, only_other) <= 1:
        return True
    return common / (common + only_one + only_other) >= _SAME


def supersedes(later: Claim, earlier: Claim) -> bool:
    """Whether `later` takes the place of `earlier`."""
    if not later.subject or not earlier.subject or words.folded(later.text) == words.folded(earlier.text):
        return False
    if _names_the_end(later, earlier):
        return True
    shared = _common(later.topic, earlier.topic)
    covered = shared / len(earlier.topic) if earlier.topic else 0.0
    is_new = later.changes or later.begins
    apart = bool(earlier.topic) and shared < len(earlier.topic) and shared < len(later.topic)
    if _sets_another_value(later, earlier):
        if later.numbers & earlier.numbers and shared:
            return True
        return (shared >= 1 and covered >= _COVERED and not apart) or (
            is_new and (shared >= 1 or _is_one_choice(later, earlier))
        )
    if later.numbers and earlier.numbers and later.numbers != earlier.numbers:
        return is_new and shared >= 2
    if _are_opposite(later, earlier):
        return shared >= 1 or is_new
    if later.negative != earlier.negative and covered >= _COVERED:
        return (is_new and shared >= 1) or (shared >= 2 and not apart)
    return later.changes and shared >= 2 and covered >= _COVERED and not same(later, earlier)


def _common(one: frozenset[str], other: frozenset[str]) -> int:
    return len(_alike(one, other))


def ends_program(later: Claim, command: str) -> bool:
    """Whether a claim says that the program is over which a command runs, by itself or through `uv run` or `npx`."""
    parts = command.split()[:3]
    programs = parts if parts[1:2] and parts[1] in ("run", "exec") else parts[:2]
    return later.changes and bool(later.refused & words.content(" ".join(programs)))


def share_a_word(text: str, other: Claim) -> bool:
    """Whether a sentence has a word of a claim's subject."""
    return bool(_alike(_content(text), other.subject))


def _alike(some: frozenset[str], others: frozenset[str]) -> frozenset[str]:
    """Those of `others` that are in `some`, or begin like one there: "rabbit" and "rabbitmq"."""
    return frozenset(
        other
        for other in others
        if other in some
        or any(len(one) >= 4 <= len(other) and (one.startswith(other) or other.startswith(one)) for one in some)
    )


def _names_the_end(later: Claim, earlier: Claim) -> bool:
    """Whether it says that something is over, or forbidden, which the earlier one wants."""
    over = _alike(later.refused, earlier.wanted)
    if over and later.changes and len(over) >= 0.3 * len(earlier.topic):
        return True
    return any(len(each) >= 2 and each <= earlier.wanted for each in later.forbidden)


def _sets_another_value(later: Claim, earlier: Claim) -> bool:
    if later.numbers and earlier.numbers and not later.numbers <= earlier.numbers:
        return True
    return any(
        names and not names <= earlier.choices[family]
        for family, names in later.choices.items()
        if earlier.choices.get(family)
    )


def _is_one_choice(later: Claim, earlier: Claim) -> bool:
    """Whether a family whose name says by itself what is chosen is in both: a package manager, not a number."""
    return any(family in earlier.choices for family in later.choices if family not in ("language", "weekday"))


def _are_opposite(one: Claim, other: Claim) -> bool:
    """Whether one wants what the other is set against."""
    return bool(one.against & other.wanted or other.against & one.wanted)
