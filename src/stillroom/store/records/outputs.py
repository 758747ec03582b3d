"""What extraction makes of threads, and what the folder rests on."""

from __future__ import annotations

from pathlib import PurePath
from typing import Literal, NamedTuple

import msgspec

from stillroom.lanes import Quarantined


class LineSource(msgspec.Struct, frozen=True, kw_only=True):
    """What one line of a memory rests on. A line that was put together of several has several."""

    line: str  #: the bullet as it stands in `raw_memory` or `rollout_summary`, without `- `
    speaker: Literal["user", "assistant", "agent", "harness", "tool"]
    line_no: int  #: the record of the session's file, as `Said.line_no` and `Ran.line_no` count them
    quote: str  #: the words there, at most 400 characters, redacted


class MemoryLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a line of the memory rests on in one session."""

    thread_id: str
    speaker: Literal["user", "assistant", "agent", "harness", "tool", "nobody"]  #: nobody: it was not found
    line_no: int  #: the record of the session's file; 0: not known
    quote: str  #: the words there, redacted
    verdict: Literal["kept", "held"]  #: held: it instructs, and nobody who is trusted said it


class Stage1Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What extraction makes of a thread. Both texts non-empty, already redacted."""

    raw_memory: str
    rollout_summary: str
    rollout_slug: str | None = None
    sources: tuple[LineSource, ...] = ()  #: of the lines of both texts


class Stage1Restored(msgspec.Struct, frozen=True, kw_only=True):
    """An output as a version of the memory folder has it."""

    thread_id: str
    source_updated_at: int  #: seconds
    raw_memory: str
    rollout_summary: str
    rollout_slug: str | None
    generated_at: int  #: seconds; when that version was made


class Stage1Output(msgspec.Struct, frozen=True, kw_only=True):
    """A stored draft with what is known of its thread: the input of phase 2."""

    thread_id: str
    source_updated_at: int  #: seconds; the thread's `updated_at` that was extracted
    raw_memory: str
    rollout_summary: str
    rollout_slug: str | None
    rollout_path: str
    cwd: str
    git_branch: str | None
    git_origin_url: str | None
    generated_at: int  #: seconds
    engine: str  #: `offline`, or the model's `provider:name`
    #: Which words the model was sent, and the release of Stillroom; None: not noted.
    prompt: str | None = None
    release: str | None = None
    usage_count: int = 0
    last_usage: int | None = None  #: seconds


class Learnt(NamedTuple):
    """Where and when something was extracted of a session."""

    cwd: str
    at: int  #: seconds
    commit: str | None


class RawMemory(NamedTuple):
    """What was extracted of a thread, for whoever looks for words in all of them."""

    thread_id: str
    source_updated_at: int  #: seconds
    text: str


class Rested(NamedTuple):
    """An output that the memory rests on."""

    thread_id: str
    cwd: str
    raw_memory: str


class OutputStamp(msgspec.Struct, frozen=True, kw_only=True):
    """Which version of an output there is."""

    thread_id: str
    source_updated_at: int  #: seconds
    generated_at: int  #: seconds
    cwd: str


class Withheld(msgspec.Struct, frozen=True, kw_only=True):
    """A line of an output that stays out of the memory folder."""

    thread_id: str
    cwd: str
    line: Quarantined


class Leaving(msgspec.Struct, frozen=True, kw_only=True):
    """What was extracted of a session, and leaves the memory."""

    thread_id: str
    name: str  #: its slug, or what the session is called
    cwd: str
    #: `unused`: for too long; `rank`: others are used more, and only so many are taken.
    reason: Literal["unused", "rank"] = "unused"
    at: int | None = None  #: seconds; when it leaves, where that is still to come

    @property
    def told(self) -> str:
        """What leaves, and why, on one line."""
        where = f" ({PurePath(self.cwd).name})" if self.cwd else ""
        return f"{self.name}{where}: {'not used for too long' if self.reason == 'unused' else 'others are used more'}"


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Inputs of phase 2 (spec §4.8, with the union that the seeds describe)."""

    #: The top N, in rank order.
    selected: tuple[Stage1Output, ...]
    #: `selected` and those of the previous selection that may still be remembered, ascending by thread id: the files
    #: on disk. At most twice the limit; when they don't all fit, the lowest ranks of the previous selection go first.
    on_disk: tuple[Stage1Output, ...]
    #: What was left out of their memories, because only a tool or the web said it.
    withheld: tuple[Withheld, ...] = ()
    #: Those of the previous selection that are not in this one: the next consolidation takes them out of the folder.
    leaving: tuple[Leaving, ...] = ()


class Worth(msgspec.Struct, frozen=True, kw_only=True):
    """What the memory holds, and how it is used."""

    #: Outputs of phase 1, and those that the folder rests on.
    outputs: int
    selected: int
    #: How often outputs were cited, in all.
    citations: int
    #: Outputs that were cited since the moment that was asked for.
    used_lately: int
    #: When one was last cited, in seconds.
    last_used: int | None
    #: Outputs that stay out because of an undo.
    undone: int = 0
