"""From a session's events to a draft, without a model of language: structure, and sentences by their score."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import msgspec

from stillroom.offline import cues, draft, later, model, shell, work
from stillroom.offline.draft import LINE_CHARS, Line, Task
from stillroom.offline.features import Sentence, found_in
from stillroom.offline.sentences import clip, identifiers, sentences, share, size, terms
from stillroom.offline.text import conflict
from stillroom.offline.text.secrets import gives_secret, without_secrets
from stillroom.offline.work import Failure, Turn
from stillroom.rollouts.redact import redact
from stillroom.sessions.attribution import Attributor
from stillroom.sessions.events import Edit, Ran, Said
from stillroom.sessions.pasted import own_words
from stillroom.store.records import Stage1Draft
from stillroom.thread import Thread


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Scores from which sentences are told, or kept as evidence. Chosen on the development lots."""

    told: float = 0.78
    told_in_talk: float = 0.65  #: the same where nothing is done: every word may be a decision
    told_of_task: float = 0.9  #: for a sentence of the first turn without a word for what lasts
    told_beside: float = 0.5  #: for one next to a told sentence of the same message: they are said together
    told_ending: float = 0.4  #: for one that says that something is over
    told_assistant: float = 0.85
    told_at_end: float = 0.9
    evidence: float = 0.12
    evidence_assistant: float = 0.25
    strong: float = 0.25  #: enough where a sentence says "always" or "never"; "from now on" needs no score at all
    cause: float = 0.35
    worth: float = 0.5  #: one sentence from here on makes evidence of a talk in which nothing was done
    reported: float = 0.7


_MAX_TOLD, _MAX_KNOWN, _MAX_EVIDENCE, _MAX_ASSISTANT_EVIDENCE = 24, 5, 60, 16
_MAX_TASKS = 8
_COMPARED = 200
"""Sentences that one is compared with by its words: a session may have thousands."""
_SLUG_CHARS, _LEAST_SLUG_CHARS = 60, 3
_BARE = 7
"""An answer of fewer words says nothing without what it answers."""
_LEAST_WORDS = 3
_ASKED_AGAIN = 0.6
"""Who says so much of a sentence once more asks for the same thing again."""
_POINTS_BACK = 8
"""A longer sentence says itself what is to be remembered."""
_BACK = re.compile(
    r"\b(?:that|this|it|these|das|dies|ça|cela|eso|esto|isso|isto|это|to|bunu|questo|lo)\b|这|那|これ|それ|그|이거|यह|इसे",
    re.IGNORECASE,
)
_RESULT = re.compile(
    r"\d+ (?:tests? )?pass|passed|\bok\b|success|✓|0 errors|0 failed|no issues|/pull/\d+|!\d{2,}", re.IGNORECASE
)
Score = Callable[[Sentence], float]


def distil(
    thread: Thread, events: Sequence[Said | Ran], *, thresholds: Thresholds = Thresholds(), score: Score | None = None
) -> Stage1Draft | None:
    """What is worth keeping of a session; None when nothing is. Deterministic.

    `score` stands for the trained models where they are tried against others. Raises `DamagedWeights`.
    """
    turns = work.turns_of(events)
    if not turns:
        return None
    found = [one for one in found_in(turns) if not gives_secret(one.text)]
    models = model.load() if score is None else {}
    for one in found:
        one.score = score(one) if score else models[one.who].score(one.text, one.features)
        if one.who == "user" and _is_lasting(one, thresholds):
            one.score = max(one.score, thresholds.told)
    _raise_companions([one for one in found if one.who == "user"], thresholds)
    # The assistant repeats what a page or a file said: such a line is held for review, and is no cause of anything.
    attributor = Attributor(lambda: events, of_model=False)
    session = _Session(thread, turns, found, thresholds, attributor)
    tasks = session.tasks()
    if not session.is_durable(tasks):
        return None
    slug = attributor.slug(_slug(tasks[0].name) or None)
    quoted = {line.text for task in tasks for line in (*task.told, *task.evidence) if _is_quotation(line)}
    summary = draft.rollout_summary(tasks, branch=thread.git_branch)
    return Stage1Draft(
        raw_memory=_clean(attributor.marked(draft.raw_memory(tasks), of_person=quoted)),
        rollout_summary=_clean(attributor.marked(summary, of_person=quoted)),
        rollout_slug=_clean(slug) if slug else None,
        sources=tuple(
            msgspec.structs.replace(row, line=_clean(row.line), quote=_clean(row.quote))
            for row in draft.line_sources(tasks)
        ),
    )


def _is_quotation(line: Line) -> bool:
    """Whether a line holds the person's own words alone."""
    of_person = all(isinstance(event, Said) and event.who == "user" for event, _ in line.sources)
    return of_person and line.text.startswith("the user said: ") and bool(line.sources)


def _clean(text: str) -> str:
    return redact(without_secrets(text))


def _slug(name: str) -> str:
    """`fix_the_flaky_clock`, for the name of the summary's file; "" of a name in another script."""
    slug = "_".join(re.findall(r"[a-z0-9]+", name.casefold()))[:_SLUG_CHARS].strip("_")
    return slug if len(slug) >= _LEAST_SLUG_CHARS else ""


def _is_lasting(one: Sentence, thresholds: Thresholds) -> bool:
    """Whether it says in so many words that it is to last, and nothing in it or after it says otherwise."""
    x = one.features
    said = x.get("c_explicit") or (x.get("strong") and one.score >= thresholds.strong)
    return bool(said) and not any(x.get(name) for name in ("question", "c_passing", "undone", "c_opinion"))


def _raise_companions(found: list[Sentence], limits: Thresholds) -> None:
    """Tell what a told sentence of the same message is said together with: the one before "remember that", what is
    over beside what takes its place, and neighbours that nearly would be told by themselves."""
    for one, other in pairwise(found):
        if one.said is not other.said or one.features.get("question") or other.features.get("question"):
            continue
        if other.features.get("strong") and size(other.text) <= _POINTS_BACK and _BACK.search(other.text):
            one.score = max(one.score, limits.told)
    for at, one in enumerate(found):
        if one.score < limits.told_ending or one.features.get("question"):
            continue
        claim = conflict.claim(one.text)
        if claim.refused and claim.changes and not claim.negative:
            one.score = max(one.score, limits.told)
            for near in found[max(at - 1, 0) : at] + found[at + 1 : at + 2]:
                if near.said is one.said and conflict.claim(near.text).subject & claim.refused:
                    near.score = max(near.score, limits.told)
    told = [one.score >= limits.told for one in found]
    for at, one in enumerate(found):
        is_beside = any(0 <= n < len(found) and found[n].said is one.said and told[n] for n in (at - 1, at + 1))
        if is_beside and one.score >= limits.told_beside and not one.features.get("question"):
            one.score = max(one.score, limits.told)


class _Session:
    """A session's turns and scored sentences, sorted into lines."""

    def __init__(
        self,
        thread: Thread,
        turns: list[Turn],
        found: list[Sentence],
        limits: Thresholds,
        attributor: Attributor,
    ) -> None:
        self._thread, self._turns, self._limits, self._attributor = thread, turns, limits, attributor
        self._users = _distinct([one for one in found if one.who == "user"])
        self._helpers = _distinct([one for one in found if one.who == "assistant"])
        kept = [one for one in self._users if one.score >= limits.evidence]
        self._replaced = {id(kept[at]): heir for at, heir in later.replaced(kept).items()}
        self._failures = work.failures(turns)
        self._checked = any(run.command for turn in turns for run in turn.runs)
        self._lost = frozenset().union(*(fate.rows for fate in work.fates(turns)))
        self._used: set[int] = set()  #: the assistant's sentences that stand in the line of a failure
        self._lines: list[tuple[int, bool, Line]] = []  #: turn, is told, line

    def tasks(self) -> list[Task]:
        """The tasks with all their lines."""
        self._add_failures()
        self._add_reported()
        self._add_confirmed()
        self._add_agreed()
        self._add_person()
        self._add_assistant()
        self._add_endings()
        cwd = _primary_cwd(self._thread, self._turns)
        commands = work.commands(self._turns)
        tasks = []
        for turns in tasks_of(self._turns):
            numbers = {turn.number for turn in turns}
            task = Task(
                name=_name(turns),
                outcome=work.outcome(turns),
                group=_project(self._thread, cwd),
                cwd=cwd,
                told=[line for turn, told, line in self._lines if told and turn in numbers],
                evidence=[line for turn, told, line in self._lines if not told and turn in numbers],
                commands=[command for command in commands if command.turn in numbers],
                files=[_relative(path, cwd) for path in work.changed(turns)],
                commit=_commit(turns),
            )
            task.told += list(_references(task, turns))
            tasks.append(task)
        return tasks

    def is_durable(self, tasks: Sequence[Task]) -> bool:
        """Whether a later session would act better for knowing this one."""
        if any(turn.edits for turn in self._turns) or any(failure.passed for failure in self._failures):
            return True
        if all(map(_only_asks, self._users)):
            return False
        if any(line.section != "reference" for task in tasks for line in task.told):
            return True
        return any(one.score >= self._limits.worth and not one.features.get("question") for one in self._users)

    def _tell(self, turn: int, line: Line) -> None:
        self._lines.append((turn, True, line))

    def _keep(self, turn: int, line: Line) -> None:
        self._lines.append((turn, False, line))

    # What the person said.

    def _add_person(self) -> None:
        limits = self._limits
        wanted = [one for one in self._users if one.score >= self._enough(one) and self._holds(one)]
        told = {id(one) for one in sorted(wanted, key=lambda one: -one.score)[:_MAX_TOLD]}
        heirs = {id(heir): one for one in self._users if (heir := self._replaced.get(id(one)))}
        rest = [one for one in self._users if id(one) not in told and one.score >= limits.evidence]
        evidence = {id(one) for one in sorted(rest, key=lambda one: -one.score)[:_MAX_EVIDENCE]}
        lead: Sentence | None = None
        for one, after in pairwise([*self._users, None]):
            assert one is not None
            if lead is None and id(one) in told and self._leads_to(one, after):
                lead = one
            elif lead or id(one) in told:
                for line in _person_lines(one, _replaces(heirs.get(id(one))), lead):
                    self._tell(one.turn, line)
                lead = None
            elif id(one) in evidence:
                for line in _person_lines(one, self._ending(one)):
                    self._keep(one.turn, line)

    def _leads_to(self, one: Sentence, after: Sentence | None) -> bool:
        """Whether a sentence only says that something is over, and the next one of the message what takes its place."""
        if after is None or after.said is not one.said or after.features.get("question"):
            return False
        return after.score >= self._limits.evidence and self._holds(after) and _only_ends(one)

    def _enough(self, one: Sentence) -> float:
        """What a sentence needs to be told: more in the first turn, which sets the task."""
        x = one.features
        lasting = x.get("strong") or x.get("c_lasting")
        sets_task = x.get("turn0") and not x.get("nothing_after")
        if sets_task and not lasting:
            return self._limits.told_of_task
        return self._limits.told_in_talk if x.get("chat") else self._limits.told

    def _holds(self, one: Sentence) -> bool:
        """Whether it still stands, was typed rather than handed over as a document, and says something by itself."""
        says = (size(one.text) >= _LEAST_WORDS or one.context != "") and not _only_names(one.text)
        x = one.features
        lasting = x.get("strong") or x.get("c_lasting")
        typed = not x.get("document") and not (x.get("once", 0.0) >= _ASKED_AGAIN and not lasting)
        return says and typed and id(one) not in self._replaced and not later.taken_back(one)

    def _ending(self, one: Sentence) -> str:
        """What became of a sentence that no longer holds."""
        if heir := self._replaced.get(id(one)):
            return f' (superseded later: "{clip(heir.text, 120)}")'
        return " (reverted later)" if later.taken_back(one) else ""

    # What the assistant found.

    def _add_assistant(self) -> None:
        limits = self._limits
        free = [one for one in self._helpers if id(one) not in self._used]
        known = [one for one in free if one.score >= self._enough_of_assistant(one) and not _narrates(one)]
        if not self._checked:
            known = []  # where no command ran, nothing that the assistant says was seen to be so
        told = {id(one) for one in sorted(known, key=lambda one: -one.score)[:_MAX_KNOWN]}
        rest = [one for one in free if id(one) not in told and one.score >= limits.evidence_assistant]
        evidence = {id(one) for one in sorted(rest, key=lambda one: -one.score)[:_MAX_ASSISTANT_EVIDENCE]}
        for one in free:
            if id(one) in told or id(one) in evidence:
                line = Line("knowledge", f'The assistant found: "{clip(one.text, 360)}"', ((one.said, one.text),))
                (self._tell if id(one) in told else self._keep)(one.turn, line)

    def _enough_of_assistant(self, one: Sentence) -> float:
        """More in the last message of a turn, which mostly lists what was made."""
        return self._limits.told_at_end if one.features.get("final") else self._limits.told_assistant

    # What failed.

    def _add_failures(self) -> None:
        for failure in self._failures:
            self._take_other_way(failure)
            if failure.passed is None:
                code = f" (exit {failure.run.exit_code})" if failure.run.exit_code else ""
                text = f"`{failure.command}` failed{code} and was not seen to pass: {failure.error}"
                self._keep(failure.turn, Line("failure", text, ((failure.run, failure.error),)))
                continue
            causes = self._causes(failure) or self._told_cure(failure)
            taken_out = failure.edits and not self._kept_edits(failure.edits)
            failure.edits = self._kept_edits(failure.edits)
            if not taken_out and (cure := _cure(failure)):
                said: list[tuple[Said | Ran, str]] = [(one.said, one.text) for one in causes]
                shown: list[tuple[Said | Ran, str]] = [(failure.run, failure.error), (failure.passed, failure.passing)]
                self._tell(failure.turn, Line("failure", _failure_text(failure, cure, causes), (*shown, *said)))
                self._used.update(map(id, causes))
            else:
                text = f"`{failure.command}` failed and passed when it ran again: {failure.error}"
                self._keep(failure.turn, Line("failure", text, ((failure.run, failure.error),)))

    def _causes(self, failure: Failure) -> list[Sentence]:
        """The assistant's sentences that tell why: said after the person's last word ahead of the pass, or taken up by
        it, and not refuted by the next one."""
        start, end = failure.place, self._next_said(failure)
        for turn in self._turns[failure.turn + 1 : failure.passed_turn + 1]:
            first = turn.sentences[0][0] if turn.sentences else ""
            if not later.is_yes(first):
                start = turn.first - 1
        about = terms(failure.error) | terms(" ".join(work.added(failure.edits)[:12]))
        near = [
            one
            for one in self._helpers
            if start < one.place < end
            and one.score >= self._limits.cause
            and not one.features.get("s_plan")
            and not (one.features.get("next_undo") and one.turn == failure.passed_turn)
        ]
        near.sort(key=lambda one: -(one.score + 0.3 * share(terms(one.text), about)))
        own = list(islice((one for one in near if self._is_own(one)), 2))
        return sorted(own, key=lambda one: one.place)

    def _take_other_way(self, failure: Failure) -> None:
        """Where the command never passed: the one that the person named next, if it passed at once."""
        if failure.passed or failure.turn + 1 >= len(self._turns):
            return
        turn = self._turns[failure.turn + 1]
        named = terms(" ".join(text for text, _ in turn.sentences))
        for place, run in enumerate(turn.steps, turn.first):
            if isinstance(run, Ran) and shell.passed(run) and not run.edits:
                told = shell.telling(run.command or "")
                if told and terms(shell.base(told[0])) and terms(shell.base(told[0])) <= named:
                    failure.passed, failure.passed_place, failure.passed_turn = run, place, turn.number
                return

    def _told_cure(self, failure: Failure) -> list[Sentence]:
        """The person's sentences after the failure that name what made it pass, with what they say around it."""
        about = terms(failure.passing) | terms(failure.command)
        between = self._turns[failure.turn + 1 : failure.passed_turn + 1]
        said = [one for one in self._users if any(one.turn == turn.number for turn in between)]
        near = [at for at, one in enumerate(said) if terms(one.text) & about and not one.features.get("question")]
        near = near[:2]
        return [said[at] for at in near if size(said[at].text) >= _LEAST_WORDS]

    def _is_own(self, one: Sentence) -> bool:
        """Whether the assistant says it of itself, and not after a page, a file or a program."""
        line = f"- {one.text}"
        return self._attributor.marked(line) == line

    def _next_said(self, failure: Failure) -> int:
        """Just behind the assistant's first message after the pass, in the same turn."""
        turn = self._turns[failure.passed_turn]
        for place, step in enumerate(turn.steps, turn.first):
            if place > failure.passed_place and isinstance(step, Said):
                return place + 1
        return turn.first + len(turn.steps)

    def _add_reported(self) -> None:
        """Faults that no command showed: what the assistant found, what was changed, and the words that it answers."""
        fixed = {failure.passed_turn for failure in self._failures if failure.passed}
        for turn in self._turns:
            kept = self._kept_edits(turn.edits)
            if not kept or turn.number in fixed or not self._is_confirmed(turn):
                continue
            mine = [
                one
                for one in self._helpers
                if one.turn == turn.number
                and id(one) not in self._used
                and not one.features.get("final")
                and (one.features.get("c_because") or one.features.get("c_negative"))
                and one.score >= self._limits.reported
            ]
            if not mine:
                continue
            best = sorted(mine, key=lambda one: -one.score)[:_MAX_KNOWN]
            mine = sorted(islice(filter(self._is_own, best), 2), key=lambda one: one.place)
            if not mine:
                continue
            self._used.update(map(id, mine))
            cause = " ".join(clip(one.text, 180) for one in mine)
            symptom = self._symptom(turn, terms(cause))
            if symptom and not _reports(symptom):
                continue
            sign = f' when "{clip(symptom.text, 110)}"' if symptom else ""
            text = clip(f'{_fix(kept)}{sign} (found by the assistant: "{cause}")', LINE_CHARS)
            asked = [(symptom.said, symptom.text)] if symptom else []
            self._tell(turn.number, Line("failure", text, (*asked, *((one.said, one.text) for one in mine))))

    def _is_confirmed(self, turn: Turn) -> bool:
        """Whether a command passed after the turn's first edit, or the person agrees next."""
        edited = False
        for run in turn.runs:
            edited = edited or bool(run.edits)
            if edited and run.command and shell.passed(run):
                return True
        after = self._turns[turn.number + 1 : turn.number + 2]
        return bool(after and after[0].sentences and later.is_yes(after[0].sentences[0][0]))

    def _add_confirmed(self) -> None:
        """What the assistant advised in a talk, where the person says in their next words that it helped."""
        for before, turn in pairwise(self._turns):
            first = " ".join(text for text, _ in turn.sentences[:2])
            if before.runs or not cues.has("solved", first) or first.rstrip().endswith(("?", "？")):
                continue
            mine = [one for one in self._helpers if one.turn == before.number and identifiers(one.text)]
            advised = list(islice(filter(self._is_own, (one for one in mine if not one.features.get("question"))), 2))
            asked = max(
                (one for one in self._users if one.turn == before.number), key=lambda one: one.score, default=None
            )
            if not advised:
                continue
            self._used.update(map(id, advised))
            advice = " ".join(clip(one.text, 160) for one in advised)
            sign = f' when "{clip(asked.text, 110)}"' if asked else ""
            text = f'"{advice}"{sign} (advised by the assistant; the user said: "{clip(first, 90)}")'
            said = [(one.said, one.text) for one in (*advised, *([asked] if asked else []))]
            confirmed = (turn.sentences[0][1], first)
            self._tell(turn.number, Line("failure", text, (*said, confirmed)))

    def _add_agreed(self) -> None:
        """What the assistant asked about the work, where the person says yes and the next edits stay."""
        for before, turn in pairwise(self._turns):
            first = turn.sentences[0][0] if turn.sentences else ""
            if not later.is_yes(first) or size(first) > _BARE or not self._kept_edits(turn.edits):
                continue
            asked = [one for one in self._helpers if one.turn == before.number and one.features.get("question")]
            last = asked[-1] if asked else None
            if last is None or last.features.get("c_plan") or size(last.text) < _BARE or not self._is_own(last):
                continue
            if _BACK.search(last.text):  # "do you agree with this plan?" says nothing by itself
                continue
            text = f'after the assistant asked "{clip(last.text, 220)}", the user said: "{clip(first, 100)}"'
            self._tell(turn.number, Line("preference", text, ((last.said, last.text), (turn.sentences[0][1], first))))

    def _symptom(self, turn: Turn, cause: frozenset[str]) -> Sentence | None:
        """The person's sentence of this turn that shares most with what was found; else none."""
        said = [one for one in self._users if one.turn == turn.number and size(one.text) >= _LEAST_WORDS + 1]
        shared = {id(one): len(terms(one.text) & cause) for one in said}
        best = max(said, key=lambda one: (shared[id(one)], one.first), default=None)
        return best if best and (shared[id(best)] or best.first) else None

    def _kept_edits(self, edits: Sequence[Edit]) -> list[Edit]:
        """Edits whose lines were not all taken out again later."""
        return [edit for edit in edits if not (rows := work.rows_of(edit)) or not rows <= self._lost]

    # How it ended.

    def _add_endings(self) -> None:
        for turn in self._turns:
            finals = [reply for reply in turn.replies if reply.final]
            if not turn.runs or not finals:
                continue
            said = [s for own in own_words(finals[-1].text) for s in sentences(own)][:3]
            checks = [
                clip(row, 110)
                for run in turn.runs
                if shell.passed(run)
                for row in run.output.splitlines()[-30:]
                if _RESULT.search(row)
            ]
            text = clip(" ".join(said), 300) + (f" [{checks[-1]}]" if checks else "")
            if text:
                self._keep(turn.number, Line("step", text, ((finals[-1], " ".join(said)),)))


def _reports(one: Sentence) -> bool:
    """Whether a sentence says that something is wrong, rather than what is wished for."""
    return bool(one.features.get("c_negative")) or work.tells_error(one.text)


_NARRATES = re.compile(
    r"(?:I|We)\b|(?:Started|Created|Updated|Added|Moved|Read)\b|.*\]\(/|.*\bI(?:['’]ll| will)\b"
    r"|(?:Ich|Wir) \w+|J['’]ai\b|Je \w+|(?:He|Voy|Vamos|Vou|Ho|Abbiamo) \w+|Я \w+|我(?:已|会|将|把|先|来)?",
)


def _narrates(one: Sentence) -> bool:
    """Whether it tells what the assistant did or is about to do."""
    return bool(one.features.get("s_plan")) or _NARRATES.match(one.text) is not None


def _only_asks(one: Sentence) -> bool:
    """Whether a sentence asks, with or without a question mark, or only says thanks."""
    start = " ".join(one.text.split()[:4])[:40]
    asks = one.features.get("question") or cues.has("asks", start) or cues.joined("asks", one.text)
    return bool(asks) or size(one.text) < _LEAST_WORDS or (cues.has("nod", one.text) and size(one.text) < _BARE)


def _only_names(text: str) -> bool:
    """Whether it is a file, a line that a program printed, or a command to the client: `/drop src/app.ts`."""
    if re.match(r"/[a-z]+(?:\s|$)", text):
        return True
    names = identifiers(text)
    rest = " ".join(word for word in text.split() if not any(name in word.casefold() for name in names))
    return bool(names) and size(rest) < 2


def _only_ends(one: Sentence) -> bool:
    """Whether it says that something is over, and not what is in its place: "develop is gone"."""
    claim = conflict.claim(one.text)
    return bool(claim.subject) and claim.changes and claim.subject <= claim.refused


def _person_lines(one: Sentence, ending: str, lead: Sentence | None = None) -> list[Line]:
    """A quotation of the person, after the sentence that leads to it; of a bare answer with what it answers; of a long
    sentence one for each part."""
    if lead:
        text = f'the user said: "{lead.text} {one.text}"{ending}'
        if len(text) <= LINE_CHARS:
            return [Line("preference", text, ((lead.said, lead.text), (one.said, one.text)))]
        return [*_person_lines(lead, ""), *_person_lines(one, ending)]
    needs_context = size(one.text) < _BARE or (one.features.get("asked_before") and size(one.text) < 2 * _BARE)
    before = f'after the assistant said "{clip(one.context, 160)}", ' if one.context and needs_context else ""
    return [
        Line("preference", f'{before}the user said: "{part}"{ending}', ((one.said, part),))
        for part in clauses(one.text, LINE_CHARS - len(before) - len(ending) - 20)
    ]


def clauses(text: str, limit: int) -> list[str]:
    """`text` in pieces within `limit`, split at `;`, else at commas, else at spaces. Nothing is left out."""
    text = " ".join(text.split())
    pieces: list[str] = []
    while len(text) > limit:
        at = max((text.rfind(mark, limit // 3, limit) for mark in ("; ", "；", ". ", ", ", "，", "、")), default=-1)
        at = at + 1 if at > 0 else max(text.rfind(" ", limit // 3, limit), 0) or limit
        pieces.append(text[:at].strip())
        text = text[at:].strip()
    return [*pieces, text] if text else pieces


def _replaces(older: Sentence | None) -> str:
    return f' (replaces: "{clip(older.text, 100)}")' if older else ""


def _failure_text(failure: Failure, cure: str, causes: Sequence[Sentence]) -> str:
    """Cure first: what to do, when, and why."""
    sign = f" when `{clip(failure.command, 100)}` fails"
    sign += f' with "{failure.error}"' if failure.error else ""
    why = " ".join(clip(one.text, 200) for one in causes)
    who = "the user said" if causes and causes[0].who == "user" else "cause, said by the assistant"
    seen = f"then `{clip(failure.passing, 80)}` passed" if failure.passing != failure.command else "then it passed"
    for told in (f' ({who}: "{why}"; {seen})', f' ({who}: "{why}")'):
        if why and len(cure) + len(sign) + len(told) <= LINE_CHARS:
            return cure + sign + told
    if why:
        room = LINE_CHARS - len(cure) - len(sign) - 35
        if room > 80:
            return f'{cure}{sign} ({who}: "{clip(why, room)}")'
    return clip(f"{cure}{sign} ({seen})", LINE_CHARS)


def _cure(failure: Failure) -> str:
    """What made it pass: an edit, a command in between, another form of the command; "" if nothing is known."""
    if failure.edits:
        return _fix(failure.edits)
    if failure.remedies:
        return "Run " + " and ".join(f"`{remedy}`" for remedy in failure.remedies)
    if failure.passing and failure.passing != failure.command and failure.tries == 1:
        return f"Run `{clip(failure.passing, 120)}`"
    return ""


def _fix(edits: Sequence[Edit]) -> str:
    files = list(dict.fromkeys(edit.path for edit in edits))[-3:]
    rows = work.added(edits[-2:])[:2]
    change = f" (`+{clip('; '.join(rows).replace('`', ''), 110)}`)" if rows and not any(map(gives_secret, rows)) else ""
    return "Fix in " + ", ".join(f"`{path}`" for path in files) + change


def _references(task: Task, turns: Sequence[Turn]) -> Iterator[Line]:
    for command in task.commands:
        times = f", {command.runs} times" if command.runs > 1 else ""
        where = f" in `{command.run.workdir}`" if command.run.workdir and command.run.workdir != task.cwd else ""
        text = f"`{command.text}`{where} -> passed{times}"
        yield Line("reference", text, ((command.run, command.text),))
    if task.files:
        runs = [run for turn in turns for run in turn.runs if run.edits][-1:]
        yield Line("reference", "files: " + ", ".join(f"`{path}`" for path in task.files), tuple((r, "") for r in runs))
    if task.commit:
        yield Line("reference", f"commit: {clip(task.commit, 120)}", ())


# Tasks.


def tasks_of(turns: Sequence[Turn]) -> list[list[Turn]]:
    """Turns about one thing. Another begins after a commit, and where other files are edited for other words."""
    tasks: list[list[Turn]] = []
    closed = False
    for turn in turns:
        if tasks and (len(tasks) == _MAX_TASKS or not _begins(turn, tasks[-1], closed=closed)):
            tasks[-1].append(turn)
        else:
            tasks.append([turn])
        if turn.runs or len(tasks[-1]) == 1:
            closed = any(shell.committed(run) for run in turn.runs)
    return tasks


def _begins(turn: Turn, task: Sequence[Turn], *, closed: bool) -> bool:
    if not turn.edits or not any(size(text) >= 4 for text, _ in turn.sentences):
        return False
    before = {edit.path for each in task for edit in each.edits}
    own = terms(" ".join(text for text, _ in turn.sentences[:8]))
    said = terms(" ".join(text for each in task[-6:] for text, _ in each.sentences[:8]))
    apart = not before & {edit.path for edit in turn.edits}
    return apart and bool(before) and share(own, said) < (0.25 if closed else 0.08)


def _name(turns: Sequence[Turn]) -> str:
    """What a task is called: its last commit, else the request that was worked on."""
    if commit := _commit(turns):
        return clip(_one_line(commit), 120)
    worked = [turn for turn in turns if turn.edits] or [turn for turn in turns if turn.runs] or list(turns)
    for turn in (turns[0], *worked):
        for text, _ in turn.sentences[:4]:
            if size(text) >= 4 and not text.rstrip().endswith(("?", "？")) and not _is_answer(text):
                return clip(_one_line(text).rstrip(" .。!！:"), 120)
    first = next((text for turn in turns for text, _ in turn.sentences if size(text) >= 3), "")
    first = first or next(iter(sentences(turns[0].task)), "")
    return clip(_one_line(first).rstrip(" .。!！:"), 120) or "session"


def _is_answer(text: str) -> bool:
    """Whether it begins as an answer to what came before: no, ok, undo that."""
    start = " ".join(text.split()[:2])[:20]
    return cues.has("undo", text) or cues.has("nod", start) or cues.has("negative", start)


def _commit(turns: Sequence[Turn]) -> str:
    return next((s for turn in reversed(turns) for run in reversed(turn.runs) if (s := shell.committed(run))), "")


def _one_line(text: str) -> str:
    return " ".join(text.replace("`", "'").split())


def _primary_cwd(thread: Thread, turns: Sequence[Turn]) -> str:
    """Where most commands ran; the thread's own directory when that is in or above it, or nothing ran."""
    used = Counter(run.workdir for turn in turns for run in turn.runs if run.workdir and run.workdir.startswith("/"))
    if not used:
        return thread.cwd or "unknown"
    best = max(used, key=lambda path: (used[path], path))
    inside = best.startswith(thread.cwd.rstrip("/") + "/") or used[best] * 2 <= used.total()
    return thread.cwd if thread.cwd and inside else best


def _project(thread: Thread, cwd: str) -> str:
    if thread.git_origin_url and cwd.startswith(thread.cwd):
        name = thread.git_origin_url.rstrip("/").removesuffix(".git").replace(":", "/").rpartition("/")[2]
        if name:
            return clip(_one_line(name), 120)
    return clip(_one_line(cwd.rstrip("/").rpartition("/")[2] or "unknown"), 120)


def _relative(path: str, cwd: str) -> str:
    return clip(path.removeprefix(cwd.rstrip("/") + "/"), 160)


def _distinct(found: Sequence[Sentence]) -> list[Sentence]:
    """Without those that say nearly the same again."""
    kept: list[Sentence] = []
    keys: set[str] = set()
    near: deque[frozenset[str]] = deque(maxlen=_COMPARED)
    for one in found:
        own, key = terms(one.text), " ".join(one.text.casefold().split())
        if key in keys or (len(own) > 5 and any(len(own & other) > 0.85 * len(own | other) for other in near)):
            continue
        keys.add(key)
        near.append(own)
        kept.append(one)
    return kept
