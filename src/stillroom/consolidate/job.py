"""One claimed consolidation: what the ten steps of `run` are made of. Everything here may block."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from stillroom.clock import Clock
from stillroom.config import OFFLINE, RedactionStyle, Settings
from stillroom.consolidate.engine import (
    Consolidator,
    ConsolidatorNotStarted,
    RulesConsolidator,
    open_consolidator,
)
from stillroom.consolidate.judge import Judge
from stillroom.consolidate.outcome import Failed, FailureStatus
from stillroom.consolidate.sources import match_sources
from stillroom.errors import HistoryError, MemoriesFound, StillroomError, StoreError, way_out
from stillroom.lanes import Quarantined
from stillroom.models import Allowance
from stillroom.release import VERSION
from stillroom.rollouts.redact import redact
from stillroom.store import Store
from stillroom.store.records import ConsolidationClaim, Selection, Stage1Output
from stillroom.wording import many, plain
from stillroom.workspace import extensions, held
from stillroom.workspace.artifacts import Artifact, render
from stillroom.workspace.finding import Finding
from stillroom.workspace.history import History
from stillroom.workspace.journal import Checkpoint
from stillroom.workspace.layout import HANDBOOK, LINES, SUMMARY, has_artifacts, prepare_folder
from stillroom.workspace.publish import PublishReport
from stillroom.workspace.recovery import recover
from stillroom.workspace.removing import rewrite_statements
from stillroom.workspace.staging import Staging, look, open_staging
from stillroom.workspace.syncing import sync
from stillroom.workspace.takeover import check_consent
from stillroom.workspace.trailers import ENGINE, FALLBACK, LEFT, PROMPT, RELEASE, trailers_of, with_trailers

_log = logging.getLogger(__name__)

#: Steps that the model decides, or what it needs.
_OF_THE_MODEL = frozenset({"failed_sandbox_policy", "failed_spawn_agent", "failed_agent", "failed_invalid_artifacts"})
#: A model that failed is asked again after a day, not at each pause's end: it may fail as dearly again.
_PAUSES_AFTER_A_FALLBACK = 4


class StepFailed(Exception):
    """A step of phase 2 could not be done."""

    def __init__(self, status: FailureStatus, reason: str) -> None:
        super().__init__(reason)
        self.status: FailureStatus = status


def told(error: Exception) -> str:
    """An error's words, and what to do about it."""
    hint = error.hint if isinstance(error, StillroomError) else None
    if isinstance(error, OSError) and error.filename:
        hint = way_out(error, os.fsdecode(error.filename))
    return f"{error} (hint: {hint})" if hint else str(error)


def consent(settings: Settings, store: Store, *, adopt: bool) -> bool:
    """Whether the memory folder is another program's and a person lets us take it over.

    Raises `MemoriesFound`, having changed nothing, when it is and they don't.
    """
    job = store.consolidation.job()
    return check_consent(
        settings.root,
        History(settings.history, limits=settings.stage_two),
        has_succeeded=bool(job and job.last_success_watermark),
        adopt=adopt,
        limits=settings.stage_two,
    )


class Job:
    """The claim, and what it is worked with."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        clock: Clock,
        claim: ConsolidationClaim,
        checkpoint: Checkpoint,
        *,
        allowance: Allowance | None,
        origins: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self.settings, self.store, self.clock = settings, store, clock
        self._origins = origins
        self.claim, self.checkpoint, self.allowance = claim, checkpoint, allowance
        self.limits = settings.stage_two
        #: git could not do something: read the whole history before it is used again.
        self.doubts_history = False
        self.history = History(settings.history, limits=self.limits)
        self.consolidator: Consolidator | None = None
        #: Why the offline engine takes the model's place.
        self.fallback_for: StepFailed | None = None
        #: Lines of the selection's outputs that may not come into the folder.
        self.withheld: list[Quarantined] = []
        #: What code makes of the selection.
        self._artifacts: dict[str, Artifact] = {}

    @contextmanager
    def step(self, status: FailureStatus) -> Iterator[None]:
        """A step of the ten: told to `checkpoint` as it begins, named by what it is called when it fails."""
        self.checkpoint(status)
        try:
            yield
        except ConsolidatorNotStarted as error:
            raise StepFailed("failed_spawn_agent", told(error)) from error
        except (StillroomError, OSError) as error:
            raise StepFailed(status, told(error)) from error

    def prepare(self, *, adopt: bool) -> list[str]:
        """Finish or clear what a killed run left, make folder and baseline usable; what a person should know of it."""
        takes_over = consent(self.settings, self.store, adopt=adopt)
        aside = self.history.set_aside_if_damaged(now=self.clock.now()) if self.doubts_history else None
        recovery = recover(self.settings.staging, self.history, limits=self.limits)
        prepare_folder(self.settings.root, limits=self.limits)
        unusable = self.history.ensure(self.settings.root, now=self.clock.now())
        if takes_over:
            self.history.take(self.settings.root, now=self.clock.now())
        self.history.note_folder(self.settings.root)
        noted = [f"a killed run was completed: {run}" for run in recovery.completed]
        noted += [f"a killed run can't be completed yet: {why}" for why in recovery.blocked.values()]
        if takes_over:
            noted.append(
                f"the folder is taken over; what was in it is commit {self.history.head()} of {self.history.git_dir}"
            )
        if aside := unusable or aside:
            noted.append(f"the history could not be read; it is at {aside}, and a new one begins here")
        for path in (self.settings.root / HANDBOOK, self.settings.root / SUMMARY):
            if path.exists() and path.stat().st_size > self.limits.max_file_bytes:
                noted.append(f"`{path}` is too large to be read ({path.stat().st_size:,} bytes): it stays as it is")
        return noted

    def fall_back(self, failure: StepFailed) -> bool:
        """Have the offline engine do what the model did not, until it does. Not over what a model wrote before: that
        stays as it is, which says more."""
        of_a_model = self.settings.memories.consolidation_model != OFFLINE and self.fallback_for is None
        if not of_a_model or failure.status not in _OF_THE_MODEL or self._is_written_by_a_model():
            return False
        try:
            if not self.beat():
                return False
        except StoreError:
            return False
        self.fallback_for = failure
        return True

    def _is_written_by_a_model(self) -> bool:
        made = self.history.repository.last_with(ENGINE)
        return made is not None and trailers_of(made[1])[ENGINE] != OFFLINE

    def is_fallback(self) -> bool:
        """Whether the folder is what the offline engine made because a model failed, and that is to be asked again."""
        if self.consolidator is None or self.consolidator.engine == OFFLINE:
            return False
        made = self.history.repository.last_with(ENGINE)
        return made is not None and FALLBACK in trailers_of(made[1])

    def _is_time_for_the_model(self) -> bool:
        made = self.history.repository.last_with(ENGINE)
        pauses = self.limits.success_cooldown_seconds * _PAUSES_AFTER_A_FALLBACK
        return made is None or self.clock.now() >= made[0] + pauses

    def configure(self) -> Consolidator:
        if self.fallback_for is not None:
            spent = self.consolidator.usage if self.consolidator else None
            self.consolidator = RulesConsolidator(self.settings, self.clock)
            self.consolidator.usage = spent
            return self.consolidator
        self.consolidator = open_consolidator(self.settings, self.store, self.clock, allowance=self.allowance)
        return self.consolidator

    def select(self) -> Selection:
        memories = self.settings.memories
        selection = self.store.consolidation.select(
            limit=memories.max_raw_memories_for_consolidation, max_unused_days=memories.max_unused_days
        )
        self.withheld = [each.line for each in selection.withheld]
        self._artifacts = render(_without_secrets(selection.on_disk, style=memories.redaction))
        return selection

    def is_up_to_date(self) -> bool:
        """Whether the folder is its baseline, holds the selection, and is valid: seen without making a copy."""
        root, days = self.settings.root, self.limits.extension_resource_days
        if self.is_fallback() and self._is_time_for_the_model():
            return False
        return (
            has_artifacts(root)
            and not extensions.stale_resources(root, now=self.clock.now(), days=days)
            and look(root, self.history, self._artifacts, limits=self.limits).clean
        )

    def stage(self) -> Staging:
        return open_staging(
            self.settings.root,
            self.settings.staging,
            self.history,
            run_id=f"{self.clock.now()}-{uuid.uuid4().hex[:8]}",
            limits=self.limits,
            checkpoint=self.checkpoint,
        )

    def sync(self, staging: Staging) -> None:
        sync(staging.path, self._artifacts, present=staging.copied)
        extensions.prune_resources(staging.path, now=self.clock.now(), days=self.limits.extension_resource_days)
        if self.is_fallback():  # the model begins anew, but for what a person changed
            baseline = self.history.baseline()
            for path in (HANDBOOK, SUMMARY):
                if path in baseline and staging.copied.get(path) == baseline[path]:
                    (staging.path / path).unlink(missing_ok=True)

    def bury(self, staging: Staging) -> None:
        """Keep what a person removed out of the result, whoever wrote it there."""
        self._drop_record(staging)
        if buried := self.store.tombstones.buried():
            rewrite_statements(staging.path, buried)

    def _drop_record(self, staging: Staging) -> None:
        """The offline engine alone says which lines it generated; a model writes both files anew."""
        if self._engine() != OFFLINE:
            (staging.path / LINES).unlink(missing_ok=True)

    def write_diff(self, staging: Staging) -> None:
        self._drop_record(staging)
        staging.write_diff(max_bytes=self.limits.max_diff_bytes)

    def beat(self) -> bool:
        """Renew the lease; False when the lock is somebody else's by now."""
        token, seconds = self.claim.ownership_token, self.limits.lease_seconds
        return self.store.consolidation.heartbeat(token, lease_seconds=seconds)

    def judge(self, staging: Staging) -> Judge:
        """Who says whether the result may come into the folder."""
        return Judge(staging, self.settings, engine=self._engine(), withheld=self.withheld)

    def was_rejected(self, staging: Staging) -> bool:
        return held.was_rejected(self.settings.review, self._digest(staging))

    def of_projects(self, outputs: Sequence[Stage1Output]) -> Sequence[Stage1Output]:
        """The outputs, each with the repository that its folder is a checkout of, whatever its agent noted.

        A remote is spelled as the first of them that has it noted: its name is shown.
        """
        known = self._origins()
        spelled: dict[str, str] = {}
        for output in outputs:
            origin = known.get(output.cwd)
            if origin and output.git_origin_url and not origin.startswith("/"):
                spelled.setdefault(origin, output.git_origin_url)
        origins = {cwd: spelled.get(origin, origin) for cwd, origin in known.items()}
        return [
            msgspec.structs.replace(output, git_origin_url=origins.get(output.cwd, output.git_origin_url))
            for output in outputs
        ]

    def release(self) -> None:
        """Give the lock back; nothing was done."""
        self.store.consolidation.release(self.claim.ownership_token)

    def hold(self, staging: Staging, selection: Selection, findings: Sequence[Finding]) -> None:
        """Keep the result for a person, and give the lock back: the folder is as it was."""
        self.confirm()
        about = held.Held(
            at=self.clock.now(),
            baseline=self.history.head(),
            inputs=self._digest(staging),
            engine=self._engine(),
            selected=tuple(held.Version(each.thread_id, each.source_updated_at) for each in selection.selected),
            watermark=self._watermark(selection),
            findings=tuple(findings),
            made_by=self._made_by(),
            run=staging.run.name,
        )
        held.hold(self.settings.review, staging, about)
        self.release()

    def _digest(self, staging: Staging) -> str:
        return held.digest(staging.seen, engine=self._engine())

    def _engine(self) -> str:
        assert self.consolidator is not None
        return self.consolidator.engine

    def _watermark(self, selection: Selection) -> int:
        newest = max((output.source_updated_at for output in selection.selected), default=0)
        return max(self.claim.input_watermark, newest)

    def confirm(self) -> None:
        """Raises `StoreError` when the lock is no longer ours."""
        if not self.beat():
            raise StoreError("another process took the consolidation over")

    def publish(self, staging: Staging, selection: Selection) -> PublishReport:
        subject = f"Consolidate {many(len(selection.selected), 'thread')}"
        style = self.settings.memories.redaction
        left = "\n".join(redact(f"{LEFT}{plain(each.told)}", style=style) for each in selection.leaving)
        message = with_trailers(f"{subject}\n\n{left}" if left else subject, self._made_by())
        return staging.publish(message, now=self.clock.now())

    def _made_by(self) -> dict[str, str]:
        made_by = {RELEASE: VERSION}
        if self.consolidator is not None:
            made_by |= {ENGINE: self.consolidator.engine, PROMPT: self.consolidator.prompt or ""}
        if self.fallback_for is not None:
            made_by[FALLBACK] = self.settings.memories.consolidation_model
        return made_by

    def succeed(self, selection: Selection) -> None:
        self.store.consolidation.succeed(
            self.claim.ownership_token, watermark=self._watermark(selection), selected=selection.selected
        )

    def record_success(self, selection: Selection) -> list[str]:
        """The same once the folder is written; what a person should know when the database can't take it."""
        try:
            self.succeed(selection)
            self._note_sources(selection)
        except StoreError as error:
            return [f"the folder is written, but that could not be recorded: {told(error)}"]
        return []

    def _note_sources(self, selection: Selection) -> None:
        """What those lines rest on that were worded anew: a model's, and commands that work."""
        files = [self.settings.root / path for path in (HANDBOOK, SUMMARY)]
        texts = [file.read_text(encoding="utf-8", errors="replace") for file in files if file.is_file()]
        self.store.memory_lines.repeat(match_sources(texts, selection.on_disk))

    def pack_history(self) -> list[str]:
        """Keep the history small, once in many versions; what a person should know when that can't be done."""
        limits = self.limits
        try:
            self.history.repository.pack_loose(at_least=limits.pack_at_loose_objects, at_most=limits.max_packed_objects)
        except (HistoryError, OSError) as error:
            return [f"the folder is written, but its history could not be packed: {told(error)}"]
        return []

    def fail(self, failure: StepFailed) -> Failed:
        """Give the lock up; the next try waits."""
        reason = redact(str(failure), style=self.settings.memories.redaction)
        # A person who now says `--adopt` should not have to wait.
        delay = 0 if isinstance(failure.__cause__, MemoriesFound) else self.limits.retry_delay_seconds
        self._give_up(reason, retry_delay_seconds=delay)
        usage = self.consolidator.usage if self.consolidator else None
        return Failed(status=failure.status, reason=reason, retry_at=self.clock.now() + delay, usage=usage)

    def interrupt(self, error: BaseException) -> None:
        """Give the lock up without a pause: Ctrl-C, or a fault of ours, must not hold it until the lease ends."""
        reason = f"stopped by {type(error).__name__}"
        self._give_up(reason, retry_delay_seconds=0)

    def _give_up(self, reason: str, *, retry_delay_seconds: int) -> None:
        """Whatever made the step fail is what a person is told; that it could not be recorded comes second."""
        try:
            self.store.consolidation.fail(
                self.claim.ownership_token, reason=reason, retry_delay_seconds=retry_delay_seconds, or_unowned=True
            )
        except StoreError as error:  # the lease runs out by itself
            _log.warning("the end of the consolidation could not be recorded: %s", error)


def _without_secrets(outputs: Sequence[Stage1Output], *, style: RedactionStyle) -> Sequence[Stage1Output]:
    """With their paths redacted: the database has these as they are, since files are opened and folders compared by
    them; what people and models read does not."""
    paths = "\n".join({path for output in outputs for path in (output.cwd, output.rollout_path)})
    if redact(paths, style=style) == paths:  # at once, as there are thousands, and hardly ever one with a secret
        return outputs
    return [
        msgspec.structs.replace(
            output, cwd=redact(output.cwd, style=style), rollout_path=redact(output.rollout_path, style=style)
        )
        for output in outputs
    ]
