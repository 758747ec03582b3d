"""What a version says of how it was made."""

from __future__ import annotations

from stillroom.workspace.trailers import trailers_of, with_trailers


def test_trailers_stand_in_one_block_and_come_back() -> None:
    first = with_trailers("Subject", {"Stillroom-Engine": "a:b\nc", "Stillroom-Prompt": ""})
    message = with_trailers(first, {"Stillroom-Run": "1"})
    assert message == "Subject\n\nStillroom-Engine: a:b c\nStillroom-Run: 1\n"
    assert trailers_of(message) == {"Stillroom-Engine": "a:b c", "Stillroom-Run": "1"}


def test_a_message_without_trailers_stays_as_it_is() -> None:
    assert with_trailers("Subject\n\nbody", {}) == "Subject\n\nbody"
    assert trailers_of("Subject\n\nStillroom-Run: \nbody") == {}
