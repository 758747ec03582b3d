"""Carries out what a person decides about a result that is held. For whoever works alone (`undoing.alone`).

Accepting takes the same road as any consolidation: staging copy, validators, journal, compare-and-swap, one commit. A
file that the person changed since the result was made stays theirs.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from stillroom.clock import Clock
from stillroom.config import Settings
from stillroom.consolidate.judge import refuse
from stillroom.errors import HistoryError, StoreError, WorkspaceError
from stillroom.store import Store
from stillroom.store.leases import CONSOLIDATION
from stillroom.store.records import ConsolidationClaim, RetryBackoff, Running, Stage1Output
from stillroom.undoing.cleaning import settle
from stillroom.undoing.versions import versions
from stillroom.wording import many
from stillroom.workspace import held
from stillroom.workspace.artifacts import is_written_by_code
from stillroom.workspace.finding import Finding
from stillroom.workspace.held import Held
from stillroom.workspace.history import History, gather
from stillroom.workspace.journal import Checkpoint, nothing
from stillroom.workspace.layout import HANDBOOK, may_publish
from stillroom.workspace.publish import PublishReport
from stillroom.workspace.staging import Staging, open_staging
from stillroom.workspace.trailers import REVIEWED, with_trailers
from stillroom.workspace.tree import drop, opened, parent
from stillroom.workspace.validate import Before, check_artifacts, scrub

#: Rules that compare single lines with what the consolidator was shown.
_OF_LINES = frozenset({"evidence", "instruction", "quarantine"})


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """The result is in the memory folder."""

    commit: str | None
    written: tuple[str, ...]
    deleted: tuple[str, ...]
    #: Changed by a person since the result was made, and left alone.
    kept_for_user: tuple[str, ...]


def accept(settings: Settings, store: Store, clock: Clock, *, checkpoint: Checkpoint = nothing) -> Accepted:
    """Bring the held result into the folder. Raises `InvalidArtifacts` for what may never be in it, `WorkspaceError`
    when nothing is held or the memory went on since, `StoreError` when another process consolidates.

    One that a killed `accept` had brought there is only recorded."""
    settle(settings)
    history = History(settings.history, limits=settings.stage_two)
    about = _held(settings)
    commit = accepted_as(history, about)
    if commit is None and held.is_stale(about, history.head()):
        raise WorkspaceError(
            "the memory went on since this result was made; nothing was changed",
            hint="`stillroom review --reject` clears it away, and `stillroom run` makes another",
        )
    claim = _claim(settings, store)
    try:
        report = PublishReport(commit=commit)
        if commit is None:
            report = _publish(settings, history, about, clock, checkpoint)
        store.consolidation.succeed(claim.ownership_token, watermark=about.watermark, selected=_selected(store, about))
    finally:
        store.consolidation.release(claim.ownership_token)  # nothing to release after a success
    checkpoint("accepted")
    held.discard(settings.review)
    return Accepted(
        commit=report.commit, written=report.written, deleted=report.deleted, kept_for_user=report.kept_for_user
    )


def accepted_as(history: History, about: Held) -> str | None:
    """The version that brought a held result into the folder; None: none did."""
    if about.baseline is None or history.head() in (None, about.baseline):
        return None
    try:
        since = versions(history, since=about.baseline)
    except HistoryError:  # forgetting, or redacting, gave the versions other names
        return None
    return next((version.commit for version in since if version.run == about.run_id), None)


def reject(settings: Settings) -> None:
    """Throw the held result away; the same inputs are not consolidated again. Raises `WorkspaceError`."""
    held.reject(settings.review, _held(settings))


def edit(settings: Settings, opener: Callable[[list[Path]], None]) -> Held:
    """Have a person edit the files that the held result changes, and judge it again."""
    about = _held(settings)
    folder = held.tree_of(settings.review)
    limits = settings.stage_two
    shown_files, shown_entries = gather(held.base_of(settings.review), {}, limits=limits)
    old = {path: content.data for path, content in shown_files.items()}
    changed = [path for path, data in held.publishable(folder).items() if old.get(path) != data]
    doubted = [
        (finding, lines[finding.line - 1])
        for finding in about.findings
        if finding.rule in _OF_LINES and len(lines := _lines(folder, finding.path)) >= finding.line > 0
    ]
    opener([folder / path for path in sorted(changed)])
    if held.load(settings.review) != about:
        raise WorkspaceError("somebody decided about the result meanwhile; what you edited is not in it")
    before = Before(files=shown_entries.files, handbook=old.get(HANDBOOK, b""))
    findings = scrub(folder, before=before, limits=limits, style=settings.memories.redaction)
    findings += check_artifacts(folder, before=before, limits=limits)
    findings = [*_of_the_result(findings), *_still_standing(folder, doubted)]
    about = msgspec.structs.replace(about, findings=tuple(findings))
    held.renew(settings.review, about)
    return about


def _still_standing(folder: Path, doubted: Iterable[tuple[Finding, str]]) -> Iterator[Finding]:
    """What was found of lines that are as they were, wherever they stand now: only the consolidator's inputs tell."""
    for finding, text in doubted:
        lines = _lines(folder, finding.path)
        if text in lines:
            yield msgspec.structs.replace(finding, line=lines.index(text) + 1)


def _lines(folder: Path, path: str) -> list[str]:
    try:
        return (folder / path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _of_the_result(findings: list[Finding]) -> list[Finding]:
    """Without what is said of inputs: they are the code's."""
    return [finding for finding in findings if finding.rule != "ignored"]


def _held(settings: Settings) -> Held:
    about = held.load(settings.review)
    if about is None:
        raise WorkspaceError("nothing waits for you")
    return about


def _claim(settings: Settings, store: Store) -> ConsolidationClaim:
    # The pause since the last consolidation is for passes that nobody asked for.
    stage = msgspec.structs.replace(settings.stage_two, success_cooldown_seconds=0)
    claim_it = partial(store.consolidation.claim, worker_id=f"review-{uuid.uuid4().hex[:8]}", stage=stage)
    claim = claim_it()
    if isinstance(claim, Running):
        # Whoever works alone knows that no pass does: the lease is that of one that was killed, or had no room to end.
        for job in store.jobs.running():
            if job.kind == CONSOLIDATION:
                store.jobs.end(job, reason="the process that worked on it is gone")
        claim = claim_it()
    if isinstance(claim, ConsolidationClaim):
        return claim
    if isinstance(claim, RetryBackoff):
        raise StoreError("the last consolidation failed a moment ago", hint="try again in a few minutes")
    raise StoreError("another process is consolidating; nothing was changed", hint="try again when it is over")


def _selected(store: Store, about: Held) -> list[Stage1Output]:
    """Those outputs that are still the versions that the result rests on: newer ones wait for the next pass."""
    wanted = {(each.thread_id, each.source_updated_at) for each in about.selected}
    outputs = store.outputs.latest(limit=1_000_000)
    return [output for output in outputs if (output.thread_id, output.source_updated_at) in wanted]


def _publish(settings: Settings, history: History, about: Held, clock: Clock, checkpoint: Checkpoint) -> PublishReport:
    limits = settings.stage_two
    shown_files, shown_entries = gather(held.base_of(settings.review), {}, limits=limits)
    result, _ = gather(held.tree_of(settings.review), {}, limits=limits)
    with open_staging(
        settings.root, settings.staging, history, run_id=about.run_id, limits=limits, checkpoint=checkpoint
    ) as staging:
        # 1. The copy becomes what the consolidator was shown. What a person changed since is then no part of the new
        #    baseline, so the next pass sees it, and no part of what may be replaced.
        _clear(staging, staging.copied)
        held.put(staging.path, shown_files)
        for path in [path for path in staging.copied if not is_written_by_code(path)]:
            del staging.copied[path]
        staging.copied.update({p: entry for p, entry in shown_entries.files.items() if not is_written_by_code(p)})
        staging.seal()
        # 2. The result.
        _clear(staging, filter(may_publish, shown_files))
        held.put(staging.path, {path: content for path, content in result.items() if may_publish(path)})
        # 3. As any result.
        before = staging.before()
        scrub(staging.path, before=before, limits=limits, style=settings.memories.redaction)
        refuse(check_artifacts(staging.path, before=before, limits=limits))
        message = with_trailers(f"Consolidate {many(len(about.selected), 'thread')}\n\n{REVIEWED}", about.made_by)
        return staging.publish(message, now=clock.now())


def _clear(staging: Staging, paths: Iterable[str]) -> None:
    with opened(staging.path) as root:
        for path in paths:
            with parent(root, path, create=False) as (descriptor, name):
                drop(descriptor, name)
