"""How good a memory is: labelled sessions, public sets, and one's own sessions."""

from __future__ import annotations
