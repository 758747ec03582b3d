"""What ad-hoc notes are called (spec §3.2)."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime

from stillroom.errors import InvalidRequest

NOTES = "extensions/ad_hoc/notes"
NAME_FORM = "YYYY-MM-DDTHH-MM-SS-<slug>.md"
#: The slug may begin with a hyphen, as Codex's validator allows.
_NAME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}-[a-z0-9-]{1,80}\.md", re.ASCII)
_MAX_NAME_BYTES = 128
_PLACEHOLDER = re.compile(r"\[redacted_secret[^\]]*\]")
_WORD = re.compile(r"[a-z0-9]+")
#: Long enough to tell notes apart in a list.
_SLUG_CHARS = 48
#: More notes of one second whose texts begin alike are no person's.
_MOST_NUMBERED = 100


def check_name(name: str) -> None:
    """Raise `InvalidRequest` unless `name` may be the file name of a note."""
    if len(name.encode("utf-8", "replace")) > _MAX_NAME_BYTES or not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"a note's file name is `{NAME_FORM}`, the slug of 1 to 80 lower-case letters, digits and hyphens",
            hint="for example 2026-02-24T09-30-00-prefers-ruff.md",
        )


def names_for(text: str, *, now: int) -> list[str]:
    """Names for a note with this text, the best first; the others for when that one is taken."""
    moment = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H-%M-%S")
    stem = f"{moment}-{_slug(text)}"
    return [f"{stem}.md", *(f"{stem}-{number}.md" for number in range(2, _MOST_NUMBERED))]


def _slug(text: str) -> str:
    start = _PLACEHOLDER.sub(" ", text[: 4 * _SLUG_CHARS].lower())
    plain = unicodedata.normalize("NFKD", start).encode("ascii", "ignore").decode("ascii")
    slug = "-".join(_WORD.findall(plain))
    if len(slug) > _SLUG_CHARS:
        slug = slug[:_SLUG_CHARS].rpartition("-")[0] or slug[:_SLUG_CHARS]
    return slug or "note"
