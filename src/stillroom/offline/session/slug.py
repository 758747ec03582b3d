"""A short name for a session that is safe as part of a file name."""

from __future__ import annotations

import re
import unicodedata

from stillroom.offline.sizes import SLUG_CHARS


def slug_of(name: str) -> str | None:
    """`name` in lower-case ASCII words joined by `-`; None when nothing of it is ASCII."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss")).encode("ascii", "ignore").decode("ascii").lower()
    words = re.findall(r"[a-z0-9]+", plain)
    slug = ""
    for word in words:
        longer = f"{slug}-{word}" if slug else word
        if len(longer) > SLUG_CHARS:
            break
        slug = longer
    if not slug and words:
        slug = words[0][:SLUG_CHARS]
    return slug if len(slug) >= 3 else None
