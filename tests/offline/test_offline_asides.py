"""What people say beside their wishes: habits of others, states that still hold, errands, what the work took out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stillroom.offline.session import failures, findings, hearing
from stillroom.offline.session.implied import implied
from stillroom.offline.session.turns import Turn, turns_of
from stillroom.rollouts.events import Edit, Ran, Said


def edit(*lines: str, path: str = "src/queue.py") -> Ran:
    return Ran(tool="apply_patch", ok=True, edits=(Edit(path=path, action="update", diff="\n".join(lines) + "\n"),))


def session(*steps: str | Ran) -> list[Turn]:
    """Strings are the user's, in turn with whatever was run; each turn ends with a word of the assistant."""

    def events() -> Iterator[Said | Ran]:
        for step in steps:
            yield Said(who="user", text=step) if isinstance(step, str) else step
            if not isinstance(step, str):
                yield Said(who="assistant", text="Done.", final=True)

    return turns_of(list(events()))


def quotes(*steps: str | Ran) -> list[str]:
    return [wish.quote for wish in hearing.listen(session(*steps)).wishes]


FIX = ("the upload test is flaky, fix it", edit("-a = 1", "+a = 5"))


@pytest.mark.parametrize(
    "aside",
    [
        "the other team always blames us first",
        "Sven says it must always be Java, he says that of everything",
        "the tree of Johannes is at rc3 still",
        "answer the reviewer for me, something like “all done, never mind the trait”",
        "I still have to feed the hens",
        "nunca entendí las expresiones regulares",
        "der Kollege meint, man müsse immer alles dokumentieren",
        "那個 logo 是聖誕節限定，過完節我再叫你拿掉",
    ],
)
def test_asides_are_no_wishes(aside: str) -> None:
    assert quotes(*FIX, aside, edit("-b = 1", "+b = 9")) == []


def test_what_somebody_thinks_is_a_decision_once_it_was_worked_on() -> None:
    worked = quotes(*FIX, "Kofi says thirty retries are daft, make it forty", edit("-RETRIES = 30", "+RETRIES = 40"))
    assert any("forty" in quote for quote in worked)


def test_never_as_the_answer_to_an_own_question_is_a_rule() -> None:
    assert quotes(*FIX, "push to the list yourself? never. I send the mails", edit("-b = 1", "+b = 9"))
    assert not quotes(*FIX, "could we gossip it between the nodes? ah, whatever", edit("-b = 1", "+b = 9"))


def test_a_state_that_the_work_took_out_is_not_told() -> None:
    gone = edit('-  "crianza-2019",', path="src/home.js")
    assert quotes(*FIX, "the 2019 vintage is sold out, take it off the home page", gone) == []


def test_a_custom_property_of_css_is_seen_to_go() -> None:
    told = "brand wants the primary to be #0B3D91"
    later = "they meant #0A2E6E, the other one is for the app"
    css = "site.css"
    kept = quotes(
        *FIX,
        told,
        edit("---primary: #1a73e8;", "+--primary: #0B3D91;", path=css),
        later,
        edit("---primary: #0B3D91;", "+--primary: #0A2E6E;", path=css),
    )
    assert not any("0B3D91" in quote for quote in kept)
    assert any("0A2E6E" in quote for quote in kept)


def test_a_short_change_of_mind_is_told_with_what_it_is_on() -> None:
    kept = quotes(
        *FIX,
        "the number of the caretaker is 5511 now",
        edit("-tel: 4422", "+tel: 5511", path="contact.md"),
        "I had planned to move to WordPress. Too much tinkering.",
        edit("-c = 1", "+c = 7"),
    )
    assert not any("5511" in quote and "tinkering" in quote for quote in kept)


def test_a_default_says_how_far_it_reaches_and_not_the_quote_again() -> None:
    turns = session(*FIX, "and please: no inline styles in the widget", edit("-b = 1", "+b = 9"))
    wish = hearing.listen(turns).wishes[0]
    assert implied(wish, "shop") == "default in shop"


def test_a_complaint_keeps_what_is_wrong_when_its_day_is_left_out() -> None:
    turns = turns_of(
        [
            Said(who="user", text="the readings of tank B drift by a tenth a day since Monday"),
            Ran(tool="shell", command="tail log.csv", exit_code=0, output="7.41"),
            Said(who="assistant", text="Found it: the probe was replaced and answers at another address."),
            edit("-PROBE = 0x4a", "+PROBE = 0x4b", path="read.py"),
            Ran(tool="shell", command="make test", exit_code=0, output="ok"),
        ]
    )
    heard = hearing.listen(turns)
    told = failures.find(turns, findings.find(turns, heard), heard)
    assert "readings of tank B drift" in told[0].reported
