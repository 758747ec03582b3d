"""A session as text for a model, and what it is of the whole."""

from __future__ import annotations

import msgspec


class Rendered(msgspec.Struct, frozen=True, kw_only=True):
    """Redacted text that fits the limit it was made for."""

    text: str
    #: Of all kept items, serialised, before redaction and cut.
    source_bytes: int
    #: Of `text`.
    kept_bytes: int
    cut: bool
    #: One paragraph for the model and the log about what is missing; "" if nothing is.
    note: str = ""
