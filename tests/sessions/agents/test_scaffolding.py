from __future__ import annotations

import pytest

from stillroom.sessions.scaffolding import steers_client, without_blocks


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Do it.<hook>x</hook>Then test.", "Do it.\nThen test."),
        ("Do it. <hook>x</hook>Then test.", "Do it. Then test."),
        ("Do it.<hook>x</hook>\nThen test.", "Do it.\nThen test."),
        ("a<hook>x</hook><hook>y</hook>b<hook>z</hook>", "a\nb"),
        ("<hook>x</hook>", ""),
        ("<hook>x", "<hook>x"),
    ],
)
def test_words_that_a_block_parted_stay_apart(text: str, left: str) -> None:
    assert without_blocks(text, "hook") == left


@pytest.mark.parametrize(
    "text", ["/compact", " /compact\n", "/compact keep the plan, and\nall that was decided so far", "/model fast"]
)
def test_a_command_to_the_client_is_no_work(text: str) -> None:
    assert steers_client(text)


@pytest.mark.parametrize(
    "text",
    [
        "/review 12",
        "/usr/bin/env fails",
        "/",
        "",
        "compact",
        "/status is wrong on the page of orders, mend it",
        "/compactor",
    ],
)
def test_all_else_is_what_a_person_asks_for(text: str) -> None:
    assert not steers_client(text)
