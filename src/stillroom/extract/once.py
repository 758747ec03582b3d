"""A session that is stored in several places is distilled once.

Clients give their sessions ids, by which copies are known. What programs keep of a talk, a file of messages or a row of
a database, has a name that means something in its place only: there the words themselves are compared.
"""

from __future__ import annotations

import msgspec

from stillroom.config import StageOne
from stillroom.sessions.dedup import chain_of
from stillroom.sessions.readers import open_thread
from stillroom.store import Store
from stillroom.store.records import Told
from stillroom.thread import Rest, Thread

#: Formats whose threads are named after the place in which they lie, and those whose threads may be copies of such, or
#: of one another: exports, traces (one a turn, each with the talk before it), and what was recorded or ingested here.
_COMPARED = frozenset(
    {
        *("aider", "chat-messages", "langchain", "openai-agents", "pydantic-ai", "swe-agent"),
        *("atif", "otel-genai", "stillroom"),
    }
)


def told_before(thread: Thread, store: Store, *, stage: StageOne) -> Told | None:
    """The session that tells what this one says, from its beginning on. Blocking. Raises `RolloutError`."""
    if thread.agent not in _COMPARED:
        return None
    with open_thread(thread, max_line_bytes=stage.max_line_bytes) as items:
        chain = chain_of(items, max_items=stage.max_compared_items)
    return store.extraction.settle_contents(thread.thread_id, chain) if chain else None


def rest_of(thread: Thread, told: Told | None) -> Thread:
    """The thread as far as it is to be read."""
    return thread if told is None else Rest(**msgspec.structs.asdict(thread), told_items=told.items)
