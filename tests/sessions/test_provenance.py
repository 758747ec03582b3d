from __future__ import annotations

from pathlib import Path

import pytest

from stillroom.homes import HOMES
from stillroom.sessions.discovery import Found
from stillroom.sessions.events import Said, read_events
from stillroom.sessions.item import MESSAGES, Item
from stillroom.sessions.provenance import provenance_of
from stillroom.sessions.readers import open_thread, reader_of

DATA = Path(__file__).parents[1] / "data"
LIMIT = 8 * 1024 * 1024


def message(role: str, *texts: str) -> Item:
    content = ",".join(f'{{"type":"input_text","text":"{text}"}}' for text in texts)
    return Item("message", role, f'{{"type":"message","role":"{role}","content":[{content}]}}'.encode(), None, 1)


@pytest.mark.parametrize(
    ("item", "provenance"),
    [
        (message("user", "Use tabs."), "user"),
        (message("user", "<environment_context>x</environment_context>", "Use tabs."), "user"),
        (message("user", "<environment_context>x</environment_context>"), "harness"),
        (message("user", "<subagent_notification>done</subagent_notification>"), "agent"),
        (message("developer", "Be brief."), "harness"),
        (message("assistant", "<environment_context>"), "assistant"),
        (Item("message", "user", b'{"content":7}', None, 1), "harness"),
        (Item("agent_message", None, b"{}", None, 1), "agent"),
        (Item("function_call", None, b"{}", None, 1), "assistant"),
        (Item("web_search_call", None, b"{}", None, 1), "assistant"),
        (Item("function_call_output", None, b"{}", None, 1), "tool"),
        (Item("tool_search_output", None, b"{}", None, 1), "tool"),
    ],
)
def test_an_item_says_where_it_comes_from(item: Item, provenance: str) -> None:
    assert provenance_of(item) == provenance


@pytest.mark.parametrize("agent", sorted(path.name for path in DATA.iterdir() if path.name in HOMES))
def test_what_every_sample_says_has_one_origin_whether_items_or_events_are_asked(agent: str) -> None:
    for home in sorted(path for path in (DATA / agent).iterdir() if path.is_dir()):
        for found in reader_of(agent).discover(home, {}, max_line_bytes=LIMIT):
            assert isinstance(found, Found)
            with open_thread(found.thread, max_line_bytes=LIMIT) as items:
                everything = list(items)
            assert items.stats.messages == sum(item.type in MESSAGES for item in everything)
            with open_thread(found.thread, max_line_bytes=LIMIT) as joined:
                assert sum(len(text) + 1 for text in joined.texts()) == sum(len(item.raw) + 1 for item in everything)
            assert (joined.stats.kept, joined.stats.messages) == (items.stats.kept, items.stats.messages)
            for item in everything:
                said = {event.who for event in read_events([item]) if isinstance(event, Said)}
                expected = {provenance_of(item)} if item.type in {"message", "agent_message"} else set()
                assert said == expected or (len(said) > 1 and provenance_of(item) in said)
