"""The guard's comparison, and the snapshot it is made with."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillroom.sessions.rate_limits import RateLimits, Window, allows, parse_rate_limits

NOW = 1_800_000_000
_LATER = NOW + 3600


def _limits(primary: float | None, secondary: float | None = None, *, resets_at: float = _LATER) -> RateLimits:
    windows = [
        None if used is None else Window(used_percent=used, resets_at=resets_at) for used in (primary, secondary)
    ]
    return RateLimits(limit_id="codex", primary=windows[0], secondary=windows[1], at=NOW - 60)


@pytest.mark.parametrize(
    ("limits", "min_remaining", "answer"),
    [
        (_limits(89.9), 10, True),
        (_limits(89.9), 11, False),
        (_limits(75.1, 10), 25, False),
        (_limits(10, 75.1), 25, False),
        (_limits(74.9, 74.9), 25, True),
        (_limits(75, 75), 25, True),
        (RateLimits(primary=_limits(1).primary, reached="rate_limit_reached"), 25, False),
        (RateLimits(reached="rate_limit_reached", at=NOW - 60), 25, False),
        (_limits(None), 25, True),
        (_limits(100), 0, True),
        (_limits(100), -5, True),
        (_limits(0.1), 100, False),
        (_limits(0), 200, True),
        (None, 100, True),
    ],
)
def test_guard_compares_as_codex_does(limits: RateLimits | None, min_remaining: int, answer: bool) -> None:
    assert allows(limits, min_remaining_percent=min_remaining, now=NOW) is answer


def test_a_window_that_has_passed_is_no_obstacle() -> None:
    assert allows(_limits(100, resets_at=NOW), min_remaining_percent=25, now=NOW)
    assert not allows(_limits(100, resets_at=NOW + 1), min_remaining_percent=25, now=NOW)
    mixed = RateLimits(primary=Window(used_percent=100, resets_at=NOW - 1), secondary=Window(used_percent=80))
    assert not allows(mixed, min_remaining_percent=25, now=NOW)


def test_a_reached_limit_is_forgotten_with_its_windows() -> None:
    limits = RateLimits(
        primary=Window(used_percent=100, resets_at=NOW - 1), reached="rate_limit_reached", at=NOW - 9000
    )
    assert allows(limits, min_remaining_percent=25, now=NOW)
    assert allows(RateLimits(reached="x", at=NOW - 8 * 86_400), min_remaining_percent=25, now=NOW)


def test_shapes_of_several_versions_are_read() -> None:
    raw = {"primary": {"used_percent": "12.5", "window_minutes": 300, "resets_in_seconds": 60}, "secondary": None}
    assert parse_rate_limits(json.dumps(raw).encode(), at=NOW) == RateLimits(
        primary=Window(used_percent=12.5, resets_at=NOW + 60), at=NOW
    )
    window = {"used_percent": 3, "window_minutes": 5}
    assert parse_rate_limits(json.dumps({"limit_id": "codex", "secondary": window}).encode(), at=NOW) == RateLimits(
        limit_id="codex", secondary=Window(used_percent=3, resets_at=NOW + 300), at=NOW
    )
    listed = [{"limit_id": "other"}, {"limit_id": "codex", "rate_limit_reached_type": {"type": "credits"}}]
    assert parse_rate_limits(json.dumps(listed).encode(), at=None) == RateLimits(limit_id="codex", reached="credits")


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5), lambda x: st.lists(x, max_size=3)))
def test_no_shape_raises(odd: object) -> None:
    table = {"primary": odd, "secondary": {"used_percent": odd, "resets_at": odd}, "rate_limit_reached_type": odd}
    for value in (odd, table, [table]):
        limits = parse_rate_limits(json.dumps(value).encode(), at=NOW)
        allows(limits, min_remaining_percent=25, now=NOW)


def test_snapshots_of_a_real_session_are_read() -> None:
    raw = (
        b'{"limit_id":"codex","limit_name":null,"primary":null,"secondary":null,"credits":null,"individual_limit":null,'
        b'"spend_control_reached":null,"plan_type":null,"rate_limit_reached_type":null}'
    )
    assert parse_rate_limits(raw, at=NOW) == RateLimits(limit_id="codex", at=NOW)
