"""Which Stillroom this is. Apart from the package, so that every room may say it."""

from __future__ import annotations

VERSION = "0.1.0"
