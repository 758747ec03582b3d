"""What an agent of one's own records is a rollout that every pass finds, whatever happened while it was written."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from stillroom import Recorder, Usage, load_settings
from stillroom.clock import FixedClock
from stillroom.errors import RecordingError
from stillroom.extract.register import register_threads
from stillroom.sessions.discovery import Found
from stillroom.sessions.events import Ran, Said, read_events
from stillroom.sessions.readers import open_thread, reader_of
from stillroom.store import Store
from stillroom.thread import Thread

LIMIT = 8 * 1024 * 1024
SOURCE = Path(__file__).parents[2] / "src"
TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(1_795_954_573_000)


def threads(home: Path) -> dict[str, Thread]:
    found = list(reader_of("stillroom").discover(home, {}, max_line_bytes=LIMIT))
    assert all(isinstance(each, Found) for each in found), found
    return {each.thread.thread_id: each.thread for each in found if isinstance(each, Found)}


def events(thread: Thread) -> list[Said | Ran]:
    with open_thread(thread, max_line_bytes=LIMIT) as items:
        read = read_events(items)
        assert not items.stats.unknown
        return read


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def test_what_is_recorded_is_read_back_with_who_said_it_and_how_it_ended(tmp_path: Path, clock: FixedClock) -> None:
    with Recorder("shop-bot", cwd="/shop", version="3.1", home=tmp_path, clock=clock) as recorder:
        assert not recorder.path.exists()  # nothing was said yet
        recorder.user("Run the tests.", "Be quick.")
        clock.advance(seconds=2)
        failed = recorder.tool_call("shell", {"command": "make test", "workdir": "/shop"})
        recorder.tool_result(failed, "1 failed", exit_code=2)
        refused = recorder.tool_call("fetch", '{"url": "http://x"}', call_id="mine")
        recorder.tool_result(refused, {"error": "refused"}, ok=False)
        recorder.tool_result(recorder.tool_call("look"), ["a", 1])
        recorder.from_agent("The cause is in money.py.", author="reviewer")
        recorder.assistant("One test fails.")
    (thread,) = threads(tmp_path).values()
    assert thread == Thread(
        thread_id=recorder.thread_id,
        agent="stillroom",
        rollout_path=str(recorder.path),
        source="cli",
        cwd="/shop",
        created_at_ms=1_795_954_573_000,
        updated_at_ms=1_795_954_575_000,
        preview="Run the tests. Be quick.",
        cli_version="shop-bot 3.1",
    )
    shell, fetch, look = (event for event in events(thread) if isinstance(event, Ran))
    assert (shell.command, shell.workdir, shell.exit_code, shell.output) == ("make test", "/shop", 2, "1 failed")
    assert (refused, fetch.ok, json.loads(fetch.output)) == ("mine", False, {"error": "refused"})
    assert (look.ok, json.loads(look.output)) == (None, ["a", 1])
    assert [(event.who, event.text) for event in events(thread) if isinstance(event, Said)] == [
        ("user", "Run the tests.\nBe quick."),
        ("agent", "The cause is in money.py."),
        ("assistant", "One test fails."),
    ]
    first = lines(recorder.path)[0]
    assert first["type"] == "session_meta" and first["payload"]["originator"] == "shop-bot"  # type: ignore[index]
    assert {line["type"] for line in lines(recorder.path)[1:]} == {"response_item"}


def test_the_file_and_its_folders_are_for_their_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with Recorder("bot", home=tmp_path / "new" / "home") as recorder:
            recorder.user("hello")
    finally:
        os.umask(before)
    assert recorder.path.stat().st_mode & 0o777 == 0o600
    folders = [folder for folder in recorder.path.parents if folder.is_relative_to(tmp_path) and folder != tmp_path]
    assert len(folders) == 6
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}


def test_a_pass_finds_it_without_any_setting_and_beside_chosen_sources(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(
        "memories.default_sources = false\n"
        f'[[sources]]\nformat = "codex"\nroot = {json.dumps(str(tmp_path / "none"))}\n'
    )
    with Recorder("bot", home=home) as recorder:
        recorder.user("Use tabs, never spaces.")
    settings, clock = load_settings(home=home), FixedClock(2_000_000_000_000)
    with Store.open(settings.database, clock=clock) as store:
        first = asyncio.run(register_threads(settings, store))
        again = asyncio.run(register_threads(settings, store))
        thread = store.threads.get(recorder.thread_id)
    assert (first.found, again.found, again.unchanged) == (1, 0, 1)
    assert thread is not None and (thread.agent, thread.preview) == ("stillroom", "Use tabs, never spaces.")


def test_a_sub_agent_has_a_thread_of_its_own_in_which_nobody_speaks(tmp_path: Path) -> None:
    with Recorder("lead", home=tmp_path, thread_id="ticket-7") as lead, lead.child("scout", task="Find it.") as scout:
        scout.user("Hurry.")
        scout.assistant("Found.")
    found = threads(tmp_path)
    assert set(found) == {scout.thread_id}  # nothing was recorded of the lead itself
    child = found[scout.thread_id]
    assert child.parent_thread_id == "ticket-7" and "subagent" in child.source and child.preview == ""
    assert [event.who for event in events(child) if isinstance(event, Said)] == ["agent", "agent", "assistant"]


def test_a_thread_goes_on_under_its_name_behind_a_torn_line_with_its_tokens(tmp_path: Path, clock: FixedClock) -> None:
    with Recorder("bot", thread_id="chat:42", home=tmp_path, clock=clock) as recorder:
        recorder.user("one")
        recorder.usage(Usage(input_tokens=10, output_tokens=3))
    with recorder.path.open("ab") as file:
        file.write(b'{"timestamp":"2026-11-29T12:16:14.000Z","type":"response_it')
    clock.advance(seconds=86_400)
    with Recorder("bot", thread_id="chat:42", home=tmp_path, clock=clock) as again:
        again.user("two")
        again.usage(Usage(input_tokens=5, cached_input_tokens=4))
    assert again.path == recorder.path
    (thread,) = threads(tmp_path).values()
    with open_thread(thread, max_line_bytes=LIMIT) as items:
        assert [event.text for event in read_events(items) if isinstance(event, Said)] == ["one", "two"]
        assert items.stats.bad_lines == 1
    counted = json.loads(again.path.read_bytes().splitlines()[-1])["payload"]["info"]
    assert counted["total_token_usage"]["input_tokens"] == 15 and counted["total_token_usage"]["total_tokens"] == 18
    assert counted["last_token_usage"]["cached_input_tokens"] == 4


@pytest.mark.parametrize("left", [0, 1, 40])
def test_a_thread_whose_first_line_was_torn_tells_again_whose_it_is(tmp_path: Path, left: int) -> None:
    with Recorder("bot", thread_id="t", home=tmp_path) as recorder:
        recorder.user("one")
    recorder.path.write_bytes(recorder.path.read_bytes()[:left])
    with Recorder("bot", thread_id="t", home=tmp_path) as again:
        again.user("two")
    assert threads(tmp_path)["t"].preview == "two"


def test_many_threads_write_whole_lines(tmp_path: Path) -> None:
    with Recorder("bot", home=tmp_path) as recorder:

        def work(number: int) -> None:
            for at in range(50):
                recorder.user(f"{number}/{at} " + "word " * 2000)
                recorder.usage(Usage(output_tokens=1))

        workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    written = lines(recorder.path)
    totals = [
        line["payload"]["info"]["total_token_usage"]["output_tokens"]  # type: ignore[index]
        for line in written
        if line["type"] == "event_msg"
    ]
    assert len(written) == 1 + 400 and totals == list(range(1, 201))


def test_blobs_secrets_and_what_json_has_no_word_for_stay_out(tmp_path: Path) -> None:
    picture = "data:image/png;base64," + "QUJD" * 5000
    with Recorder("bot", home=tmp_path) as recorder:
        recorder.user(f"My token is {TOKEN}, and \ud800 is half a pair.")
        call = recorder.tool_call("show", {"data": b"\0" * 9000, "image": picture, "raw": "QUJD" * 5000, 1: object()})
        recorder.tool_result(call, "x y " * 400_000)
        recorder.item(
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "many words " * 36_000}] * 20,
            }
        )
    assert recorder.path.stat().st_size < 2_000_000
    text = recorder.path.read_text(encoding="utf-8")
    assert TOKEN not in text and "[REDACTED_SECRET:github_token]" in text
    assert "[image omitted: 20000 bytes]" in text and "[blob: 12000 bytes]" in text and "[blob: 20000 bytes]" in text
    (thread,) = threads(tmp_path).values()
    assert "bytes cut" in text and len(events(thread)) == 3
    assert "record omitted" in text


def test_secrets_stay_where_they_are_wanted(tmp_path: Path) -> None:
    with Recorder("bot", home=tmp_path, redaction=None) as recorder:
        recorder.user(TOKEN)
    assert TOKEN in recorder.path.read_text(encoding="utf-8")


def test_what_cannot_be_recorded_says_why(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="is no thread id"):
        Recorder("bot", thread_id="../../etc", home=tmp_path)
    (tmp_path / "sessions").write_text("not a folder")
    recorder = Recorder("bot", home=tmp_path)
    with pytest.raises(RecordingError, match="can't be written"):
        recorder.user("hello")
    recorder.close()
    with pytest.raises(RecordingError, match="is closed"):
        recorder.user("hello")


@pytest.mark.skipif(sys.platform == "win32", reason="no limits there")
def test_a_full_disk_costs_the_record_at_hand_and_no_other(tmp_path: Path) -> None:
    import resource

    recorder = Recorder("bot", thread_id="t", home=tmp_path)
    recorder.user("one")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (recorder.path.stat().st_size + 100, before[1]))
    try:
        with pytest.raises(RecordingError):
            recorder.user("word " * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    recorder.user("three")
    recorder.close()
    with open_thread(threads(tmp_path)["t"], max_line_bytes=LIMIT) as items:
        assert [event.text for event in read_events(items) if isinstance(event, Said)] == ["one", "three"]


@pytest.mark.slow
def test_a_killed_process_leaves_a_thread_that_goes_on(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom stillroom import Recorder\nrecorder = Recorder('bot', thread_id='t')\n"
        "for number in range(10**9):\n    recorder.user(f'{number} ' + 'word ' * 5000)\n    print(number, flush=True)"
    )
    environment = {"PYTHONPATH": str(SOURCE), "STILLROOM_HOME": str(tmp_path)}
    worker = subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    for _ in range(200):
        said = int(worker.stdout.readline())
    worker.kill()
    worker.wait(timeout=60)
    worker.stdout.close()
    with Recorder("bot", thread_id="t", home=tmp_path) as recorder:
        recorder.user("after")
    texts = [event.text for event in events(threads(tmp_path)["t"]) if isinstance(event, Said)]
    numbers = [int(text.split()[0]) for text in texts[:-1]]
    assert numbers == list(range(len(numbers))) and len(numbers) > said and texts[-1] == "after"


@pytest.mark.slow
def test_importing_the_recorder_imports_nothing_heavy() -> None:
    code = "import sys\nfrom stillroom import Recorder\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert not {"pydantic", "pydantic_ai", "openai", "argparse", "rich", "sqlite3", "asyncio"} & set(
        done.stdout.split()
    )
