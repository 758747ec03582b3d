"""Settings: what `config.toml` says, with what nobody need say."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec

from stillroom.config.keys import (
    ALIASES,
    CLAMPS,
    OFFLINE,
    Features,
    Memories,
    Provider,
    RolloutBudgetTable,
    Source,
    clamp,
)
from stillroom.config.numbers import DatabaseLimits, Recalling, StageOne, StageTwo
from stillroom.errors import ConfigError
from stillroom.homes import HOMES


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one pass needs to know. Build it with `load_settings`, or by hand in tests."""

    home: Path
    memories: Memories = Memories()
    providers: dict[str, Provider] = {}
    sources: tuple[Source, ...] = ()
    features: Features = Features()
    stage_one: StageOne = StageOne()
    stage_two: StageTwo = StageTwo()
    database_limits: DatabaseLimits = DatabaseLimits()
    recalling: Recalling = Recalling()

    @property
    def impatient(self) -> Settings:
        """The same for a command that a person waits for, who wants to hear soon of a locked database."""
        timeout_ms = min(self.database_limits.impatient_timeout_ms, self.database_limits.busy_timeout_ms)
        limits = msgspec.structs.replace(self.database_limits, busy_timeout_ms=timeout_ms)
        return msgspec.structs.replace(self, database_limits=limits)

    @property
    def consolidating(self) -> StageTwo:
        """The numbers of phase 2: without a model there is no pause after a success, as nothing is paid for."""
        if self.memories.consolidation_model != OFFLINE:
            return self.stage_two
        return msgspec.structs.replace(self.stage_two, success_cooldown_seconds=0)

    @property
    def root(self) -> Path:
        """The memory folder."""
        return Path(self.memories.root).expanduser() if self.memories.root else self.home / "memories"

    @property
    def database(self) -> Path:
        return self.home / "state.sqlite3"

    @property
    def history(self) -> Path:
        """The git directory of the memory folder: outside of what the consolidation agent can reach."""
        return self.home / "history.git"

    @property
    def search_index(self) -> Path:
        """The full-text index; it may be deleted at any time."""
        return self.home / "search.sqlite3"

    @property
    def mcp_token(self) -> Path:
        """The bearer token of the MCP server over HTTP."""
        return self.home / "mcp-token"

    @property
    def staging(self) -> Path:
        """Where runs of phase 2 keep their copies of the folder."""
        return self.home / "staging"

    @property
    def review(self) -> Path:
        """Where a result waits for a person."""
        return self.home / "review"


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    memories: Memories = Memories()
    providers: dict[str, Provider] = {}
    sources: tuple[Source, ...] = ()
    features: Features = Features()


def default_home(environ: Mapping[str, str]) -> Path:
    """`STILLROOM_HOME`, or `~/.stillroom`."""
    return Path(environ.get("STILLROOM_HOME") or "~/.stillroom").expanduser()


def default_sources(environ: Mapping[str, str]) -> tuple[Source, ...]:
    """Where the agents keep their sessions; one that is not there has none."""
    return tuple(Source(format=name, root=str(root)) for name, home in HOMES.items() for root in home.roots(environ))


def load_settings(
    *, home: Path | None = None, root: Path | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """Read `config.toml` under `home`. Raises `ConfigError` naming the file, the key and the value.

    `root` wins over `memories.root`. `environ` is the process's environment unless another is given.
    """
    environ = os.environ if environ is None else environ
    home = (home or default_home(environ)).absolute()
    parsed = _parse(home / "config.toml")
    memories = clamp(parsed.memories)
    if root is not None:
        memories = msgspec.structs.replace(memories, root=str(root.absolute()))
    defaults = default_sources(environ) if memories.default_sources else ()
    # What was recorded here is read by every pass.
    sources = dict.fromkeys((*parsed.sources, *defaults, Source(format="stillroom", root=str(home))))
    return Settings(
        home=home, memories=memories, providers=parsed.providers, sources=tuple(sources), features=parsed.features
    )


def adjusted(home: Path) -> list[tuple[str, float, float]]:
    """Keys of `[memories]` in `config.toml` whose values are out of range: what is written, and what counts. Raises
    `ConfigError`."""
    written = _parse(home / "config.toml").memories
    counts = clamp(written)
    return [
        (name, getattr(written, name), getattr(counts, name))
        for name in CLAMPS
        if getattr(written, name) != getattr(counts, name)
    ]


def _unreadable(path: Path, error: Exception) -> ConfigError:
    return ConfigError(f"`{path}` can't be read: {error}", hint="fix the file, or move it away")


def _parse(path: Path) -> _File:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return _File()
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error
    import tomllib  # most homes have no such file

    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _unreadable(path, error) from error
    try:
        return msgspec.convert(_without_aliases(table), _File)
    except msgspec.ValidationError as error:
        raise ConfigError(f"`{path}`: {error}", hint=_what_is_allowed(str(error))) from error


def _what_is_allowed(problem: str) -> str:
    """The keys of the table, or the values of the key, that a validation error names as `$.table.key`."""
    problem = problem.replace("$.features.rollout_budget", "$.rollout_budget")
    found = re.search(r"`\$(?:\.(\w+))?(?:\[[^]]*\])?(?:\.(\w+))?`", problem)
    table, key = (found[1], found[2]) if found else (None, None)
    tables = {
        "memories": Memories,
        "providers": Provider,
        "sources": Source,
        "features": Features,
        "rollout_budget": RolloutBudgetTable,
    }
    struct = tables.get(table or "", _File)
    allowed = get_args(get_type_hints(struct).get(key or ""))
    if allowed and all(isinstance(value, str) for value in allowed):
        return f"`{key}` is one of: {', '.join(allowed)}"
    return f"the keys are: {', '.join(struct.__struct_fields__)}"


def _without_aliases(table: dict[str, Any]) -> dict[str, Any]:
    """Codex's old names; where both are given the canonical one wins."""
    memories = table.get("memories")
    if not isinstance(memories, dict):
        return table
    renamed = {ALIASES.get(key, key): value for key, value in memories.items() if key in ALIASES}
    return {**table, "memories": {**renamed, **{k: v for k, v in memories.items() if k not in ALIASES}}}
