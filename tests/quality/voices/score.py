"""Whose words are kept of messages with a paste: `python -m quality.voices.score`."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from stillroom.sessions.pasted import own_words

HERE = Path(__file__).parent


class Score(NamedTuple):
    """Of one half: messages with foreign words, those that leak, messages with own words, those that keep all."""

    foreign: int
    leaked: list[str]
    own: int
    lost: list[str]


def messages(half: str) -> list[dict[str, Any]]:
    """The messages of `open` or `kept`."""
    return tomllib.loads((HERE / f"{half}.toml").read_text(encoding="utf-8"))["message"]


def score(half: str) -> Score:
    """Judge one half."""
    leaked, lost, foreign, own = [], [], 0, 0
    for number, message in enumerate(messages(half), 1):
        left = "\n".join(own_words(message["text"]))
        name = f"{number} {message['frame']} ({message['language']})"
        foreign += bool(message["foreign"])
        own += bool(message["own"])
        if found := [words for words in message["foreign"] if words in left]:
            leaked.append(f"{name}: {found}")
        if gone := [words for words in message["own"] if words not in left]:
            lost.append(f"{name}: {gone}")
    return Score(foreign, leaked, own, lost)


if __name__ == "__main__":
    for half in sys.argv[1:] or ["open"]:
        found = score(half)
        print(f"{half}: {len(found.leaked)} of {found.foreign} leak, {len(found.lost)} of {found.own} lose own words")
        for line in (*found.leaked, *(f"lost {line}" for line in found.lost)):
            print(" ", line if half == "open" else line.split(":")[0])
