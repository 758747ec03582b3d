"""Of every sample of every agent: what no person said is never taken for the user's words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from corpus import CORPUS, Sample
from golden import LIMIT

from stillroom.sessions.discovery import Found
from stillroom.sessions.events import Ran, Said, read_events
from stillroom.sessions.readers import open_thread, reader_of
from stillroom.thread import Thread

#: How clients, hooks and harnesses begin, or wrap, what they put into a person's place. Written out here once more, so
#: that a reader that loses one of them is found.
SCAFFOLDING = re.compile(
    r"""
      </?(?: system[-_]reminder | hook_context | session_context | loaded_context | hook_result | current_datetime
           | environment_details | environment_context | mode_notice | user_info | user_input | user_query
           | local-command-(?:stdout|stderr|caveat) | command-(?:name|message|args) | bash-(?:input|stdout|stderr)
           | task-notification | session-start-hook | qwen:[a-z-]+ | untrusted_context | persisted-output
           | user_instructions | instructions | skill | available_skills | tick | goal | stillroom-memory
           | analysis | summary | returncode | output | conversation_history | turn_aborted | user_shell_command )\b
    | Caveat:\ The\ messages\ below
    | \[Request\ interrupted\ by\ user
    | This\ session\ is\ being\ continued
    | Got\ it\.\ Thanks\ for\ the\ additional\ context!
    | Additional\ guidance\ from
    | MEMORY:\ past\ session
    | (?:CLAUDE|AGENTS|GEMINI|QWEN)\.md
    | \AWarmup\Z | \AThe\ user\ doesn't\ want\ to\ proceed | Exit\ [Cc]ode:?\ \d
    | ^Your\ task\ is\ to\ create\ a\ (?:detailed|comprehensive)\ summary
    """,
    re.VERBOSE | re.MULTILINE,
)
#: Shorter outputs of tools may also be a person's words.
OUTPUT_CHARS = 20


def threads_of(sample: Sample, home: Path) -> list[Thread]:
    found = reader_of(sample.agent).discover(home, {}, max_line_bytes=LIMIT)
    return [each.thread for each in found if isinstance(each, Found)]


def events_of(thread: Thread) -> list[Said | Ran]:
    with open_thread(thread, max_line_bytes=LIMIT) as items:
        return read_events(items)


@pytest.mark.parametrize("sample", CORPUS, ids=str)
def test_the_users_words_hold_no_scaffolding_no_output_and_no_task_of_a_sub_agent(
    sample: Sample, tmp_path: Path
) -> None:
    threads = threads_of(sample, sample.put(tmp_path))
    told = {thread.thread_id: events_of(thread) for thread in threads}
    outputs = [event.output for events in told.values() for event in events if isinstance(event, Ran)]
    between_agents = [
        event.text for events in told.values() for event in events if isinstance(event, Said) and event.who == "agent"
    ]
    for thread in threads:
        words = [event.text for event in told[thread.thread_id] if isinstance(event, Said) and event.who == "user"]
        assert not (words and (thread.parent_thread_id or "subagent" in thread.source)), words
        for text in (*words, thread.preview):
            assert SCAFFOLDING.search(text) is None
            assert not any(len(output) >= OUTPUT_CHARS and output in text for output in outputs)
            # In an evaluation the task is all that there is to show of a thread.
            assert text not in between_agents or (text == thread.preview and not words)


def test_the_samples_hold_what_is_looked_for() -> None:
    """Else the test above would show nothing."""
    texts = (path.read_bytes().decode("utf-8", "replace") for sample in CORPUS for path in sample.files())
    found = {match[0] for text in texts for match in SCAFFOLDING.finditer(text)}
    assert len(found) >= 30, sorted(found)
