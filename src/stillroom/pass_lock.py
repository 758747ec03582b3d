"""Who runs a pass holds a lock on `pass.lock` under the home, so that no hook starts a second one meanwhile.

It ends with the process that holds it, however that ends, and goes over to the program that the process becomes. Two
passes do no harm (leases in the state database keep their work apart), so nobody waits for it.
"""

from __future__ import annotations

import os

from stillroom.system import lock

FILE = "pass.lock"


def take_pass_lock(home: str) -> int | None:
    """The descriptor that holds the lock; None if another process has it, or if there can be none here."""
    try:
        file = os.open(f"{home}/{FILE}", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return None
    try:
        if lock(file):
            return file
    except OSError:  # no locks on this file system
        pass
    os.close(file)
    return None


__all__ = ["FILE", "take_pass_lock"]
