"""Where in each agent's records the user's words stand: all texts are marked, and most marks must not come back."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from corpus import CORPUS, Sample
from golden import LIMIT

from stillroom.homes import HOMES
from stillroom.sessions.discovery import Found
from stillroom.sessions.events import Said, read_events
from stillroom.sessions.readers import open_thread, reader_of

#: By agent, the fields that a person's words may come from. All else is the harness's, an agent's or a tool's.
PLACES = {
    "codex": {"payload.content.text"},
    "claude-code": {"message.content"},
    "opencode": {"text"},
    "gemini-cli": {"content.text", "displayContent.text"},
    "qwen-code": {"message.parts.text"},
    "copilot-cli": {"data.content"},
    "pi": {"message.content.text"},
    "openhands": {"llm_message.content.text"},
    "continue": {"history.message.content"},
    "cline": {"messages.content.text"},
    "letta-code": {"content.text"},
    "kimi-code": {"message.content.text"},
    "cursor": {"message.content.text"},
    "stillroom": {"payload.content.text"},
    "langchain": {"data.content"},
    "chat-messages": {"content", "messages.content"},
    "atif": {"steps.message"},
    "pydantic-ai": {"parts.content"},
    "otel-genai": {"attributes.pydantic_ai.all_messages.$.parts.content"},
    "swe-agent": set[str](),
    "inspect-ai": set[str](),
}
#: Not JSON in files: their golden tests tell who said what.
ELSEWHERE = {"aider", "openai-agents"}
IN_FILES = [sample for sample in CORPUS if not any(path.suffix in {".sql", ".md"} for path in sample.files())]
#: By these a reader knows what a record is.
_STRUCTURE = frozenset(
    {"type", "id", "uuid", "parentUuid", "timestamp", "sessionId", "cwd", "version", "role", "kind", "name", "status"}
)
_MARK = re.compile(r"MARK(\d+)K")


class Marks:
    """The marks that were put into texts, by the place of each and what stood there."""

    def __init__(self) -> None:
        self.places: list[tuple[str, str]] = []

    def put(self, value: Any, place: tuple[str, ...] = ()) -> Any:
        """The same with a mark ahead of the last word of every text; JSON in a text is gone into."""
        if isinstance(value, dict):
            return {
                name: part if name in _STRUCTURE else self.put(part, (*place, name)) for name, part in value.items()
            }
        if isinstance(value, list):
            return [self.put(part, place) for part in value]
        if not isinstance(value, str) or " " not in value.strip():
            return value
        if value.startswith(("{", "[")):
            try:
                return json.dumps(self.put(json.loads(value), (*place, "$")))
            except ValueError:
                pass
        self.places.append((".".join(place), value))
        at = value.rstrip().rindex(" ")
        return f"{value[:at]} MARK{len(self.places) - 1}K{value[at:]}"

    def put_into(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        try:
            if path.suffix == ".jsonl":
                text = "".join(json.dumps(self.put(json.loads(line))) + "\n" for line in text.splitlines() if line)
            elif path.suffix == ".json":
                text = json.dumps(self.put(json.loads(text)))
        except ValueError:
            return
        path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("sample", IN_FILES, ids=str)
def test_the_users_words_come_from_where_a_person_types_and_nowhere_else(sample: Sample, tmp_path: Path) -> None:
    home, marks = sample.put(tmp_path), Marks()
    for path in home.rglob("*.json*"):
        marks.put_into(path)
    said = [
        marks.places[int(number)]
        for found in reader_of(sample.agent).discover(home, {}, max_line_bytes=LIMIT)
        if isinstance(found, Found)
        for text in user_texts(found)
        for number in _MARK.findall(text)
    ]
    assert {place for place, _ in said} <= PLACES[sample.agent]
    assert not [text for _, text in said if len(text) > 400]  # nobody typed that much in a sample
    assert len(marks.places) > 3 * len(said)


def test_of_every_agent_it_is_known() -> None:
    assert PLACES.keys() | ELSEWHERE == HOMES.keys()


def user_texts(found: Found) -> list[str]:
    with open_thread(found.thread, max_line_bytes=LIMIT) as items:
        return [event.text for event in read_events(items) if isinstance(event, Said) and event.who == "user"]
