"""Public sets of chats with questions: how much of the answers a memory of the chats holds.

Each loader reads its set as its authors publish it. None of them ships with Stillroom.

**Counted** is the share of an answer's words that stand in the memory of the chats that the answer is in: words of the
answer without function words, each once, as they are (case, accents and the ending `s` apart); the mean over the
questions. Questions whose right answer is "not mentioned" are left out of it. No model judges anything.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from stillroom.errors import ConfigError
from stillroom.evaluate.scenario import Block, Scenario

#: Words that say nothing of an answer's matter.
_FUNCTION_WORDS = """
a about after again all also an and any are as at be because been before being between both but by can cannot
could did do does doing each e.g etc for from further had has have having he her here him his how i if in into is
it its itself just more most no nor not now of off on once only or other our out over own s same she should so
some such t than that the their them then there these they this those through to too under until up used uses
using very was we were what when where which while who why will with would you your via
"""
_SAYS_NOTHING = frozenset(_FUNCTION_WORDS.split())
_WORD = re.compile(r"[^\W_]+(?:[._/:@#+-][^\W_]+)*", re.UNICODE)
_PART = re.compile(r"[^\W_]+", re.UNICODE)
#: Written without spaces: known by every two characters.
_DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What one side said, or what a tool put out."""

    role: str  #: `user`, `assistant`, or `tool`
    content: str
    tool: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """One session of a public set."""

    id: str
    project: str
    started: datetime
    messages: tuple[Message, ...]

    def scenario(self) -> Scenario:
        """The chat as a session that Codex recorded."""
        marks = {"user": "u", "assistant": "c", "tool": "t"}
        blocks: list[Block] = []
        for message in self.messages:
            name = re.sub(r"\W+", "_", message.tool)
            said = (f"{name} {{}}", message.content) if message.role == "tool" else (message.content, "")
            blocks.append((marks[message.role], *said))
        return Scenario(
            name=self.id,
            language="en",
            cwd=f"/home/dev/{self.project}",
            started=self.started,
            script="",
            tools="exec_command",
            source="cli",
            branch="main",
            origin=None,
            table={},
            said=tuple(blocks),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question, its answer, and the chats that the answer is in. None: nothing was said of it."""

    id: str
    kind: str
    question: str
    answer: str
    chats: tuple[str, ...]
    forbidden: tuple[str, ...] = ()  #: texts that must not be in the memory of those chats


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSet:
    """A public set."""

    name: str
    chats: tuple[Chat, ...]
    questions: tuple[Asked, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """How much of the answers some text holds. The text of each chat is looked at for the questions that rest on it."""

    questions: int
    share: float  #: mean share of the answers' words
    whole: int  #: questions of whose answers at least nine words of ten are there
    kinds: Mapping[str, float] = field(default_factory=dict)
    forbidden: int = 0
    kept: int = 0


def held(chats: ChatSet, texts: Mapping[str, str], *, by_question: bool = False) -> Held:
    """Measure `texts` against the answers. There is one a chat, or one a question where they are `by_question`."""
    shares: dict[str, list[float]] = {}
    forbidden = kept = 0
    for asked in chats.questions:
        places = (asked.id,) if by_question else asked.chats
        text = "\n".join(dict.fromkeys(texts.get(place, "") for place in places))
        forbidden += len(asked.forbidden)
        kept += sum(phrase.lower() in text.lower() for phrase in asked.forbidden)
        if wanted := content_words(asked.answer):
            shares.setdefault(asked.kind, []).append(len(wanted & content_words(text)) / len(wanted))
    every = [share for group in shares.values() for share in group]
    return Held(
        questions=len(every),
        share=_mean(every),
        whole=sum(share >= 0.9 for share in every),
        kinds={kind: _mean(group) for kind, group in sorted(shares.items())},
        forbidden=forbidden,
        kept=kept,
    )


def content_words(text: str) -> set[str]:
    """The words of a text that carry its matter: `7-day` is itself, `7` and `day`.

    >>> sorted(content_words("The Tokens expire after a 7-day TTL."))
    ['7', '7-day', 'day', 'expire', 'token', 'ttl']
    """
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    plain = unicodedata.normalize("NFC", plain)  # Hangul in one piece again
    words = {run[at : at + 2] for run in _DENSE.findall(plain) for at in range(len(run) - 1)}
    for whole in _WORD.findall(_DENSE.sub(" ", plain)):
        for word in {whole, *_PART.findall(whole)}:
            stem = word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
            if not _SAYS_NOTHING & {stem, word}:
                words.add(stem)
    return words


def _mean(shares: Sequence[float]) -> float:
    return sum(shares) / len(shares) if shares else 1.0


def dev_mem_bench(folder: Path) -> ChatSet:
    """DevMemBench (MIT): 25 coding chats of two projects, 200 questions. `sessions.json` and `questions.json`."""
    chats = tuple(
        Chat(
            id=entry["sessionId"],
            project=entry["metadata"]["project"],
            started=_day(entry["metadata"]["date"]) + timedelta(hours=9),
            messages=tuple(Message(role=m["role"], content=m["content"]) for m in entry["messages"]),
        )
        for entry in _json(folder / "sessions.json")
    )
    questions = tuple(
        Asked(
            id=entry["questionId"],
            kind=entry["questionType"],
            question=entry["question"],
            # Of "not mentioned" no word can be in a memory.
            answer=entry["groundTruth"] if entry["haystackSessionIds"] else "",
            chats=tuple(entry["haystackSessionIds"]),
        )
        for entry in _json(folder / "questions.json")
    )
    return ChatSet(name="devmembench", chats=chats, questions=questions)


def remem(folder: Path) -> ChatSet:
    """remem's extraction corpus (MIT): 27 short transcripts with phrases that must, and must not, be remembered."""
    chats, questions = [], []
    for number, case in enumerate(_json(folder / "corpus.json")["cases"]):
        messages = tuple(
            Message(role="tool" if m.get("tool_name") else m["role"], content=m["content"], tool=m.get("tool_name", ""))
            for m in case["transcript"]
        )
        started = datetime(2026, 8, 3, 9, tzinfo=UTC) + timedelta(hours=number)
        chats.append(Chat(id=case["id"], project="remem", started=started, messages=messages))
        wanted = [*case["expected_observations"], *case.get("expected_candidates", [])]
        phrases = dict.fromkeys(text for entry in wanted for text in entry.get("text_contains", []))
        never = [*case.get("forbidden_observations", []), *case.get("forbidden_candidates", [])]
        questions.append(
            Asked(
                id=case["id"],
                kind=(wanted[0].get("observation_type") or "any") if wanted else "any",
                question=case["id"].replace("-", " "),
                answer=" ".join(phrases),
                chats=(case["id"],),
                forbidden=tuple(dict.fromkeys(text for entry in never for text in entry["text_contains"])),
            )
        )
    return ChatSet(name="remem", chats=tuple(chats), questions=tuple(questions))


def locomo(folder: Path) -> ChatSet:
    """LoCoMo (CC BY-NC: never shipped): ten long chats of two friends, for search. `locomo10.json`."""
    chats, questions = [], []
    for number, sample in enumerate(_json(folder / "locomo10.json")):
        told = sample["conversation"]
        of_turn: dict[str, str] = {}
        speaker = told["speaker_a"]
        for key in sorted((k for k in told if re.fullmatch(r"session_\d+", k)), key=lambda k: int(k[8:])):
            chat_id = f"{number}-{key}"
            of_turn.update({turn["dia_id"]: chat_id for turn in told[key]})
            messages = tuple(
                Message(
                    role="user" if turn["speaker"] == speaker else "assistant",
                    content=f"{turn['speaker']}: {turn['text']}",
                )
                for turn in told[key]
            )
            started = datetime(2023, 1, 1, 9, tzinfo=UTC) + timedelta(days=int(key[8:]))
            chats.append(Chat(id=chat_id, project=f"locomo-{number}", started=started, messages=messages))
        for at, entry in enumerate(sample["qa"]):
            places = dict.fromkeys(of_turn[turn] for turn in entry.get("evidence", []) if turn in of_turn)
            questions.append(
                Asked(
                    id=f"{number}-{at}",
                    kind=str(entry["category"]),
                    question=entry["question"],
                    answer=str(entry.get("answer", "")),
                    chats=tuple(places),
                )
            )
    return ChatSet(name="locomo", chats=tuple(chats), questions=tuple(questions))


def jsonl(folder: Path) -> ChatSet:
    """The simple form that `write_jsonl` writes, for sets of one's own: `sessions.jsonl` and `questions.jsonl`."""
    chats = tuple(
        Chat(
            id=row["id"],
            project=row["project"],
            started=datetime.fromisoformat(row["started"]),
            messages=tuple(Message(**message) for message in row["messages"]),
        )
        for row in _rows(folder / "sessions.jsonl")
    )
    questions = tuple(
        Asked(**{**row, "chats": tuple(row["chats"]), "forbidden": tuple(row.get("forbidden", ()))})
        for row in _rows(folder / "questions.jsonl")
    )
    return ChatSet(name=folder.name, chats=chats, questions=questions)


def write_jsonl(chats: ChatSet, folder: Path) -> None:
    """One JSON object a line: a session with its messages, a question with its answer and the sessions it is in."""
    folder.mkdir(parents=True, exist_ok=True)
    sessions = [{**asdict(chat), "started": chat.started.isoformat()} for chat in chats.chats]
    for name, rows in (("sessions", sessions), ("questions", [asdict(asked) for asked in chats.questions])):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")


#: The file that tells a set, and who reads it.
_LOADERS: tuple[tuple[str, Callable[[Path], ChatSet]], ...] = (
    ("sessions.jsonl", jsonl),
    ("questions.json", dev_mem_bench),
    ("corpus.json", remem),
    ("locomo10.json", locomo),
)


def load_chats(folder: Path) -> ChatSet | None:
    """The set in a folder, whichever it is. None: there is none. Raises `ConfigError` for one that can't be read."""
    for name, load in _LOADERS:
        if (folder / name).is_file():
            try:
                return load(folder)
            except (KeyError, TypeError, ValueError) as error:
                raise ConfigError(f"`{folder / name}` is not such a set: {error!r}") from error
    return None


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _rows(path: Path) -> Iterable[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _day(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
