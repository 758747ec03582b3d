"""What is known of why a line stands in the memory."""

from __future__ import annotations

from typing import Literal

import msgspec

from stillroom.insight.why.origin import Origin
from stillroom.insight.why.places import Place

Support = Literal["quoted", "unfound", "unknown", "format"]
"""A session says it, and is quoted; a model wrote it, and its words were found with nobody in the session; nothing was
noted of it, as a person wrote it, or an earlier release; or it is a heading, a count or a record."""


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """Words of a session that a line rests on."""

    thread_id: str
    who: Literal["user", "assistant", "agent", "harness", "tool"]
    line: int  #: in the session's file, from 1; 0: not known
    text: str  #: redacted


class Rests(msgspec.Struct, frozen=True, kw_only=True):
    """A session that a line rests on."""

    thread_id: str
    #: "" where nothing is known of the thread any more.
    agent: str = ""
    cwd: str = ""
    rollout_path: str = ""
    at: int | None = None  #: seconds; how far the session was extracted
    #: Only the task names it: nothing was noted of the line itself.
    by_task: bool = False
    #: It is switched off since, for itself or with its project.
    switched_off: bool = False
    #: Who extracted it, and when; None: nothing is kept of it, or it is switched off.
    engine: str | None = None
    extracted_at: int | None = None
    #: Which words the model was sent, and Stillroom's release; None: not noted.
    prompt: str | None = None
    release: str | None = None
    #: Of its extraction; None: no model was called.
    cost_usd: float | None = None


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known of a line."""

    place: Place
    origin: Origin
    support: Support
    rests_on: tuple[Rests, ...]
    #: Sessions that it rests on beside these.
    more_sessions: int
    quotes: tuple[Quote, ...]
    #: How often sessions that it rests on were cited since it was written, and when last. Counted is a whole session's
    #: memory, never a line.
    cited: int
    last_cited: int | None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What `stillroom why` answers. Times in seconds since 1970."""

    asked: str
    lines: tuple[Why, ...]
    #: Lines that fit the phrase as well.
    more_lines: int
