from __future__ import annotations

from pathlib import Path

import pytest

from stillroom.config import StageTwo
from stillroom.consolidate.prompt import render_prompt
from stillroom.consolidate.room import within

LIMITS = StageTwo()


@pytest.mark.parametrize(
    ("window", "reply", "conversation", "answer"),
    [
        (None, None, 600_000, 32_768),
        (400_000, None, 600_000, 32_768),
        (32_768, 6553, 65_536, 32_768),
        (24_000, 4800, 48_000, 24_000),
    ],
)
def test_an_answer_of_a_tool_is_never_more_than_half_of_the_room(
    tmp_path: Path, window: int | None, reply: int | None, conversation: int, answer: int
) -> None:
    limits = within(LIMITS, window, render_prompt(tmp_path), reply_tokens=reply)
    assert (limits.max_conversation_bytes, limits.max_tool_output_bytes) == (conversation, answer)


def test_the_least_window_holds_our_words_an_answer_and_a_look_into_the_folder(tmp_path: Path) -> None:
    window = LIMITS.least_context_window
    limits = within(LIMITS, window, render_prompt(tmp_path), reply_tokens=window // 5)
    assert 2000 < limits.max_tool_output_bytes < window
