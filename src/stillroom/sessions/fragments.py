"""What is taken out of a kept item: instructions posing as user messages (spec §7), our own memory, inline images."""

from __future__ import annotations

import re

import msgspec

from stillroom.pattern import late
from stillroom.sessions.prefilter import holder

MEMORY_TAG = b"stillroom-memory"
IMAGE_TAG = b";base64,"
holds_memory_tag = holder(MEMORY_TAG, by=b"-memory")
_holds_image = holder(IMAGE_TAG)
# Memory that was shown to a session must not become evidence for the same memory.
_MEMORY_BLOCK = late(r"<stillroom-memory\b[^>]*>.*?</stillroom-memory\s*>", re.DOTALL)
# A client may have cut what it stored before the closing tag.
_OPEN_MEMORY_BLOCK = late(r"<stillroom-memory\b.*\Z", re.DOTALL)
# The same in what may also be a person's words about the tag: a block has a line of its own for its tag.
_OPEN_MEMORY_LINES = late(r"^[ \t]*<stillroom-memory\b[^>\n]*>[ \t]*\n.*\Z", re.DOTALL | re.MULTILINE)
_EXCLUDED = (("# agents.md instructions", "</instructions>"), ("<skill>", "</skill>"))
_EXCLUDED_STARTS = tuple(start for start, _ in _EXCLUDED)
_IMAGE = late(
    rb"data:[\w.+-]{1,80}/[\w.+-]{1,80}(?:;[\w=.+-]{1,80}){0,8};base64,"
    rb"(?:\[blob: (?P<squeezed>\d+) bytes\]|(?P<text>[A-Za-z0-9+/=_-]{64,}))"
)


class Part(msgspec.Struct, gc=False):
    """What is looked at of one part of a message."""

    type: str = ""
    text: str = ""


class Message(msgspec.Struct, gc=False):
    """What is looked at of a message, as most are."""

    role: str | None = None
    content: list[Part] | str = []


_message = msgspec.json.Decoder(Message)
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_parts = msgspec.json.Decoder(list[msgspec.Raw])
_part = msgspec.json.Decoder(Part)


def clean(raw: bytes, *, user: bool) -> tuple[bytes | None, int]:
    """All of the below: what is left of the item, None if nothing is, and how many images were replaced.

    Raises `msgspec.DecodeError` or `RecursionError` for an item that can't be decoded.
    """
    kept: bytes | None = without_instructions(raw) if user else raw
    if kept is not None:
        kept = without_memory(kept, user=user)
    return without_images(kept) if kept is not None else (None, 0)


def is_marked(raw: bytes) -> bool:
    """Whether a tag of our memory, or of an image, is in one or many items; without one only a user's is `clean`ed."""
    return holds_memory_tag(raw) or _holds_image(raw)


def is_excluded(text: str) -> bool:
    """Whether a text part of a user message is project instructions or a skill: it starts and ends as those do."""
    folded = text.strip().lower()
    return any(folded.startswith(start) and folded.endswith(end) for start, end in _EXCLUDED)


def without_instructions(raw: bytes) -> bytes | None:
    """A user message without its excluded parts; the same bytes if it has none, None if nothing is left."""
    try:
        if keeps_all_parts(_message.decode(raw)):
            return raw
    except msgspec.DecodeError:
        pass  # a part of another kind spoils only the short way
    message = _object.decode(raw)
    if "content" not in message:
        return raw
    try:
        parts = _parts.decode(message["content"])
    except msgspec.DecodeError:
        return raw
    kept = [part for part in parts if not _excluded_part(part)]
    if not kept:
        return None
    if len(kept) == len(parts):
        return raw
    message["content"] = msgspec.Raw(b"[" + b",".join(map(bytes, kept)) + b"]")
    return msgspec.json.encode(message)


def keeps_all_parts(message: Message) -> bool:
    """True of most messages of a user of which `without_instructions` takes nothing. Never true of another."""
    if isinstance(message.content, str):
        return False
    for part in message.content:
        if part.text.lstrip()[:24].lower().startswith(_EXCLUDED_STARTS):
            return False
    return bool(message.content)


def without_memory(raw: bytes, *, user: bool) -> bytes | None:
    """An item without the memory that Stillroom showed to the session; None if nothing else was in it.

    An opening tag without its end takes the rest of the string with it; in a user's message only if the tag stands on
    a line of its own, else it is somebody's words about the tag.
    """
    if MEMORY_TAG not in raw:
        return raw
    before = msgspec.json.decode(raw)
    after = _strip(before, user=user)
    if after == before:
        return raw
    if isinstance(after, dict) and after.get("type") == "message":
        content = [part for part in after.get("content") or () if not _blank(part)]
        if not content:
            return None
        after["content"] = content
    return msgspec.json.encode(after)


def without_images(raw: bytes) -> tuple[bytes, int]:
    """An item with its inline images replaced by their sizes, and how many there were."""
    if IMAGE_TAG not in raw:
        return raw, 0
    return _IMAGE.subn(_image_note, raw)


def _excluded_part(raw: msgspec.Raw) -> bool:
    try:
        part = _part.decode(raw)
    except msgspec.DecodeError:
        return False
    return part.type == "input_text" and is_excluded(part.text)


def _strip(value: object, *, user: bool) -> object:
    if isinstance(value, str):
        text = _MEMORY_BLOCK.sub("", value)
        return (_OPEN_MEMORY_LINES if user else _OPEN_MEMORY_BLOCK).sub("", text)
    if isinstance(value, list):
        return [_strip(entry, user=user) for entry in value]
    if isinstance(value, dict):
        return {key: _strip(entry, user=user) for key, entry in value.items()}
    return value


def _blank(part: object) -> bool:
    return isinstance(part, dict) and isinstance(part.get("text"), str) and not part["text"].strip()


def _image_note(match: re.Match[bytes]) -> bytes:
    size = int(match["squeezed"]) if match["squeezed"] else len(match["text"])
    return b"[image omitted: %d bytes]" % size
