from __future__ import annotations

import pytest

from stillroom.addresses import is_loopback


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.8.9.10", "::1", "[::1]"])
def test_what_can_only_mean_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    ["", "0.0.0.0", "127.0.0.1.example.com", "127.example.com", "localhost.example.com", "10.0.0.1", "::", "127.1"],
)
def test_what_may_mean_another(host: str) -> None:
    """A name that begins like an address of this machine is anybody's."""
    assert not is_loopback(host)
