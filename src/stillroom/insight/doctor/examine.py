"""One examination of a home, in an order in which nothing is judged by what is broken below it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from stillroom.clock import Clock
from stillroom.config import OFFLINE, Settings, load_settings
from stillroom.errors import ConfigError, StillroomError
from stillroom.insight.doctor.configured import check_settings, check_switches, unusable
from stillroom.insight.doctor.database import check_database
from stillroom.insight.doctor.finding import Finding, Found, found, ok
from stillroom.insight.doctor.history import check_history
from stillroom.insight.doctor.leftovers import check_leftovers
from stillroom.insight.doctor.others import check_others
from stillroom.insight.doctor.places import check_places
from stillroom.insight.doctor.sandbox import check_sandbox
from stillroom.offline import model

#: More checks, by whoever knows the agents' hooks.
Further = Callable[[Settings], Iterable[Found]]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was looked at."""

    home: str
    at: int  #: seconds
    findings: tuple[Finding, ...]

    @property
    def is_well(self) -> bool:
        """Nothing is left to be done."""
        return not any(finding.is_wrong for finding in self.findings)


def examine(
    home: Path, clock: Clock, *, environ: Mapping[str, str], further: Further, fix: bool = False, models: bool = False
) -> Report:
    """Look at everything. Without `fix` nothing is changed; with it what is safe is mended as soon as it is found, so
    that what is looked at later is seen mended. `models` asks each configured model, which may cost a little.

    Doing it twice is doing it once. Raises nothing for what is broken: that is what is told.
    """
    findings: list[Finding] = []
    try:
        settings = load_settings(home=home, environ=environ)
    except ConfigError as error:
        # Where the memory folder is, who consolidates, what the sources are: nothing of it is known.
        findings += [unusable(home, error).finding]
        findings += _looked_at("home", check_places(Settings(home=home)), fix=False)
    else:
        for name, check in _checks(settings, clock, environ, further, models=models):
            findings += _looked_at(name, check, fix=fix)
    return Report(home=str(home), at=clock.now(), findings=tuple(findings))


def _checks(
    settings: Settings, clock: Clock, environ: Mapping[str, str], further: Further, *, models: bool
) -> Iterator[tuple[str, Iterable[Found]]]:
    yield "home", check_places(settings)
    yield "settings", check_settings(settings, environ)
    yield "switches", check_switches(settings)
    if settings.home.is_dir():
        yield "unfinished", check_leftovers(settings, clock)
        yield "database", check_database(settings, clock)
        yield "history", check_history(settings, clock)
        if {settings.memories.extract_model, settings.memories.consolidation_model} != {OFFLINE}:
            from stillroom.insight.doctor.phases import check_phases  # reads what models did

            yield "phases", check_phases(settings, clock)
    yield "offline engine", check_weights()
    yield "sandbox", check_sandbox(settings)
    yield "hooks", further(settings)
    yield "other memories", check_others(settings, environ)
    if models:
        from stillroom.insight.doctor.reachable import check_models  # all that speaks to models

        yield "models", check_models(settings, clock)


def check_weights() -> Iterator[Found]:
    """The offline engine's models, which a broken installation may lack."""
    try:
        model.load()
    except model.DamagedWeights as error:
        yield found("offline engine", "error", str(error), remedy=error.hint, mend=_restore_weights)
    else:
        yield ok("offline engine", "its weights are whole")


def _restore_weights() -> str:
    model.restore()
    return "the weights are restored from their copy"


def _looked_at(name: str, check: Iterable[Found], *, fix: bool) -> Iterator[Finding]:
    """What a check finds, mended where that is asked for. One that breaks off says so, and the others go on."""
    try:
        for each in check:
            yield _mended(each) if fix and each.mend else each.finding
    except (StillroomError, OSError) as error:
        hint = error.hint if isinstance(error, StillroomError) else None
        yield found(name, "error", f"it could not be looked at: {error}", remedy=hint).finding


def _mended(each: Found) -> Finding:
    assert each.mend is not None
    try:
        return msgspec.structs.replace(each.finding, fixed=each.mend())
    except (StillroomError, OSError) as error:
        return msgspec.structs.replace(each.finding, not_fixed=str(error))


__all__ = ["Further", "Report", "examine"]
