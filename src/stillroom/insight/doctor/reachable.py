"""Whether the configured models answer: one short question each, paid for and counted as any call."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from stillroom.clock import Clock
from stillroom.config import OFFLINE, Settings
from stillroom.errors import InvalidReply, StillroomError
from stillroom.insight.doctor.finding import Found, found, ok
from stillroom.models import Allowance, StructuredRequest, open_structured
from stillroom.rollouts.redact import redact
from stillroom.stopping import Stop
from stillroom.store import Store

#: The least that OpenAI's API takes. A reply that is cut there is a reply.
_OUTPUT_TOKENS = 16
#: A person waits.
_TIMEOUT_SECONDS = 30
_SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}


def check_models(settings: Settings, clock: Clock) -> Iterator[Found]:
    """Ask every model that is configured. Each call is a row of the spending table, and within the caps of the day."""
    names = sorted({settings.memories.extract_model, settings.memories.consolidation_model} - {OFFLINE})
    if not names:
        yield ok("models", "none is configured: the offline engine does both phases")
        return
    hasty = msgspec.structs.replace(
        settings.stage_one,
        request_attempts=1,
        request_timeout_seconds=_TIMEOUT_SECONDS,
        local_timeout_seconds=_TIMEOUT_SECONDS,
    )
    providers = {name: msgspec.structs.replace(each, timeout_seconds=None) for name, each in settings.providers.items()}
    settings = msgspec.structs.replace(settings, stage_one=hasty, providers=providers)
    with Store.open(settings.database, clock=clock, limits=settings.database_limits) as store:
        allowance = Allowance(settings.memories, spent_since=store.ledger.spent_since, clock=clock)
        for name in names:
            try:
                _ask(name, settings, store, clock, allowance)
            except InvalidReply:
                yield ok("models", f"`{name}` answers")  # with too little to be a memory, as was asked
            except StillroomError as error:
                remedy = error.hint or "check the name, the key and the network"
                yield found("models", "error", f"`{name}`: {error}", remedy=remedy)
            else:
                yield ok("models", f"`{name}` answers")


def _ask(name: str, settings: Settings, store: Store, clock: Clock, allowance: Allowance) -> None:
    model = open_structured(
        name, settings, ledger=store.ledger, clock=clock, redact=redact, phase="doctor", allowance=allowance
    )
    try:
        model.complete(
            StructuredRequest(
                system='Answer {"ok": true}.',
                user="Are you there?",
                schema=_SCHEMA,
                schema_name="answer",
                effort="minimal",
                max_output_tokens=_OUTPUT_TOKENS,
            ),
            stop=Stop(),
        )
    finally:
        model.close()


__all__ = ["check_models"]
