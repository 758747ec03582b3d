"""Which languages the user writes, by scripts and by the commonest small words: a line for the profile."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from stillroom.pattern import late

_SCRIPTS = (
    ("Japanese", late(r"[\u3041-\u30ff]")),
    ("Korean", late(r"[\uac00-\ud7af]")),
    ("Chinese", late(r"[\u4e00-\u9fff]")),
    ("Ukrainian", late(r"[іїєґ]", re.IGNORECASE)),
    ("Russian", late(r"[а-яё]", re.IGNORECASE)),
    ("Hindi", late(r"[\u0900-\u097f]")),
    ("Arabic", late(r"[\u0600-\u06ff]")),
    ("Greek", late(r"[α-ωάέήίόύώ]", re.IGNORECASE)),
    ("Hebrew", late(r"[\u0590-\u05ff]")),
)
#: None of these is a common word of another one of these languages.
_SMALL_WORDS = {
    "English": "the and is are not with this that from have should always never please when use for of",
    "German": "der die das und ist nicht mit auf wir ich bitte immer nie wenn kein keine sondern für vor",
    "French": "le les et est pas avec nous je toujours jamais quand une des dans pour sur il faut",
    "Spanish": "el los y es con nosotros siempre nunca cuando una por las hay que del sin muy",
    "Portuguese": "os é não com nós sempre quando uma dos das em ao pelo você isso sem também",
    "Italian": "il gli è non con noi sempre mai quando una di che della nel senza anche",
    "Dutch": "het een en niet met wij ik altijd nooit als geen van voor naar zijn ook",
    "Polish": "nie jest się z i na zawsze nigdy gdy do że przed bez ale tylko",
    "Turkish": "ve bir değil için ile her zaman asla olarak bu kullan yok ama önce sonra",
}
_WORD = late(r"[^\W\d_]+")
_SENTENCES_ENOUGH = 2


def languages(sentences: Iterable[str]) -> list[str]:
    """The languages of these sentences, the commonest first; one that only a single sentence seems to be in is left
    out. Nothing but English is nothing to say."""
    found = Counter(filter(None, map(_language, dict.fromkeys(sentences))))
    several = [name for name, count in found.most_common() if count >= _SENTENCES_ENOUGH]
    return several if several != ["English"] else []


def _language(sentence: str) -> str:
    for name, letters in _SCRIPTS:
        if letters.search(sentence):
            return name
    words = set(_WORD.findall(sentence.casefold()))
    hits = {name: len(words.intersection(small.split())) for name, small in _SMALL_WORDS.items()}
    first, second = sorted(hits.values(), reverse=True)[:2]
    return max(hits, key=lambda name: hits[name]) if first >= 2 and first > second else ""


__all__ = ["languages"]
