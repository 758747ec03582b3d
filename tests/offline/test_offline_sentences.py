"""One sentence of the user at a time, in nine languages: what is meant to last is kept, what is said in passing not."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from stillroom.offline.session import hearing
from stillroom.offline.session.turns import turns_of
from stillroom.rollouts.events import Edit, Ran, Said

SENTENCES = tomllib.loads((Path(__file__).parent / "sentences.toml").read_text(encoding="utf-8"))
REQUESTS = {
    "en": "fix the flaky upload test",
    "de": "repariere den Upload-Test",
    "es": "arregla el test de subida",
    "fr": "corrige le test d'upload",
    "pt": "conserta o teste de upload",
    "ru": "почини тест загрузки",
    "zh": "修一下上传的测试",
    "ja": "アップロードのテストを直して",
    "ko": "업로드 테스트 고쳐줘",
}
#: Of a hundred sentences, how many may go the wrong way: cues are words, and words are many.
MAX_WRONG_SHARE = 0.02


def session(*texts: str) -> list[Said | Ran]:
    """Each text typed, then an edit, a check that passes, and a closing word."""
    return [event for text in texts for event in turn(text)]


def turn(text: str) -> Iterator[Said | Ran]:
    yield Said(who="user", text=text)
    yield Ran(tool="apply_patch", ok=True, edits=(Edit(path="src/queue.py", action="update", diff="-a = 1\n+b = 2\n"),))
    yield Ran(tool="shell", command="make test", exit_code=0, output="ok")
    yield Said(who="assistant", text="Done.", final=True)


def quotes(language: str, sentence: str) -> list[str]:
    return [wish.quote for wish in hearing.listen(turns_of(session(REQUESTS[language], sentence))).wishes]


@pytest.mark.parametrize("language", REQUESTS)
def test_what_is_meant_to_last_is_kept(language: str) -> None:
    wanted = SENTENCES[language]["keep"]
    missed = [s for s in wanted if not any(s[:12] in quote for quote in quotes(language, s))]
    assert len(missed) <= MAX_WRONG_SHARE * len(wanted), missed


@pytest.mark.parametrize("language", REQUESTS)
def test_what_is_said_in_passing_is_not_kept(language: str) -> None:
    passing = SENTENCES[language]["pass"]
    kept = [s for s in passing if quotes(language, s)]
    assert len(kept) <= MAX_WRONG_SHARE * len(passing), kept
