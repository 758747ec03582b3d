"""What was typed, by Aider's own account: the `.aider.input.history` beside the chats, with the time of each prompt.

The chats say `####` of all that is sent to a model, also of what the client sends by itself. Where this account covers
a chat, only what stands in it was typed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from stillroom.errors import RolloutError
from stillroom.rollouts.lines import open_stored
from stillroom.rollouts.timestamps import parse_local_time

_NAME = ".aider.input.history"
_LINE_BYTES = 64 * 1024
# Of one file; nobody types more.
_MAX_PROMPTS = 200_000
# Of one chat, and of those after it: where it ends is not known yet.
_MAX_PROMPTS_OF_CHAT = 2000


class _Prompt(NamedTuple):
    time_ms: int
    #: The hashes of its lines.
    lines: tuple[int, ...]


class Inputs:
    """The prompts of a chat, in their order; false if there are none, and then nothing can be said of the chat."""

    def __init__(self, prompts: Sequence[_Prompt] = ()) -> None:
        self._prompts = prompts
        self._next = 0
        self._typed: frozenset[int] | None = None

    def __bool__(self) -> bool:
        return bool(self._prompts)

    def typed_at(self, text: str) -> int | None:
        """When `text`, of which each line may be a prompt, was typed in milliseconds; None: it was not.

        To be asked in the order of the chat.
        """
        lines = _hashes(text.split("\n"))
        if not lines or not self._prompts:
            return None
        for number in range(self._next, len(self._prompts)):
            if self._prompts[number].lines == lines:
                self._next = number
                return self._prompts[number].time_ms
        if self._typed is None:
            self._typed = frozenset(line for prompt in self._prompts for line in prompt.lines)
        return self._prompts[self._next].time_ms if self._typed.issuperset(lines) else None

    def last_before(self, time_ms: int) -> int | None:
        """When the last prompt before that time was typed."""
        before = bisect_left(self._prompts, time_ms, key=_time_of)
        return self._prompts[before - 1].time_ms if before else None


def inputs_since(history: Path, started_ms: int) -> Inputs:
    """What was typed beside the chats of `history` since then; nothing if it can't be read."""
    path = history.with_name(_NAME)
    try:
        status = path.stat()
        prompts = _read(path, status.st_size, status.st_mtime_ns)
    except (OSError, RolloutError):
        return Inputs()
    first = bisect_left(prompts, started_ms, key=_time_of)
    return Inputs(prompts[first : first + _MAX_PROMPTS_OF_CHAT])


@lru_cache(maxsize=2)
def _read(path: Path, size: int, mtime_ns: int) -> tuple[_Prompt, ...]:
    """All prompts by time; those of a file that did not change are not read again for each of its chats."""
    del size, mtime_ns
    prompts: list[_Prompt] = []
    time: int | None = None
    typed: list[str] = []
    with open_stored(path) as file:
        for line in islice(iter(lambda: file.readline(_LINE_BYTES), b""), 2 * _MAX_PROMPTS):
            text = line.decode("utf-8", "replace")
            if text.startswith("+"):
                typed.append(text[1:])
            elif text.startswith("# "):
                _add(prompts, time, typed)
                time, typed = parse_local_time(text[2:].strip()), []
    _add(prompts, time, typed)
    return tuple(sorted(prompts))


def _time_of(prompt: _Prompt) -> int:
    return prompt.time_ms


def _add(prompts: list[_Prompt], time: int | None, typed: list[str]) -> None:
    if time is not None and typed:
        prompts.append(_Prompt(time, _hashes(typed)))


def _hashes(lines: list[str]) -> tuple[int, ...]:
    return tuple(hash(line.strip()) for line in lines if line.strip())
