"""Wishes that are meant to last by a word, and wishes that are taken back in words."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stillroom.offline.session import hearing
from stillroom.offline.session.turns import turns_of
from stillroom.rollouts.events import Edit, Ran, Said


def quotes(*steps: str) -> list[str]:
    """Each of the user's messages is followed by some work."""

    def events() -> Iterator[Said | Ran]:
        for number, step in enumerate(steps):
            yield Said(who="user", text=step)
            edit = Edit(path="src/queue.py", action="update", diff=f"-a{number} = 1\n+a{number} = 2\n")
            yield Ran(tool="apply_patch", ok=True, edits=(edit,))
            yield Said(who="assistant", text="Done.", final=True)

    return [wish.quote for wish in hearing.listen(turns_of(list(events()))).wishes]


@pytest.mark.parametrize(
    "said",
    [
        "From now on use yarn for installs here.",
        "Use yarn here from now on.",
        "Going forward write the tests first.",
        "Ab jetzt bitte Deutsch antworten.",
        "Désormais on écrit les tests d'abord.",
        "A partir de ahora usa yarn.",
        "A partir de agora usa yarn.",
        "Впредь используй yarn.",
        "今后用 yarn 安装依赖。",
        "今後は yarn を使って。",
        "앞으로는 yarn을 써 줘.",
    ],
)
def test_a_word_for_all_that_comes_makes_a_wish_of_what_a_session_is_opened_with(said: str) -> None:
    assert quotes(said) == [said]


@pytest.mark.parametrize(
    ("wish", "unsaid"),
    [
        ("From now on every component gets a folder of its own.", "Forget what I said about folders. Sorry!"),
        ("Ab jetzt bekommt jede Komponente einen eigenen Ordner.", "Vergiss, was ich zum Ordner gesagt habe."),
        ("Désormais un dossier par composant.", "Oublie ce que j'ai dit sur le dossier."),
        ("A partir de ahora una carpeta por componente.", "Olvida lo que te dije sobre la carpeta."),
        ("A partir de agora uma pasta por componente.", "Esquece o que eu disse sobre a pasta."),
        ("Впредь у каждого компонента своя папка.", "Забудь, что я говорил про папку."),
        ("今后每个组件一个文件夹。", "别管我之前说的文件夹。"),
        ("今後はコンポーネントごとにフォルダを作って。", "フォルダについて言ったことは忘れて。"),
        ("앞으로는 컴포넌트마다 폴더를 만들어 줘.", "폴더 말한 건 잊어 줘."),
        ("From now on every component gets a folder of its own.", "Hm, ignore what I said."),
    ],
)
def test_what_is_taken_back_in_words_is_no_wish_any_more(wish: str, unsaid: str) -> None:
    assert quotes("the upload test is flaky, fix it", wish) == [wish]
    assert quotes("the upload test is flaky, fix it", wish, unsaid) == []


def test_only_what_was_named_is_taken_back() -> None:
    rule, other = "From now on every component gets a folder.", "From now on run the tests with -q."
    assert quotes("fix the flaky upload test", rule, other, "Forget what I said about folders.") == [other]
    assert quotes("fix the flaky upload test", rule, "Forget what I said about the colours.") == [rule]
