"""A pause, kept as the file `paused` under the home: while it is there no pass does anything.

A hook imports this. It works without the state database, so that a person can stop everything
even when that is what is broken.
"""

from __future__ import annotations

import os

from stillroom.system import NEW, READ

FILE = "paused"
#: The file holds a moment; of a longer one only so much is shown.
_SHOWN_BYTES = 40


def paused_since(home: str) -> str | None:
    """When passes were paused, as it was written then; None: they are not. A file that can't be read pauses too."""
    try:
        file = os.open(f"{home}/{FILE}", READ)
    except FileNotFoundError:
        return None
    except OSError:
        return "an unknown time" if os.path.lexists(f"{home}/{FILE}") else None
    try:
        text = os.read(file, _SHOWN_BYTES).decode("ascii", "replace").strip()
    except OSError:  # a folder
        text = ""
    finally:
        os.close(file)
    return text or "an unknown time"


def told_pause(since: str) -> str:
    """How whoever is kept from work by a pause says so."""
    return f"passes are paused since {since}"


def pause(home: str, moment: str) -> bool:
    """Pause all passes from now on; whether they were not paused before. Raises `OSError`."""
    os.makedirs(home, mode=0o700, exist_ok=True)
    try:
        file = os.open(f"{home}/{FILE}", NEW, 0o600)
    except FileExistsError:
        return False
    try:
        os.write(file, f"{moment}\n".encode("ascii"))
    except OSError:
        pass  # a full disk: it is the file that counts, not what it says
    finally:
        os.close(file)
    return True


def resume(home: str) -> bool:
    """Let passes run again; whether they were paused. Raises `OSError`."""
    try:
        os.unlink(f"{home}/{FILE}")
    except FileNotFoundError:
        return False
    return True


__all__ = ["FILE", "pause", "paused_since", "resume", "told_pause"]
