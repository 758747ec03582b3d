"""What kind of sentence a sentence of the user is: a rule, a question, a passing remark, a statement."""

from __future__ import annotations

import re

from stillroom.offline import cues
from stillroom.offline.session.turns import Turn
from stillroom.offline.text import words
from stillroom.pattern import late

_ASKING = (
    *("吗", "怎么样", "如何", "好不好", "行不行", "对吧", "是不是", "来着"),
    *("でしょうか", "ですか", "ますか", "っけ", "나요", "인가요", "을까요", "할까요", "더라"),
)
"""Endings that ask, with or without a mark."""
CLAUSES = late(r"(?<=[,;:，；、。])\s*")
_VERB_LAST = ("zh", "ja", "ko")
"""Languages where what is asked stands anywhere in the sentence."""
_EITHER_WAY = late(
    r"([要能会會好行该該想用是])不\1|可不可以|有没有|有沒有|还是[^，。]{1,16}[呢好]\W*$|(?:까요|나요|인가요|(?:です|ます|ません|でしょう)か)(?=[\s、,]|$)"
)
"""Asks by offering both ("要不要")."""
_ASKS_FIRST = late(
    r"(?:\W*(?:h+m+|so|ok|and|btw|wait|oh|oops|um|ähm?|a ver|bueno|for my (?:own )?understanding"
    r"|(?:just )?out of curiosity)\b)?\W*"
    r"(?:what (?:do|does|did|should|would)"
    r"|what (?:was|is the (?:name|difference|point|reason|status|deal)|were)|who(?:'s| is| was| wrote| did| the)"
    r"|where (?:is|was|did|do|does)|how (?:do|does|did|can|much|many|long|come)"
    r"|why (?:is|was|do|does|did|are|were|would)"
    r"|(?:do|did|have) (?:we|you|i|they)|did (?:that|this|it)"
    r"|(?:does|is|was|are|were|has) (?:it|that|this|there|he|she|they|we|the)"
    r"|(?:can|could|should|would|will|may) (?:we|i|it|they|that|this|there|the|an?|our|my|your) "
    r"|who \w+s (?:an?|the|that|this|our)\b"
    r"|when (?:was|did|will)|which (?:\w+ )?(?:is|was|are|were|do|does|did)|(?:could|can|would) one"
    r"|wer (?:ist|war|hat)|wo (?:ist|war|sind)|wie (?:war|hieß|heißt)"
    r"|cómo se (?:llama|llamaba)|quién (?:es|era|ha)|dónde (?:está|estaba)|comment s'appel\w+|qui a)\b",
    re.IGNORECASE,
)
"""Begins a question that people type without its mark."""
_TAG = late(
    r",\s?(?:right|huh|eh|innit|nicht wahr|oder|gell|verdad|n'est-ce pas|né|да|правда)\W*$|[，、,]\s?(?:对吧|是吧)\W*$"
    r"|,\s?(?:is|are|does|do|did|was|were|will|can|has|have|ai)(?:n['’]?t)?"
    r" (?:it|they|that|this|we|you|he|she|there|i)(?: \w+)?\W*$"
    r"|(?:でしょ|だよね|그렇지|맞지)\W*$",
    re.IGNORECASE,
)
"""Ends a statement that asks for a nod."""
_MAKES = late(r"(?:write|document) (?:the|all|some|tests|docs)\b", re.IGNORECASE)
"""Begins an order that something be made, not how."""
_TRAILS_OFF = late(r"(?:\.\.+|…+)\W*$")
"""Ends a sentence that leaves the rest to be thought."""
_WHENEVER = late(
    r"(?:when(?:ever)?|wherever|if|any ?time|each|every|wenn|falls|sobald|wo immer|cuando|si|siempre que|donde|"
    r"quand|chaque|lorsque|quando|sempre que|onde|se|когда|если|где|每|如果|当|凡是|只要|遇到)",
    re.IGNORECASE,
)
"""Begins a condition: what follows is to be done each time."""
_OUTLIVES = 3.0
"""What is left of a rule without its day stands by itself from this on (in words)."""
LEANING = 4.5
"""A sentence up to this (in words), with "that" or "it" in it, leans on what stands before."""


def states(quote: str, spoken: tuple[str, ...]) -> bool:
    """Whether a sentence says how something is: no order, nothing of the speaker's own day, no thinking aloud."""
    point = cues.without_opener(quote, spoken)
    if cues.opens("request", point[cues.opens("transition", point, spoken) :], spoken):
        return False
    if not cues.has("fact", point, spoken) or cues.opens("request", point, spoken):
        return False
    if any(cues.has(kind, quote, spoken) for kind in ("musing", "thanks", "works")):
        return False
    if cues.opens("approval", quote, spoken) and cues.has("personal", quote, spoken):
        return False
    if cues.has("verdict", point, spoken) or cues.has("reading", quote, spoken):
        return False
    if numbers(quote) and cues.has("period", quote, spoken):
        return False
    clauses = re.split(r"(?<=[,;:，；、])\s*|\s(?=(?:so|also|así que|donc|então|поэтому)\s)", point)
    orders = any(cues.opens(kind, clause, spoken) for clause in clauses[1:] for kind in ("request", "order"))
    if orders and not _WHENEVER.match(point):
        # A state, and what is to be done because of it.
        return False
    named = bool(words.identifiers(quote))
    if cues.opens("anaphora", point, spoken) and not named:
        return False
    own = own_weight(quote, spoken)
    if cues.has("personal", quote, spoken):
        return own >= 3 and any(not name.isdigit() for name in words.identifiers(quote))
    return own >= (3 if named else 4)


def tells_how(quote: str, turn: Turn) -> bool:
    """Whether a sentence says how things are to be done. Where the verb stands anywhere, a first request is no such."""
    spoken = turn.spoken
    point = cues.without_opener(quote, spoken)
    if cues.opens("style", point, spoken):
        # What a session begins with is what it is asked to do.
        return bool(turn.number) or not (quote in turn.sentences[:1] or _MAKES.match(point))
    if (
        turn.number
        and _opens_with_things(point, spoken)
        and not any(
            cues.has(kind, quote, spoken) for kind in ("works", "broken", "problem", "thanks", "verdict", "repair")
        )
    ):
        return True
    return turn.number > 0 and spoken[0] in ("ru", *_VERB_LAST) and cues.has("style", quote, spoken)


def _opens_with_things(point: str, spoken: tuple[str, ...]) -> bool:
    """Whether a sentence begins with something that a project makes many of, and perhaps one word of which kind."""
    if cues.opens("artefact", point, spoken):
        return True
    first, _, rest = point.partition(" ")
    return (
        first.isalpha()
        and first.islower()
        and not cues.has("request", first, spoken)
        and bool(cues.opens("artefact", rest, spoken))
    )


def is_parked(quote: str, spoken: tuple[str, ...]) -> bool:
    """Put off with a reason: what a later session has to know when it takes it up."""
    if not cues.has("deferred", quote, spoken) or own_weight(quote, spoken) < 5 or cues.has("musing", quote, spoken):
        return False
    # "I'll delete them later" puts nothing off but what the speaker does.
    clauses = [c for c in CLAUSES.split(quote) if cues.has("deferred", c, spoken)]
    return not clauses or not all(cues.has("personal", c, spoken) for c in clauses)


def has_own_rule(sentence: str, spoken: tuple[str, ...]) -> bool:
    """A rule that was meant as one, not a complaint ("it always crashes")."""
    if cues.has("prohibition", sentence, spoken) or cues.has("remember", sentence, spoken):
        return own_weight(sentence, spoken) >= 1
    if begins_condition(sentence, spoken):
        return True
    if not cues.has("standing", sentence, spoken) or own_weight(sentence, spoken) < 1.5:
        return False
    meant = not cues.has("problem", sentence, spoken) or cues.has("preference", sentence, spoken)
    return meant or is_lasting(sentence, spoken)


def begins_condition(sentence: str, spoken: tuple[str, ...]) -> bool:
    """Whether a sentence says what to do each time that something is done."""
    point = cues.without_opener(sentence, spoken)
    if _TRAILS_OFF.search(sentence) and len(CLAUSES.split(point)) == 1:
        return False  # "and if we add a second server …" says not what then
    if spoken[0] in _VERB_LAST:
        return cues.has("whenever", point, spoken) and own_weight(sentence, spoken) >= 2
    return cues.opens("whenever", point, spoken) > 0 and own_weight(sentence, spoken) >= 3


def binds(sentence: str, spoken: tuple[str, ...], *, opening: bool) -> bool:
    """Whether a word says that a sentence is meant to hold, whatever comes of it.

    What a session is opened with tells of a fault, as a rule: there, neither how often something happens nor what
    doesn't happen binds anybody ("logins drop every time we deploy, and the log doesn't say why").
    """
    if any(cues.has(kind, sentence, spoken) for kind in ("remember", "onward")) or begins_condition(sentence, spoken):
        return True
    if not opening:
        return cues.has("prohibition", sentence, spoken) or cues.has("frequency", sentence, spoken)
    for clause in CLAUSES.split(sentence):
        if any(cues.opens(kind, clause, spoken) for kind in ("prohibition", "standing")):
            return True
        if cues.opens("prohibition", cues.without_opener(clause, spoken), spoken):
            return True
    return cues.has("frequency", sentence, spoken) and is_lasting(sentence, spoken)


def is_lasting(sentence: str, spoken: tuple[str, ...]) -> bool:
    """Holds a word of standing that tells more than how often something happens."""
    rest = cues.without("frequency", sentence, spoken)
    if cues.has("standing", rest, spoken) or cues.has("remember", rest, spoken):
        return True
    # "Never X", "always X" as a command; or "X, always".
    if re.search(r"[,;:–—，、]\s*$", re.split(r"\s*[.!。！]*\s*$", _before_last_frequency(sentence, spoken))[0]):
        return own_weight(sentence, spoken) >= 2
    opening = cues.without_opener(sentence, spoken)
    return cues.opens("frequency", opening, spoken) > 0 and own_weight(sentence, spoken) >= 3


def _before_last_frequency(sentence: str, spoken: tuple[str, ...]) -> str:
    """What stands before a word like "always" that ends `sentence`; "" if none ends it."""
    bare = sentence.rstrip(" .!。！")
    for length in range(2, 16):
        tail = bare[-length:]
        if cues.opens("frequency", tail, spoken) == len(tail) and cues.has("frequency", " " + tail, spoken):
            return bare[:-length]
    return ""


def bounds_the_task(quote: str, turn: Turn) -> bool:
    """Whether "don't touch the tests" stands beside the request that it bounds, without a word of standing."""
    spoken = turn.spoken
    if any(cues.has(kind, quote, spoken) for kind in ("standing", "frequency", "remember")) or words.identifiers(quote):
        return False
    return any(s != quote and asks_for_work(s, spoken) for s in turn.sentences)


def own_weight(sentence: str, spoken: tuple[str, ...]) -> float:
    """How much a sentence says besides its cue words."""
    rest = sentence
    for kind in ("frequency", "changed", "thanks", "approval", "mindchange"):
        rest = cues.without(kind, rest, spoken)
    return words.weight(words.content(rest))


def asks_for_work(sentence: str, spoken: tuple[str, ...]) -> bool:
    return cues.has("request", sentence, spoken) and not cues.has("prohibition", sentence, spoken)


def is_order(sentence: str, spoken: tuple[str, ...]) -> bool:
    """Whether a sentence can set something for good: no question, nothing for this once, nothing of today."""
    return not (
        is_question(sentence, spoken) or is_passing(sentence, spoken) or cues.has("perishable", sentence, spoken)
    )


def is_passing(sentence: str, spoken: tuple[str, ...]) -> bool:
    if not cues.has("oneoff", sentence, spoken):
        return False
    return not re.search(
        r"\bnot (?:just|only)\b|不只|不仅|だけで(?:は)?なく|nicht nur|no s[oó]lo|pas seulement|n[aã]o s[oó]|"
        r"не только|뿐만",
        sentence,
        re.IGNORECASE,
    )


def is_question(sentence: str, spoken: tuple[str, ...]) -> bool:
    if cues.has("assent", sentence, spoken):
        return False
    if sentence.rstrip("\"'）)」 ").endswith(("?", "？")) or _TAG.search(sentence):
        return True
    if sentence.rstrip("。. ").endswith(_ASKING) or _EITHER_WAY.search(sentence):
        return True
    if "?" not in sentence and _ASKS_FIRST.match(sentence):
        return True
    return (
        "?" not in sentence
        and cues.opens("question", sentence, spoken) > 0
        and sentence.endswith(("吗", "呢", "か", "까"))
    )


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:\.\d+)*", text))


def outlives_today(quote: str, spoken: tuple[str, ...]) -> bool:
    """Whether the clauses that are not of this day are a rule by themselves ("…, last week it bit us")."""
    clauses = CLAUSES.split(quote)
    rest = " ".join(c for c in clauses if not cues.has("perishable", c, spoken))
    stands = any(cues.has(kind, rest, spoken) for kind in ("standing", "frequency"))
    if not cues.has("perishable", clauses[0], spoken):
        stands = stands or cues.has(
            "prohibition", rest, spoken
        )  # "they're here next week, no changes then": of that week
    return stands and has_own_rule(rest, spoken) and own_weight(rest, spoken) >= _OUTLIVES
