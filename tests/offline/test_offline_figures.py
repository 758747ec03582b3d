"""Numbers that people tell in words, in nine languages, and what becomes of those that an edit wrote into a file."""

from __future__ import annotations

import pytest

from stillroom.offline import cues
from stillroom.offline.session import hearing
from stillroom.offline.session.turns import turns_of
from stillroom.offline.text import figures
from stillroom.rollouts.events import Edit, Ran, Said


@pytest.mark.parametrize(
    ("language", "text", "values"),
    [
        ("en", "make it forty-five, or two hundred and fifty", [45, 250]),
        ("en", "do the first two", []),
        ("en", "two minutes, a week at most", [2, 7]),
        ("de", "fünfundzwanzig reichen, hundertzwanzig nicht", [25, 120]),
        ("es", "treinta y cinco, o una semana", [35, 7]),
        ("fr", "quatre-vingts, dix-sept, une demi-heure", [80, 17, 30]),
        ("pt", "vinte e cinco, meia hora", [25, 30]),
        ("ru", "пятьсот, двадцать пять, неделю", [500, 25, 7]),
        ("zh", "二十五秒，三百個，一下", [25, 300]),
        ("ja", "四十五秒で", [45]),
        ("ko", "삼십오분, 일곱 개", [35, 7]),
        ("en", "a note on the hundredth one", []),
    ],
)
def test_words_come_to_the_number_that_they_tell(language: str, text: str, values: list[float]) -> None:
    spoken = (language,)
    assert [figure.value for figure in figures.spelt(text, spoken)] == values
    assert all(text[f.start : f.start + len(f.said)] == f.said for f in figures.spelt(text, spoken))


def edited(old: str, new: str) -> Ran:
    return Ran(tool="apply_patch", ok=True, edits=(Edit(path="conf.py", action="update", diff=f"-{old}\n+{new}\n"),))


def test_a_value_in_words_gives_way_to_the_one_that_was_written_over_it() -> None:
    events = [
        Said(who="user", text="the export times out, look at it"),
        edited("RETRIES = 1", "RETRIES = 2"),
        Said(who="user", text="how long do we keep a basket? I'd say a week"),
        edited("KEEP_DAYS = 3", "KEEP_DAYS = 7"),
        Said(who="user", text="legal says that's too long, ten days is the wrong way round, five"),
        edited("KEEP_DAYS = 7", "KEEP_DAYS = 5"),
    ]
    kept = " ".join(wish.quote for wish in hearing.listen(turns_of(events)).wishes)
    assert "five" in kept
    assert "a week" not in kept


def test_chinese_is_read_alike_in_both_writings() -> None:
    spoken = ("zh", "en")
    for simplified, traditional in (("以后必须先问我", "以後必須先問我"), ("这次先这样", "這次先這樣")):
        kinds = [kind for kind in cues.table("zh").cues if cues.has(kind, simplified, spoken)]
        assert [kind for kind in cues.table("zh").cues if cues.has(kind, traditional, spoken)] == kinds
        assert cues.levelled(traditional, "zh") == simplified
    assert cues.parts("either", "用紅色還是藍色", spoken) == ["用紅色", "藍色"]
