"""The only door to language models: a name in, a model out whose every request is a row of the spending table.

    model = open_structured("openai-responses:gpt-6-luna", settings, ledger=store.ledger, clock=clock, redact=redact)
    reply = model.complete(request, stop=Stop())

Names are `provider:model`. `openai`, `openai-responses`, `openai-chat` and the providers of `config.toml` are spoken to
directly (`wire`), because importing an SDK costs more than 50 calls; every other name of Pydantic AI (`anthropic:…`,
`google:…`, `ollama:…`) goes through it (`pydantic`). `docs/decisions/0001-phase-1-speaks-http.md` has the figures.
"""

from stillroom.models.allowance import Allowance, AllowanceReport
from stillroom.models.door import check_model, is_watched, needs_sdk, open_agent_model, open_structured
from stillroom.models.rate_limits import RateLimitSink
from stillroom.models.structured import StructuredModel, StructuredReply, StructuredRequest

__all__ = [
    "Allowance",
    "AllowanceReport",
    "RateLimitSink",
    "StructuredModel",
    "StructuredReply",
    "StructuredRequest",
    "check_model",
    "is_watched",
    "needs_sdk",
    "open_agent_model",
    "open_structured",
]
