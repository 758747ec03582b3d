"""Which names mean this machine."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether a host, as a URL or a `Host` header has it without its port, can only mean this machine.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.9", "[::1]", "127.0.0.1.example.com", "0.0.0.0")]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
