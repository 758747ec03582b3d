"""From a thread's events to a draft, or to nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stillroom.offline import cues
from stillroom.offline.session import commands, draft, failures, files, findings, hearing, outcome, stance, tasks
from stillroom.offline.session.draft import TaskNotes
from stillroom.offline.session.failure import Failure
from stillroom.offline.session.slug import slug_of
from stillroom.offline.session.turns import Turn, turns_of
from stillroom.offline.session.wish import BARE, Wish
from stillroom.offline.sizes import MAX_COMMANDS, MAX_FAILURES, MAX_FILES, MAX_FINDINGS, MAX_WISHES, QUOTE_CHARS
from stillroom.offline.text.secrets import gives_secret, without_secrets
from stillroom.offline.text.words import content, shorten, weight
from stillroom.rollouts.attribution import Attributor
from stillroom.rollouts.events import Ran, Said
from stillroom.rollouts.redact import redact
from stillroom.store.records import Stage1Draft
from stillroom.thread import Thread


def distil(thread: Thread, events: Sequence[Said | Ran]) -> Stage1Draft | None:
    """What is durable in a session, by rules alone; None when nothing is. Deterministic; never raises."""
    turns = turns_of(events)
    if not turns:
        return None
    heard = hearing.listen(turns)
    found = findings.find(turns, heard)
    failed = failures.find(turns, found, heard)
    worked = commands.find(turns)
    changed = files.changed(turns, heard.undone)
    if not _is_durable(turns, heard, found, failed):
        return None
    cwd = _primary_cwd(thread, turns)
    group = _project(thread, cwd)
    told = {cause.text for failure in failed for cause in failure.causes}
    faults = {failure.reported for failure in failed if failure.worded and failure.reported}
    split = tasks.split(turns)
    notes = []
    for number, task in enumerate(split):
        own = {turn.number for turn in task.turns}
        after = split[number + 1].turns[0] if number + 1 < len(split) else None
        notes.append(
            TaskNotes(
                name=_one_line(task.name),
                request=_one_line(task.request),
                commit=_one_line(task.commit),
                group=group,
                cwd=cwd,
                outcome=outcome.of(task.turns, after, found),
                wishes=[w for w in heard.wishes if w.turn in own and not _only_complains(w, faults)][:MAX_WISHES],
                failures=[f for f in failed if f.turn in own][:MAX_FAILURES],
                facts=[f for f in found.facts if f.turn in own and f.text not in told][:MAX_FINDINGS],
                disproved=[s for s in found.disproved if s.turn in own][:MAX_FINDINGS],
                undone=[
                    _attempt(
                        turn, turns[heard.undone[turn.number]].text.partition("\n\n")[0], found.setbacks[turn.number]
                    )
                    for turn in task.turns
                    if turn.number in heard.undone and not stance.complains_only(turns[heard.undone[turn.number]])
                ],
                open=[s for s in found.open if s.turn in own][:MAX_FINDINGS],
                done=[s for s in found.done if s.turn in own],
                commands=[c for c in worked if c.turn in own][:MAX_COMMANDS],
                files=[_relative(path, cwd) for path, turn in changed.items() if turn in own][:MAX_FILES],
            )
        )
    raw = draft.raw_memory(notes, cwd=cwd)
    summary = draft.rollout_summary(notes, cwd=cwd, branch=thread.git_branch)
    slug = next((s for s in (slug_of(task.name) for task in split) if s), None)
    attributor = Attributor(lambda: events, of_model=False)
    return Stage1Draft(
        raw_memory=redact(without_secrets(attributor.marked(raw))),
        rollout_summary=redact(without_secrets(attributor.marked(summary))),
        rollout_slug=redact(slug) if (slug := attributor.slug(slug)) else None,
    )


def _is_durable(turns: list[Turn], heard: hearing.Heard, found: findings.Found, failed: list[Failure]) -> bool:
    """Whether a later session would act better for knowing this one."""
    if heard.wishes or failed:
        return True
    if any(turn.edited for turn in turns):
        # Work that was taken back teaches what not to try again.
        return True
    # Only looked at: an answer is kept when a fault was asked about and what it says was seen.
    asked = any(cues.has("problem", turn.text[:1200], turn.spoken) for turn in turns)
    return asked and any(fact.causal and any(not n.isdigit() for n in fact.confirmed) for fact in found.facts)


def _only_complains(wish: Wish, faults: set[str]) -> bool:
    """Whether a wish of no lasting kind is the sentence that told of a fault: it stands beside what mended it."""
    return wish.kind in ("decision", "fact") and not wish.about and wish.quote in faults


def _attempt(turn: Turn, said: str, why: str) -> str:
    """An attempt that was undone: where, what was added, what it ran into, and the user's words."""
    edits = [edit for run in turn.runs for edit in run.edits]
    added = [
        line[1:].strip()
        for edit in edits
        for line in edit.diff.splitlines()
        if line[:1] == "+" and not gives_secret(line)
    ]
    what = f" (`{shorten('; '.join(a for a in added if a).replace('`', ''), 100)}`)" if any(added) else ""
    paths = ", ".join(f"`{path}`" for path in dict.fromkeys(edit.path for edit in edits[:3]))
    found = f" | found: {shorten(why, 160)}" if why else ""
    if not what or weight(content(said)) > BARE:
        found += f'{" |" if found else ":"} "{shorten(said, QUOTE_CHARS)}"'
    return f"{paths}{what}{found}"


def _primary_cwd(thread: Thread, turns: list[Turn]) -> str:
    """Where most commands ran; the thread's own directory when that is in or above it, or nothing ran."""
    used = Counter(run.workdir for turn in turns for run in turn.runs if run.workdir and run.workdir.startswith("/"))
    if not used:
        return thread.cwd or "unknown"
    best = max(used, key=lambda path: (used[path], path))
    total = sum(used.values())
    if thread.cwd and (best.startswith(thread.cwd.rstrip("/") + "/") or used[best] * 2 <= total):
        return thread.cwd
    return best


def _project(thread: Thread, cwd: str) -> str:
    if thread.git_origin_url and cwd.startswith(thread.cwd):
        name = thread.git_origin_url.rstrip("/").removesuffix(".git").replace(":", "/").rsplit("/", 1)[-1]
        if name:
            return _one_line(name)
    return _one_line(cwd.rstrip("/").rsplit("/", 1)[-1] or "unknown")


def _relative(path: str, cwd: str) -> str:
    return shorten(path.removeprefix(cwd.rstrip("/") + "/"), 160)


def _one_line(text: str) -> str:
    return " ".join(text.replace("`", "'").split())[:200]
