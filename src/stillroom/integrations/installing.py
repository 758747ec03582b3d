"""Installs Stillroom in an agent, and takes it out again: plan first, then write what was shown.

A plan is a list of files with their content before and after. Nothing is written while it is made, so that the same
plan serves `--dry-run`, the question to the user, and the edit.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from stillroom.config import Settings, default_home
from stillroom.errors import SettingsRefused
from stillroom.homes import claude_home, codex_home
from stillroom.integrations import claude_code, codex
from stillroom.integrations.files import Original, check_writable, read_original, write
from stillroom.integrations.json_text import NotEditable
from stillroom.integrations.manifest import Change, Manifest, digest, load_manifest, save_manifest
from stillroom.integrations.programs import Programs, is_temporary

BACKUPS = "backups"


@dataclass(frozen=True, slots=True)
class Edit:
    """One file: as it is, and as it shall be (None: gone)."""

    original: Original
    after: bytes | None
    #: Nothing of ours is in the file before.
    is_first: bool = False

    @property
    def changes(self) -> bool:
        return self.original.data != self.after


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done for one agent."""

    agent: str
    edits: tuple[Edit, ...] = ()
    #: Why nothing is done; then there are no edits.
    refused: SettingsRefused | None = None
    #: What a person has to know or do.
    remarks: tuple[str, ...] = ()
    #: The permission that is ours once this is written.
    read_rule: str | None = None


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that memory can be brought to."""

    name: str
    title: str
    program: str
    home: Callable[[Mapping[str, str]], Path]
    plan: Callable[[_Place], Plan]
    unplan: Callable[[_Place], Plan]


@dataclass(frozen=True, slots=True)
class _Place:
    """Everything that a plan depends on."""

    settings: Settings
    programs: Programs
    manifest: Manifest
    home: Path
    named_home: Path | None = field(default=None)  # Stillroom's, where a program has to be told


def detected(environ: Mapping[str, str]) -> list[str]:
    """The agents that are on this machine: their program is on the `PATH`, or their home is there."""
    found = []
    for agent in AGENTS.values():
        program = shutil.which(agent.program, path=environ.get("PATH", os.defpath))
        if program or agent.home(environ).is_dir():
            found.append(agent.name)
    return found


def plan_install(agent: str, settings: Settings, programs: Programs, environ: Mapping[str, str]) -> Plan:
    """What `init` would do for this agent."""
    return _planned(agent, AGENTS[agent].plan, _place(agent, settings, programs, environ))


def plan_removal(agent: str, settings: Settings, programs: Programs, environ: Mapping[str, str]) -> Plan:
    """What `uninit` would do for this agent."""
    return _planned(agent, AGENTS[agent].unplan, _place(agent, settings, programs, environ))


def apply(plan: Plan, settings: Settings, *, removing: bool) -> list[Path]:
    """Write the plan's files, each with a backup of what was there. Returns the backups.

    Raises `SettingsRefused` at the first file that is not as it was when the plan was made; files before it are
    written, and recorded.
    """
    manifest = load_manifest(settings.home)
    if not removing:
        _make_home(settings.home)
    backups = []
    for edit in plan.edits:
        if not edit.changes:
            if removing:
                manifest = _forgotten(manifest, edit)
            continue
        backup = _back_up(edit.original, settings.home, plan.agent)
        if backup:
            backups.append(backup)
        write(edit.original, edit.after)
        manifest = _forgotten(manifest, edit) if removing else _recorded(manifest, edit, backup)
        save_manifest(settings.home, manifest)
    if plan.agent == claude_code.AGENT:
        manifest = msgspec.structs.replace(manifest, read_rule=plan.read_rule)
    save_manifest(settings.home, manifest)
    return backups


def _place(agent: str, settings: Settings, programs: Programs, environ: Mapping[str, str]) -> _Place:
    named = None if settings.home == default_home({}).absolute() else settings.home
    home = AGENTS[agent].home(environ).absolute()
    return _Place(settings, programs, load_manifest(settings.home), home, named)


def _planned(agent: str, make: Callable[[_Place], Plan], place: _Place) -> Plan:
    try:
        plan = make(place)
        for edit in plan.edits:
            if edit.changes:
                check_writable(edit.original)
    except SettingsRefused as error:
        return Plan(agent, refused=error)
    return plan


def _plan_claude_code(place: _Place) -> Plan:
    original = read_original(place.home / "settings.json")
    root, ours = place.settings.root, place.manifest.read_rule

    with _refusing(original):
        text = claude_code.settings_with_us(original.text, place.programs, root, former_rule=ours)
        edit = _edit(original, text, without_us=lambda text: claude_code.settings_without_us(text, rule=ours))
    rule: str | None = claude_code.read_rule(root)
    if rule != ours and claude_code.allows_reading(original.text, root):
        rule = None  # the user's own
    return Plan(
        claude_code.AGENT,
        (edit,),
        remarks=(*claude_code.remarks(original.text), *_where_it_runs(place.programs)),
        read_rule=rule,
    )


def _unplan_claude_code(place: _Place) -> Plan:
    original = read_original(place.home / "settings.json")
    ours = place.manifest.read_rule
    with _refusing(original):
        if place.manifest == Manifest() and claude_code.has_our_hooks(original.text):
            ours = claude_code.read_rule(place.settings.root)  # what was noted went with Stillroom's home
    edit = _restored(original, place.manifest, lambda text: claude_code.settings_without_us(text, rule=ours))
    return Plan(claude_code.AGENT, (edit,))


def _plan_codex(place: _Place) -> Plan:
    config, hooks = read_original(place.home / "config.toml"), read_original(place.home / "hooks.json")
    with _refusing(config, hooks):
        texts = codex.with_us(config.text, hooks.text, place.programs, place.named_home)
        edits = (
            _edit(hooks, texts[1], without_us=codex.hooks_without_us),
            _edit(config, texts[0], without_us=codex.config_without_us),
        )
        said = codex.remarks(config.text, place.settings.root, place.home)
        trusted = codex.is_trusted(config.text, hooks.text, place.home)
    if any(edit.changes for edit in edits) or not trusted:
        said.append(
            "Codex runs a hook only once you trusted it. Its next start in a terminal asks («Hooks need review»), "
            "and so does `/hooks`; until then no session is given memory, and `codex exec` doesn't say so"
        )
    return Plan(codex.AGENT, edits, remarks=(*said, *_where_it_runs(place.programs)))


def _unplan_codex(place: _Place) -> Plan:
    config, hooks = read_original(place.home / "config.toml"), read_original(place.home / "hooks.json")
    return Plan(
        codex.AGENT,
        (
            _restored(hooks, place.manifest, codex.hooks_without_us),
            _restored(config, place.manifest, codex.config_without_us),
        ),
    )


@contextmanager
def _refusing(*originals: Original) -> Iterator[None]:
    try:
        yield
    except NotEditable as error:
        names = " or ".join(f"`{original.path}`" for original in originals)
        raise SettingsRefused(f"{names}: {error}", hint="nothing was changed in it; mend it first") from error


def _edit(original: Original, text: str, *, without_us: Callable[[str], str]) -> Edit:
    """A file that was not there, and has nothing to hold, stays away."""
    is_first = not original.text.strip() or without_us(original.text) == original.text
    return Edit(original, original.encode(text) if text or original.data is not None else None, is_first)


def _restored(original: Original, manifest: Manifest, change: Callable[[str], str]) -> Edit:
    """Back to the byte where nothing else changed; else our entries are taken out of what is there now."""
    if original.data is None:
        return Edit(original, None)
    known = manifest.changes.get(str(original.path))
    if known and known.after == digest(original.data):
        if known.backup is None:
            return Edit(original, None)
        before = _backed_up(original, known.backup)
        if before is not None and _is_without_us(before, change):  # else it holds an entry of ours, an older one
            return Edit(original, before.data)
    with _refusing(original):
        return _edit(original, change(original.text), without_us=change)


def _is_without_us(before: Original, change: Callable[[str], str]) -> bool:
    try:
        return change(before.text) == before.text
    except (NotEditable, SettingsRefused):  # what was edited could be read: this is no backup of it
        return False


def _backed_up(original: Original, backup: str) -> Original | None:
    try:
        return Original(original.path, original.target, Path(backup).read_bytes())
    except OSError:  # somebody cleaned up
        return None


def _make_home(home: Path) -> None:
    """Ahead of every edit: where nothing can be recorded, nothing is changed."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsRefused(f"`{home}` can't be made: {error.strerror}", hint="`--home` takes another") from error


def _back_up(original: Original, home: Path, agent: str) -> Path | None:
    if original.data is None:
        return None
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    folder = home / BACKUPS / agent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in range(1000):
            path = folder / f"{original.path.name}.{stamp}{f'-{number}' if number else ''}"
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                continue
            with open(descriptor, "wb") as file:
                file.write(original.data)
            return path
    except OSError as error:
        raise SettingsRefused(f"no backup can be written to `{folder}`: {error.strerror}") from error
    raise SettingsRefused(f"no backup can be written to `{folder}`: a thousand were made in this second")


def _recorded(manifest: Manifest, edit: Edit, backup: Path | None) -> Manifest:
    """The manifest after an edit. A file that changed between two of ours can't be restored, only edited; one from
    which everything of ours was taken, or that was put back, begins anew."""
    path, former = str(edit.original.path), manifest.changes.get(str(edit.original.path))
    manifest = _forgotten(manifest, edit)
    if edit.after is None:
        return manifest
    if former is None or edit.is_first:
        change = Change(after=digest(edit.after), backup=str(backup) if backup else None)
    elif edit.original.data is not None and former.after == digest(edit.original.data):
        change = msgspec.structs.replace(former, after=digest(edit.after))
    else:
        return manifest
    return msgspec.structs.replace(manifest, changes={**manifest.changes, path: change})


def _forgotten(manifest: Manifest, edit: Edit) -> Manifest:
    path = str(edit.original.path)
    changes = {known: change for known, change in manifest.changes.items() if known != path}
    return msgspec.structs.replace(manifest, changes=changes)


def _where_it_runs(programs: Programs) -> list[str]:
    if is_temporary(programs):
        said = f"this Stillroom runs from a cache (`{programs.hook[0]}`) that may be emptied"
        return [f"{said}: install it (`uv tool install stillroom`), then run `stillroom init` again"]
    return []


AGENTS: dict[str, Agent] = {
    claude_code.AGENT: Agent(
        claude_code.AGENT, "Claude Code", "claude", claude_home, _plan_claude_code, _unplan_claude_code
    ),
    codex.AGENT: Agent(codex.AGENT, "Codex CLI", "codex", codex_home, _plan_codex, _unplan_codex),
}

__all__ = ["AGENTS", "Agent", "Edit", "Plan", "apply", "detected", "plan_install", "plan_removal"]
