"""Who extracts: the offline engine, or a model. Both return a draft of one thread, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Protocol, TypeVar

import msgspec

from stillroom.clock import Clock
from stillroom.config import OFFLINE, Settings
from stillroom.errors import ContextTooLong, InvalidReply
from stillroom.extract import structured
from stillroom.extract.attributed import attributed
from stillroom.extract.form import filled_in, without_form
from stillroom.extract.outcome import ReadTotals
from stillroom.extract.prompt import input_prompt, prompt_tokens, prompt_version, system_prompt
from stillroom.extract.reading import (
    Forgotten,
    ReadEvents,
    ReadText,
    read_text,
    read_thread_events,
    rollout_token_limit,
)
from stillroom.extract.schema import SCHEMA, SCHEMA_NAME, Reply, parse
from stillroom.models import (
    Allowance,
    RateLimitSink,
    StructuredModel,
    StructuredReply,
    StructuredRequest,
    open_structured,
)
from stillroom.rollouts.redact import redact as redact_text
from stillroom.sessions.attribution import Attributor
from stillroom.sessions.events import Ran, Said
from stillroom.sessions.feedback_filter import FeedbackFilter
from stillroom.spending import Usage
from stillroom.stopping import Stop
from stillroom.store import Store
from stillroom.store.records import Stage1Draft
from stillroom.thread import MemoryMode, Thread

Redact = Callable[[str], str]
_Answer = TypeVar("_Answer", bound=msgspec.Struct)

_BYTES_PER_TOKEN = 4
#: More than a list of nothing has.
_EMPTY_CHARS = 16
_EACH_KIND_OF_LINE = "# Task 1: a heading\nkeywords: of, it\n- a line of it with <a blank> in it"
#: A few texts of one session.
_KEPT_BYTES = 8 * 1024 * 1024


class Extracted(msgspec.Struct, frozen=True, kw_only=True):
    """What was found out about a thread."""

    draft: Stage1Draft | None  #: what is to be kept of it; None: nothing durable
    read: ReadTotals
    usage: Usage | None = None  #: None: no model was called
    cut: bool = False


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """A session that was read; nothing of it has left the machine."""

    read: ReadTotals
    unknown: dict[str, int]
    memory_mode: MemoryMode | None  #: what the session's own later metadata says
    #: Blocking. Raises `RolloutError`, `ModelError`, `SpendingCapped`, `Stopped`.
    extract: Callable[[], Extracted]


class Engine(Protocol):
    """Extracts threads, each in one thread of this process from its first byte to its memory, several at a time."""

    name: str
    #: Which words a model is sent; None: none is.
    prompt: str | None

    def open(self, thread: Thread, *, stop: Stop) -> Opened:
        """Read the session. Blocking. Raises `RolloutError`, `Stopped`."""
        ...

    def close(self) -> None: ...


def redactor(settings: Settings) -> Redact:
    """`redact` in the style of the settings."""
    style = settings.memories.redaction
    return lambda text: redact_text(text, style=style)


def open_engine(settings: Settings, store: Store, clock: Clock, *, allowance: Allowance | None = None) -> Engine:
    """The engine that the settings name. Raises `ConfigError`."""
    # The C library hands what is free back to the system when it is more than twice the largest block that it ever got
    # back. The system then clears every page anew for the next session's texts: a tenth of the time of a long one.
    bytes(_KEPT_BYTES)
    name, redact = settings.memories.extract_model, redactor(settings)
    if name == OFFLINE:
        return RulesEngine(settings, redact=redact, forgotten=store.forgetting.exchange_check())
    limits = RateLimitSink()
    model = open_structured(
        name, settings, ledger=store.ledger, clock=clock, redact=redact, rate_limits=limits, allowance=allowance
    )
    return ModelEngine(settings, model, redact=redact, store=store, clock=clock, rate_limits=limits)


class RulesEngine:
    """The offline engine: no model, no network, nothing imported that could reach one."""

    name = OFFLINE
    prompt: str | None = None

    def __init__(self, settings: Settings, *, redact: Redact, forgotten: Forgotten | None) -> None:
        """Raises `DamagedWeights`: before a session is begun, so that none is a try the poorer for it."""
        from stillroom.offline import model  # only loaded when it is asked for

        model.load()
        self._stage = settings.stage_one
        self._refuse_external = settings.memories.disable_on_external_context
        self._root = settings.root
        self._redact = redact
        self._forgotten = forgotten

    def open(self, thread: Thread, *, stop: Stop) -> Opened:
        found = read_thread_events(
            thread,
            refuse_external=self._refuse_external,
            stage=self._stage,
            redact=self._redact,
            root=self._root,
            forgotten=self._forgotten,
            stop=stop,
        )
        return Opened(
            read=found.read,
            unknown=found.unknown,
            memory_mode=found.memory_mode,
            extract=partial(self._extract, thread, found, stop),
        )

    def close(self) -> None:
        return None

    def _extract(self, thread: Thread, found: ReadEvents, stop: Stop) -> Extracted:
        # Rules and cues are only loaded when they are asked for.
        from stillroom.offline import distil

        stop.check()
        draft = distil(thread, found.events)
        return Extracted(draft=clean_draft(draft, self._redact) if draft else None, read=found.read)


class ModelEngine:
    """One structured request for each thread."""

    def __init__(
        self,
        settings: Settings,
        model: StructuredModel,
        *,
        redact: Redact,
        store: Store,
        clock: Clock,
        rate_limits: RateLimitSink,
    ) -> None:
        self.name = model.name
        self.prompt: str | None = prompt_version(
            settings.memories.extraction_input, settings.memories.extraction_output
        )
        self._settings = settings
        self._stage = settings.stage_one
        self._root = settings.root
        self._model = model
        self._redact = redact
        self._store = store
        self._clock = clock
        self._rate_limits = rate_limits
        self._forgotten = store.forgetting.exchange_check()
        # What is compiled when it is first used is used here: the threads would each do it, all at once.
        self._output = settings.memories.extraction_output
        redact(system_prompt(self._output))
        FeedbackFilter(self._root)
        without_form(_EACH_KIND_OF_LINE)
        Attributor(list).marked(_EACH_KIND_OF_LINE)

    def open(self, thread: Thread, *, stop: Stop) -> Opened:
        text = self._read(thread, self._token_limit(), stop)
        return Opened(
            read=text.read,
            unknown=text.unknown,
            memory_mode=text.memory_mode,
            extract=partial(self._extract, thread, text, stop),
        )

    def _extract(self, thread: Thread, text: ReadText, stop: Stop) -> Extracted:
        """Ask with as much of the rollout as fits; where the provider says "too long", once more with half of it."""
        if not text.rendered.text[:_EMPTY_CHARS].strip("[] \n"):  # a fork that only repeats what was forgotten
            return Extracted(draft=None, read=text.read)
        try:
            reply = self._ask(thread, text, stop)
        except ContextTooLong:
            # Half of what was sent: half of the limit may still be more than a short rollout has.
            sent = -(-text.rendered.kept_bytes // _BYTES_PER_TOKEN)
            text = self._read(thread, max(1, min(self._token_limit(), sent) // 2), stop)
            reply = self._ask(thread, text, stop)
        draft = self._draft(thread, reply, stop)
        return Extracted(draft=draft, read=text.read, usage=reply.usage, cut=text.rendered.cut)

    def close(self) -> None:
        """Close the connections, and keep what the provider said of its limits for the guard of the next pass."""
        self._model.close()
        if (snapshot := self._rate_limits.snapshot_json()) is not None:
            provider = self.name.partition(":")[0]
            self._store.ledger.save_rate_limits(provider, snapshot, self._clock.now())

    def _token_limit(self) -> int:
        return rollout_token_limit(self._model.context_window, self._stage, prompt_tokens=prompt_tokens(self._output))

    def _reply_tokens(self) -> int:
        window, most = self._model.context_window, self._stage.max_reply_tokens
        return min(most, window * self._stage.reply_window_percent // 100) if window else most

    def _read(self, thread: Thread, token_limit: int, stop: Stop) -> ReadText:
        return read_text(
            thread,
            form=self._settings.memories.extraction_input,
            token_limit=token_limit,
            refuse_external=self._settings.memories.disable_on_external_context,
            stage=self._stage,
            redact=self._redact,
            root=self._root,
            forgotten=self._forgotten,
            stop=stop,
        )

    def _ask(self, thread: Thread, text: ReadText, stop: Stop) -> StructuredReply:
        form = self._settings.memories.extraction_input
        user = input_prompt(thread, text.rendered, form=form, redact=self._redact, output=self._output)
        return self._model.complete(
            StructuredRequest(
                system=system_prompt(self._output),
                user=user,
                schema=SCHEMA if self._output == "text" else structured.SCHEMA,
                schema_name=SCHEMA_NAME if self._output == "text" else structured.SCHEMA_NAME,
                effort=self._settings.memories.extract_effort,
                max_output_tokens=self._reply_tokens(),
                thread_id=thread.thread_id,
            ),
            stop=stop,
        )

    def _draft(self, thread: Thread, reply: StructuredReply, stop: Stop) -> Stage1Draft | None:
        """The answer, each line with who in the session supports it; for that the session may be read again."""
        most = self._stage.max_reply_chars
        if len(reply.text) > most:
            raise InvalidReply(f"the answer has {len(reply.text):,} characters, more than {most:,}")
        events = cache(partial(self._events, thread, stop))  # read once, for whoever asks
        draft = self._read_answer(thread, reply, events)
        if draft is None or (clean := clean_draft(draft, self._redact)) is None:
            return None
        return attributed(filled_in(clean), events)

    def _read_answer(
        self, thread: Thread, reply: StructuredReply, events: Callable[[], list[Said | Ran]]
    ) -> Stage1Draft | None:
        if self._output == "structured":
            parts = _parsed(reply, structured.Parts)

            def said() -> list[str]:
                return [event.text for event in events() if isinstance(event, Said) and event.who == "user"]

            return structured.drafted(parts, thread, said)
        parsed = _parsed(reply, Reply)
        return Stage1Draft(
            raw_memory=parsed.raw_memory, rollout_summary=parsed.rollout_summary, rollout_slug=parsed.rollout_slug
        )

    def _events(self, thread: Thread, stop: Stop) -> list[Said | Ran]:
        return read_thread_events(
            thread,
            refuse_external=False,
            stage=self._stage,
            redact=self._redact,
            root=self._root,
            forgotten=self._forgotten,
            stop=stop,
        ).events


def _parsed(reply: StructuredReply, kind: type[_Answer]) -> _Answer:
    try:
        return parse(reply.text, kind)
    except InvalidReply as error:
        if reply.form == "json_schema":
            raise
        raise InvalidReply(f"{error}; the server takes no JSON schema, it was asked for `{reply.form}`") from error


def clean_draft(draft: Stage1Draft, redact: Redact) -> Stage1Draft | None:
    """Redact every field; None if a text is empty. Unlike in Codex, white space alone is empty too."""
    if not draft.raw_memory.strip() or not draft.rollout_summary.strip():
        return None
    slug = draft.rollout_slug
    return Stage1Draft(
        raw_memory=redact(draft.raw_memory),
        rollout_summary=redact(draft.rollout_summary),
        rollout_slug=redact(slug) if slug and slug.strip() else None,
        sources=tuple(
            msgspec.structs.replace(row, line=redact(row.line), quote=redact(row.quote)) for row in draft.sources
        ),
    )
