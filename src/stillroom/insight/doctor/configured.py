"""The settings: values that don't count as they are written, models that can't be used, sources that aren't there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from stillroom.config import OFFLINE, Settings, adjusted, default_sources
from stillroom.errors import ConfigError, StillroomError
from stillroom.insight.doctor.finding import Found, found, ok
from stillroom.models import check_model, is_watched
from stillroom.pausing import paused_since, told_pause
from stillroom.recall.projects.declared import FILE as PROJECTS
from stillroom.recall.projects.declared import load_declared
from stillroom.recall.projects.switched_off import FILE, load_switched_off
from stillroom.wording import many


def unusable(home: Path, error: ConfigError) -> Found:
    """The settings can't be read at all."""
    return found("settings", "error", str(error), where=str(home / "config.toml"), remedy=error.hint)


def check_settings(settings: Settings, environ: Mapping[str, str]) -> Iterator[Found]:
    """What is configured, and whether it can be."""
    path = str(settings.home / "config.toml")
    wrong = False
    for key, written, counts in adjusted(settings.home):
        wrong = True
        what = f"`memories.{key} = {written}` is out of range: {counts} counts"
        yield found("settings", "warning", what, where=path, remedy=f"write `{key} = {counts}`")
    for name in sorted({settings.memories.extract_model, settings.memories.consolidation_model} - {OFFLINE}):
        try:
            check_model(name, settings, environ=environ)
        except StillroomError as error:
            wrong = True
            yield found("settings", "error", str(error), where=path, remedy=error.hint)
        else:
            if not is_watched(name, settings, environ=environ):
                what = f"`{name}` speaks through its SDK's own client: its rate limits are not seen, the caps hold"
                yield found("settings", "note", what)
    if settings.memories.dual_write:
        what = "`memories.dual_write` changes nothing: format v1 is the only one that is written here"
        yield found("settings", "note", what, where=path)
    if not wrong:
        yield ok("settings", "usable", where=path if Path(path).exists() else None)
    yield from _sources(settings, environ, path)


def check_switches(settings: Settings) -> Iterator[Found]:
    """What a person switched off, and may have forgotten."""
    off = load_switched_off(str(settings.home))
    path = str(settings.home / FILE)
    if off.unreadable:
        what = "the list of projects that are switched off can't be read: no session is told anything, and no pass runs"
        remedy = f"mend it; or rm '{path}', and say `stillroom memories --off` again where you want it"
        yield found("switches", "error", what, where=path, remedy=remedy)
    if load_declared(str(settings.home)).unreadable:
        what = "what was said of projects can't be read: no session is told anything"
        projects = str(settings.home / PROJECTS)
        remedy = f"mend it; or rm '{projects}', and say `stillroom projects --join` or `--apart` again"
        yield found("switches", "error", what, where=projects, remedy=remedy)
    if not settings.memories.enabled:
        yield found("switches", "note", "memories are switched off", remedy="memories.enabled = true")
    if since := paused_since(str(settings.home)):
        yield found("switches", "note", told_pause(since), remedy="stillroom resume")
    elif settings.memories.enabled and not off.unreadable:
        projects = f"; {many(len(off.projects), 'project is', 'projects are')} switched off" if off.projects else ""
        yield ok("switches", f"passes may run{projects}")


def _sources(settings: Settings, environ: Mapping[str, str], path: str) -> Iterator[Found]:
    defaults = set(default_sources(environ))
    there = 0
    for source in settings.sources:
        exists = Path(source.root).expanduser().exists()
        if source.format == "stillroom" and source.root == str(settings.home):
            continue
        there += exists
        if not exists and source not in defaults:
            what = f"`{source.root}`, where sessions of `{source.format}` should be, is not there"
            yield found("sources", "warning", what, where=path, remedy="mend `root` under `[[sources]]`")
    if there:
        yield ok("sources", f"{many(there, 'place')} with sessions of agents {'is' if there == 1 else 'are'} there")
    else:
        what = "no agent that Stillroom knows keeps sessions on this machine"
        yield found("sources", "note", what, remedy="name a place under `[[sources]]`, or `stillroom ingest FILE`")


__all__ = ["check_settings", "check_switches", "unusable"]
