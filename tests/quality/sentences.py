"""Single sentences held against the engine: how many that are meant to last it misses, how many asides it keeps.

python -m tests.quality.sentences [--verbose] [FILE.toml ...]
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stillroom.offline.session import hearing
from stillroom.offline.session.turns import turns_of
from stillroom.rollouts.events import Edit, Ran, Said

SETS = sorted((Path(__file__).parent / "sentence_sets").glob("*.toml"))
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
_TOLD_CHARS = 12
"""A wish holds a sentence when it has this much of its beginning: the rest may have been cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What became of one set of sentences in one language."""

    language: str
    meant: int
    missed: tuple[str, ...]
    asides: int
    kept: tuple[str, ...]


def quotes(language: str, sentence: str) -> list[str]:
    """The wishes that the engine takes from a session in which `sentence` is said after a first task."""
    events = [event for text in (REQUESTS[language], sentence) for event in _turn(text)]
    return [wish.quote for wish in hearing.listen(turns_of(events)).wishes]


def hear(path: Path, *, languages: Sequence[str] = tuple(REQUESTS)) -> list[Heard]:
    """Every sentence of a file in these languages, a language at a time."""
    found = []
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    for language, told in ((code, table[code]) for code in languages):
        missed = [s for s in told["keep"] if not any(s[:_TOLD_CHARS] in q for q in quotes(language, s))]
        kept = [s for s in told["pass"] if quotes(language, s)]
        found.append(
            Heard(
                language=language,
                meant=len(told["keep"]),
                missed=tuple(missed),
                asides=len(told["pass"]),
                kept=tuple(kept),
            )
        )
    return found


def _turn(text: str) -> Iterator[Said | Ran]:
    """A text typed, an edit, a check that passes, and a closing word."""
    yield Said(who="user", text=text)
    yield Ran(tool="apply_patch", ok=True, edits=(Edit(path="src/queue.py", action="update", diff="-a = 1\n+b = 2\n"),))
    yield Ran(tool="shell", command="make test", exit_code=0, output="ok")
    yield Said(who="assistant", text="Done.", final=True)


def main(arguments: Sequence[str]) -> None:
    """The command."""
    for path in [Path(a) for a in arguments if not a.startswith("-")] or SETS:
        heard = hear(path)
        for h in heard:
            print(f"{path.stem} {h.language}: missed {len(h.missed)}/{h.meant}, asides kept {len(h.kept)}/{h.asides}")
            if "--verbose" in arguments:
                print("".join(f"    missed  {s}\n" for s in h.missed) + "".join(f"    kept    {s}\n" for s in h.kept))
        missed, meant = sum(len(h.missed) for h in heard), sum(h.meant for h in heard)
        kept, asides = sum(len(h.kept) for h in heard), sum(h.asides for h in heard)
        print(f"{path.stem}: missed {missed}/{meant}, asides kept {kept}/{asides}")


if __name__ == "__main__":
    main(sys.argv[1:])
