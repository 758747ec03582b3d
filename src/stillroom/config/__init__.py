"""Settings: read once, clamped, frozen. Every number has its unit in the name and its reason beside it.

`config.toml` in `STILLROOM_HOME` (default `~/.stillroom`) may hold:

    [memories]                     # Codex's keys and defaults (spec §9.1), and ours
    extract_model = "openai-responses:gpt-5.6-luna"

    [providers.local]              # any OpenAI-compatible server: models are then "local:NAME"
    kind = "openai-chat"
    base_url = "http://127.0.0.1:8080/v1"

    [[sources]]                    # where more sessions are, beside the clients' own homes
    format = "codex"
    root = "~/.codex"

A value out of range is clamped, as Codex does. An unknown key is an error that names it.
"""

from __future__ import annotations

from stillroom.config.keys import (
    OFFLINE,
    Effort,
    ExtractionInput,
    ExtractionOutput,
    JailChoice,
    Memories,
    Provider,
    ProviderKind,
    RedactionStyle,
    RolloutBudgetKeys,
    RolloutBudgetTable,
    Source,
)
from stillroom.config.numbers import (
    BUDGET,
    CITING,
    GATEWAY,
    LOOKUP,
    READING,
    SERVING,
    Citing,
    DatabaseLimits,
    Gateway,
    Lookup,
    Reading,
    Recalling,
    Serving,
    StageOne,
    StageTwo,
)
from stillroom.config.settings import (
    Settings,
    adjusted,
    default_home,
    default_sources,
    load_settings,
)

__all__ = [
    "BUDGET",
    "CITING",
    "GATEWAY",
    "LOOKUP",
    "OFFLINE",
    "READING",
    "SERVING",
    "Citing",
    "DatabaseLimits",
    "Effort",
    "ExtractionInput",
    "ExtractionOutput",
    "Gateway",
    "JailChoice",
    "Lookup",
    "Memories",
    "Provider",
    "ProviderKind",
    "Reading",
    "Recalling",
    "RedactionStyle",
    "RolloutBudgetKeys",
    "RolloutBudgetTable",
    "Serving",
    "Settings",
    "Source",
    "StageOne",
    "StageTwo",
    "adjusted",
    "default_home",
    "default_sources",
    "load_settings",
]
