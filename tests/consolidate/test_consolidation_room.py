from __future__ import annotations

from pathlib import Path

import pytest

from stillroom.config import Memories, Provider, Settings, StageTwo
from stillroom.consolidate.prompt import render_prompt
from stillroom.consolidate.room import check_window, within
from stillroom.errors import ConfigError

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


@pytest.mark.parametrize("window", [None, LIMITS.least_context_window])
def test_a_window_that_suffices_or_is_not_known_is_taken(tmp_path: Path, window: int | None) -> None:
    check_window(_settings(tmp_path, window))


def test_a_smaller_window_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a window of 8,191 tokens; a consolidation takes 8,192 at least"):
        check_window(_settings(tmp_path, LIMITS.least_context_window - 1))


def _settings(home: Path, window: int | None) -> Settings:
    provider = Provider(kind="openai-chat", base_url="http://127.0.0.1:1/v1", context_window=window)
    return Settings(home=home, memories=Memories(consolidation_model="llama:m"), providers={"llama": provider})
