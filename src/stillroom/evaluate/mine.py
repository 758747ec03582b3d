"""One's own sessions as a measure: what had to be said twice, what failed again, what of the memory was used.

Sessions and memory are read where they are; nothing is written, and no text leaves the machine. Words are compared, not
meanings: every count comes with examples to judge it by.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from stillroom.clock import DAY_SECONDS, Clock
from stillroom.config import Settings
from stillroom.errors import RolloutError
from stillroom.evaluate.chats import content_words
from stillroom.evaluate.labels import bullets_of, failure_bullets
from stillroom.progress import Progress, ProgressListener, silent
from stillroom.recall.projects.repository import Repository, identify, same_project
from stillroom.sessions.events import Ran, Said, read_events
from stillroom.sessions.pasted import own_sentences, own_words
from stillroom.sessions.readers import open_thread
from stillroom.store import Store
from stillroom.store.records import Stage1Output
from stillroom.thread import Thread

#: A shorter sentence says too little to be known again ("run the tests please").
_MIN_WORDS = 4
_MAX_WORDS = 60
#: A longer message is a text that somebody wrote down, not something said.
_MOST_MESSAGE_CHARS = 1_500
#: A message that has so many sentences of one earlier session is a template ("/implement …").
_TEMPLATE = 3
#: Two sentences say the same when they share so much of the shorter and of the longer one, and all numbers.
_OF_SHORTER, _OF_LONGER = 0.75, 0.6
#: A line of memory holds a sentence when it has so much of its words.
_HELD = 0.7
#: An error is known again by so much of what memory quotes of it.
_SAME_ERROR = 0.8
_MIN_ERROR_WORDS = 3
#: A word that more sentences of a project have finds none of them.
_COMMON = 200
_OUTPUT_CHARS = 4_000
_SENTENCES = 400  #: of a session
_MOST_SESSIONS = 2_000

_ERROR = re.compile(
    r'fail(?:s|ed)? with "([^"]+)"|failed(?: \(exit \d+\))?: ([^|]+)|"([^"]*(?:[Ee]rror|not found|denied)[^"]*)"'
)
_CURE = re.compile(
    r"^(?:Run|Fix|Use|Set|Add|Start|Install)\b|fixed in|what (?:worked|helped)|then (?:it )?passed|`[^`]*` passed"
)
#: Headings, what leads in a list, and questions: none of them is a thing to remember.
_NOT_SAID = re.compile(r"^#|[:：]$|[?？]\W*$|[吗嗎呢か][。.]?$")
_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])")
_CODE = re.compile(r"`([^`\n]{2,200})`")

Held = Literal["told", "evidence", "late", "no"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidAgain:
    """A sentence of the person near one that they had said in an earlier session of the same project."""

    project: str
    thread_id: str
    said: str
    first_thread_id: str
    first_said: str
    #: Whether memory held it when the later session began: `late` is held only since then.
    held: Held


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedAgain:
    """A failure that came in a session although memory held its cure."""

    project: str
    thread_id: str
    line: str
    command: str
    cured: bool  #: what the line tells was run, or edited, afterwards


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """A command of a told line that worked in a session that could have been given it."""

    project: str
    thread_id: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mine:
    """What one's own sessions tell of the memory."""

    sessions: int
    unreadable: int
    projects: int
    sentences: int  #: of the person, long enough to be known again
    with_memory: int  #: sessions that began when memory held something of their project
    again: tuple[SaidAgain, ...]
    failed_again: tuple[FailedAgain, ...]
    memories: int  #: sessions that memory holds something of
    cited: int  #: of these: cited by a later session
    citations: int
    commands: int  #: commands that told lines name
    followed: tuple[Followed, ...]

    def again_by(self) -> Counter[Held]:
        """How often something was said again, by whether memory held it."""
        return Counter(each.held for each in self.again)

    def table(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "again_by": dict(self.again_by())}


@dataclass(slots=True)
class _Session:
    thread: Thread
    #: With their words, and the number of their message.
    sentences: list[tuple[str, frozenset[str], int]] = field(default_factory=list)
    runs: list[Ran] = field(default_factory=list)


@dataclass(slots=True)
class _Line:
    """A bullet of memory, with when it could be given."""

    text: str
    words: frozenset[str]
    output: Stage1Output
    told: bool

    def before(self, session: _Session) -> bool:
        """Whether it rests on what had been said when a session began."""
        return self.output.source_updated_at < session.thread.created_at_ms // 1000

    def known_to(self, session: _Session) -> bool:
        """Whether memory had it by then."""
        return self.before(session) and self.output.generated_at <= session.thread.created_at_ms // 1000


def measure_mine(
    settings: Settings, store: Store, clock: Clock, *, days: int, on_progress: ProgressListener = silent
) -> Mine:
    """Read the sessions of the last days, oldest first, and hold each against those before it and the memory."""
    since_ms = (clock.now() - days * DAY_SECONDS) * 1000
    threads = [each for each in store.threads.newest(limit=_MOST_SESSIONS) if _is_a_persons(each, since_ms)]
    sessions: list[_Session] = []
    for number, thread in enumerate(reversed(threads)):
        on_progress(Progress(stage="evaluate", done=number, total=len(threads)))
        try:
            sessions.append(_read(thread, settings))
        except RolloutError:
            continue
    on_progress(Progress(stage="evaluate", done=len(threads), total=len(threads)))
    sessions.sort(key=lambda each: (each.thread.created_at_ms, each.thread.thread_id))
    outputs = [output for stamp in store.outputs.stamps() if (output := store.outputs.get(stamp.thread_id))]
    again: list[SaidAgain] = []
    failed: list[FailedAgain] = []
    followed: list[Followed] = []
    projects = _by_project(sessions, outputs)
    commands = with_memory = 0
    for name, own, made in projects:
        lines = [line for output in made for line in _lines(output)]
        again += _said_again(name, own, lines)
        failed += _failed_again(name, own, made)
        told = {code: line for line in lines if line.told for code in _commands(line.text)}
        commands += len(told)
        followed += _followed(name, own, told)
        with_memory += sum(any(line.known_to(session) for line in lines) for session in own)
    return Mine(
        sessions=len(sessions),
        unreadable=len(threads) - len(sessions),
        projects=len(projects),
        sentences=sum(len(session.sentences) for session in sessions),
        with_memory=with_memory,
        again=tuple(again),
        failed_again=tuple(failed),
        memories=len(outputs),
        cited=sum(output.usage_count > 0 for output in outputs),
        citations=sum(output.usage_count for output in outputs),
        commands=commands,
        followed=tuple(followed),
    )


def _is_a_persons(thread: Thread, since_ms: int) -> bool:
    """Sessions that a person had and lets be remembered."""
    return thread.updated_at_ms >= since_ms and thread.memory_mode == "enabled" and thread.parent_thread_id is None


def _read(thread: Thread, settings: Settings) -> _Session:
    with open_thread(thread, max_line_bytes=settings.stage_one.max_line_bytes) as items:
        events = read_events(items, max_output_chars=_OUTPUT_CHARS)
    session = _Session(thread)
    seen: set[frozenset[str]] = set()
    for number, event in enumerate(events):
        if isinstance(event, Ran):
            session.runs.append(event)
        elif event.who == "user" and len(session.sentences) < _SENTENCES:
            for sentence in _sentences(event):
                words = frozenset(content_words(sentence))
                if _MIN_WORDS <= _weight(words) <= _MAX_WORDS and words not in seen:
                    seen.add(words)
                    session.sentences.append((sentence, words, number))
    return session


def _weight(words: Iterable[str]) -> float:
    """How much is said: a number is nothing, two characters of a text without spaces are half a word."""
    return sum(0.5 if len(word) == 2 and ord(word[0]) > 0x3000 else 1 for word in words if not word.isdigit())


def _sentences(said: Said) -> Iterator[str]:
    for part in own_words(said.text) if len(said.text) <= _MOST_MESSAGE_CHARS else ():
        for line in part.splitlines():
            for own in own_sentences(line):
                sentences = (sentence.strip() for sentence in _END.split(own))
                yield from (each for each in sentences if each and not _NOT_SAID.search(each))


def _by_project(
    sessions: Sequence[_Session], outputs: Sequence[Stage1Output]
) -> list[tuple[str, list[_Session], list[Stage1Output]]]:
    """The sessions of each project, with what memory holds of it."""
    known: list[Repository] = []
    places: dict[str, int] = {}

    def place(cwd: str) -> int:
        if cwd not in places:
            here = identify(cwd)
            found = next((at for at, other in enumerate(known) if same_project(here, other)), len(known))
            if found == len(known):
                known.append(here)
            places[cwd] = found
        return places[cwd]

    own: dict[int, list[_Session]] = defaultdict(list)
    made: dict[int, list[Stage1Output]] = defaultdict(list)
    for session in sessions:
        own[place(session.thread.cwd)].append(session)
    for output in outputs:
        made[place(output.cwd)].append(output)
    return [(known[at].folder.rsplit("/", 1)[-1], own[at], made[at]) for at in sorted(own)]


def _lines(output: Stage1Output) -> Iterator[_Line]:
    for text, told in ((output.raw_memory, True), (output.rollout_summary, False)):
        for line in dict.fromkeys(bullets_of(text)):
            yield _Line(line, frozenset(content_words(line)), output, told)


def _said_again(project: str, sessions: Sequence[_Session], lines: Sequence[_Line]) -> Iterator[SaidAgain]:
    """Each sentence that is near one of an earlier session, with the first of these."""
    said: list[tuple[str, frozenset[str], _Session]] = []
    having: dict[str, list[int]] = defaultdict(list)
    for session in sessions:
        near = [(*each, _nearest(each[1], said, having)) for each in session.sentences]
        templates = Counter((message, said[at][2].thread.thread_id) for _, _, message, at in near if at is not None)
        for sentence, words, message, at in near:
            if at is None or templates[message, said[at][2].thread.thread_id] >= _TEMPLATE:
                continue
            yield SaidAgain(
                project=project,
                thread_id=session.thread.thread_id,
                said=sentence,
                first_thread_id=said[at][2].thread.thread_id,
                first_said=said[at][0],
                held=_held(words, session, lines),
            )
        for sentence, words, _ in session.sentences:
            for word in words:
                having[word].append(len(said))
            said.append((sentence, words, session))


def _nearest(
    words: frozenset[str], said: Sequence[tuple[str, frozenset[str], _Session]], having: dict[str, list[int]]
) -> int | None:
    shared = Counter(at for word in words if len(having.get(word, ())) <= _COMMON for at in having.get(word, ()))
    for at, _ in sorted(shared.items(), key=lambda each: (-each[1], each[0]))[:20]:
        both, shorter, longer = len(words & said[at][1]), *sorted((len(words), len(said[at][1])))
        numbers = {word for word in words ^ said[at][1] if word.isdigit()}
        if both >= _OF_SHORTER * shorter and both >= _OF_LONGER * longer and not numbers:
            return at
    return None


def _held(words: frozenset[str], session: _Session, lines: Iterable[_Line]) -> Held:
    """The best that can be said of memory: it told it, it had it as evidence, it has it since, or it hasn't."""
    found: set[Held] = set()
    for line in lines:
        if line.before(session) and len(words & line.words) >= _HELD * len(words):
            found.add(("told" if line.told else "evidence") if line.known_to(session) else "late")
    return next((held for held in ("told", "evidence", "late") if held in found), "no")


def _failed_again(project: str, sessions: Sequence[_Session], outputs: Sequence[Stage1Output]) -> Iterator[FailedAgain]:
    """Each cure of memory, in each session that began with it and had its error all the same."""
    for output in outputs:
        for text in dict.fromkeys(failure_bullets(output.raw_memory)):
            error = _error_of(text)
            if len(error) < _MIN_ERROR_WORDS or not _CURE.search(text):
                continue
            line = _Line(text, frozenset(), output, told=True)
            for session in sessions:
                if line.known_to(session) and (at := _failure(session, error)) is not None:
                    yield FailedAgain(
                        project=project,
                        thread_id=session.thread.thread_id,
                        line=text,
                        command=session.runs[at].command or session.runs[at].tool,
                        cured=_was_cured(text, session.runs[at + 1 :]),
                    )


def _error_of(line: str) -> frozenset[str]:
    found = _ERROR.search(line)
    return frozenset(content_words(next(filter(None, found.groups())))) if found else frozenset()


def _failure(session: _Session, error: frozenset[str]) -> int | None:
    for at, run in enumerate(session.runs):
        if _failed(run) and len(error & content_words(run.output)) >= _SAME_ERROR * len(error):
            return at
    return None


def _failed(run: Ran) -> bool:
    return run.ok is False or bool(run.exit_code)


def _was_cured(line: str, later: Iterable[Ran]) -> bool:
    """Whether something that the line names in backticks was run with success, or edited, afterwards."""
    named = set(_CODE.findall(line))
    for run in later:
        if _failed(run):
            continue
        if any(_same_command(run.command, name) for name in named):
            return True
        if any(edit.path.endswith(name) for edit in run.edits for name in named):
            return True
    return False


def _same_command(ran: str | None, named: str) -> bool:
    return ran is not None and " " in named and " ".join(named.split()) in " ".join(ran.split())


def _commands(line: str) -> list[str]:
    """What looks like a command in a line: several words in backticks."""
    return [code for code in _CODE.findall(line) if re.match(r"[\w./-]+ [\w./-]", code)]


def _followed(project: str, sessions: Sequence[_Session], told: dict[str, _Line]) -> Iterator[Followed]:
    for session in sessions:
        known = [code for code, line in told.items() if line.known_to(session)]
        for code in known:
            if any(not _failed(run) and _same_command(run.command, code) for run in session.runs):
                yield Followed(project=project, thread_id=session.thread.thread_id, command=code)
