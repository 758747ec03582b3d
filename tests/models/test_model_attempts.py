from __future__ import annotations

from email.utils import formatdate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stillroom.config import StageOne
from stillroom.errors import RateLimited
from stillroom.models.attempts import Failed, pause_seconds
from stillroom.models.provider_errors import parse_error, retry_after_seconds, wants_no_effort

STAGE = StageOne()
JITTER = st.floats(0, 1, exclude_max=True)


@given(attempt=st.integers(1, 50), jitter=JITTER, asked=st.none() | st.floats(0, 1e9))
@example(attempt=1, jitter=0.5, asked=30.0)  # far more than the pause would be
def test_a_pause_is_never_longer_than_the_cap_nor_shorter_than_asked_within_it(attempt, jitter, asked):
    failed = Failed(error=RateLimited(), retryable=True, retry_after=asked)
    pause = pause_seconds(failed, attempt, STAGE, jitter=jitter)
    assert 0 < pause <= STAGE.max_retry_pause_seconds
    assert pause >= min(asked or 0, STAGE.max_retry_pause_seconds)


@given(attempt=st.integers(1, 5), jitter=JITTER)
def test_pauses_double(attempt, jitter):
    failed = Failed(error=RateLimited(), retryable=True)
    first = pause_seconds(failed, attempt, STAGE, jitter=jitter)
    assert pause_seconds(failed, attempt + 1, STAGE, jitter=jitter) == pytest.approx(2 * first)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": formatdate(1_000_030, usegmt=True)}, 30),
        ({"retry-after": formatdate(999_000, usegmt=True)}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers, seconds):
    assert retry_after_seconds(headers, now=1_000_000) == seconds


@given(st.binary(max_size=300))
def test_any_error_body_can_be_read(body):
    assert len(parse_error(body).message) <= 400


def test_only_a_complaint_about_thinking_drops_the_effort():
    complaint = b'{"error":{"message":"Unsupported parameter: reasoning.effort","param":"reasoning.effort"}}'
    assert wants_no_effort(400, complaint)
    assert wants_no_effort(400, b'{"error":{"message":"\\"qwen\\" does not support thinking"}}')
    assert not wants_no_effort(400, b'{"error":{"message":"unknown model"}}')
    assert not wants_no_effort(500, complaint)
