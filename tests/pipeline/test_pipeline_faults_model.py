"""Models that answer badly or not at all, in both phases of whole passes over real HTTP."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TypeGuard

import msgspec
import pytest
from faulty_house import FaultyHouse, consolidated, fell_back, files

from stillroom.config import Memories, Provider, StageOne, StageTwo
from stillroom.consolidate.outcome import Failed, Skipped
from stillroom.extract.outcome import Failed as ThreadFailed
from stillroom.extract.outcome import ThreadOutcome
from stillroom.pipeline import PipelineReport
from stillroom.store import Store
from stillroom.testing import SAMPLE_MEMORY, LoopbackModel, RecordedRequest, Reply, Say, sample_rollout
from stillroom.testing.script import CallTool, CutOff, Hang, NeverEnd, Refuse, SendBytes, Status, StopShort

IMPATIENT = StageOne(
    request_attempts=1, request_timeout_seconds=1, local_timeout_seconds=1, connect_timeout_seconds=0.5
)
MINE = "Releases are cut on Tuesdays, by hand.\n"
WRITTEN = dict(SAMPLE_MEMORY)

BAD_IN_BOTH: dict[str, tuple[Reply, str]] = {
    "cut off": (CutOff(Say(SAMPLE_MEMORY)), "ended before|peer closed|Connection|incomplete"),
    "not json": (SendBytes(b"<html>502 Bad Gateway</html>", content_type="text/html"), "html|JSON|not|Invalid"),
    "empty body": (SendBytes(b""), "empty|JSON|not|Invalid"),
    "wrong protocol": (SendBytes(b'{"hello": "world"}'), "not|no |output|Invalid"),
    "null": (SendBytes(b"null"), "not|no |output|Invalid"),
    "bare array": (SendBytes(b"[]"), "not|no |output|Invalid"),
    "deep": (SendBytes(b"[" * 200_000), "JSON|not|recursion|Invalid"),
    "401": (Status(status=401, message="Incorrect API key provided"), "401|Incorrect API key"),
    "404": (Status(status=404, message="The model `x` does not exist", code="model_not_found"), "does not exist"),
    "redirect": (Status(status=302, headers={"location": "http://127.0.0.1:1/v1/responses"}), "302|redirect|onnect"),
    "500": (Status(status=500, message="oops"), "500|oops"),
    "429": (Status(status=429, message="slow down", headers={"retry-after": "0"}), "429|slow down"),
    "refusal": (Refuse(), "refus|can't help"),
    "hangs": (Hang(), "no complete reply"),
}
BAD_MEMORIES: dict[str, tuple[Reply, str]] = {
    "prose": (Say("I looked at the session and found nothing unusual."), "JSON"),
    "nothing": (Say(""), "no text"),
    "missing field": (Say({"raw_memory": "a"}), "rollout_summary|missing"),
    "wrong type": (Say({**WRITTEN, "raw_memory": ["a", "b"]}), "raw_memory|str"),
    "cut short": (StopShort(), "length|cut|limit|token"),
    "too long": (Say({**WRITTEN, "raw_memory": "x" * 200_000}), "200,"),
    "half a surrogate": (
        Say('{"raw_memory": "\\ud800", "rollout_summary": "b", "rollout_slug": "c"}'),
        "nothing of the form",
    ),
    "a tool": (CallTool("shell", {"command": "id"}), "no text|tool|function|empty|JSON"),
}


@pytest.fixture
def house(tmp_path: Path) -> FaultyHouse:
    return FaultyHouse(tmp_path)


def use(house: FaultyHouse, provider: Provider, *, offline_consolidation: bool, **stage_two: int) -> None:
    house.set(
        memories=Memories(
            extract_model="loopback:gpt-5-mini",
            consolidation_model="offline" if offline_consolidation else "loopback:gpt-5",
            jail="files",
        ),
        providers={"loopback": provider},
        stage_one=IMPATIENT,
        stage_two=StageTwo(**stage_two),
    )


def with_words_of_a_person(house: FaultyHouse) -> dict[str, bytes]:
    house.root.mkdir(parents=True)
    house.handbook.write_text(MINE, encoding="utf-8")
    return files(house.root)


def outcome_failed(outcome: ThreadOutcome) -> TypeGuard[ThreadFailed]:
    return isinstance(outcome, ThreadFailed)


def matches(reason: str, pattern: str) -> bool:
    return any(part in reason for part in pattern.split("|"))


def check_phase_1(house: FaultyHouse, report: PipelineReport, pattern: str) -> str:
    assert report.extract is not None
    [outcome] = report.extract.outcomes
    assert isinstance(outcome, ThreadFailed), outcome
    assert matches(outcome.reason, pattern), outcome.reason
    assert len(outcome.reason) < 1000
    assert report.failed
    assert isinstance(report.consolidate, Skipped | Failed) or report.consolidate is not None
    assert house.handbook.read_text(encoding="utf-8").count(MINE) == 1
    with Store.open(house.settings.database, clock=house.clock) as store:
        job = store.extraction.job(outcome.thread_id)
        calls = store.ledger.calls()
    assert job is not None
    assert (job.status, job.last_error) == ("error", outcome.reason)
    assert calls
    assert all(call.error for call in calls) or calls[0].outcome == "ok"
    return outcome.reason


def test_each_bad_answer_in_phase_1_fails_its_own_thread_with_the_reason(house: FaultyHouse) -> None:
    replies = BAD_IN_BOTH | BAD_MEMORIES
    for name in ("401", "404"):  # they end the pass: no other thread is asked about
        del replies[name]
    with_words_of_a_person(house)
    names: dict[str, str] = {}
    for number, name in enumerate(replies):
        names[sample_rollout(house.codex, size_bytes=1500, number=number).stem[-36:]] = name

    def answer(request: RecordedRequest) -> Reply:
        name = next((name for thread_id, name in names.items() if thread_id in request.user_text), None)
        return replies[name][0] if name else Say(SAMPLE_MEMORY)

    with LoopbackModel(answer) as server:
        use(house, server.provider(), offline_consolidation=True)
        report = house.run()
    assert report.failed
    assert report.extract is not None
    assert (report.extract.failed, report.extract.with_output) == (len(replies), 1)
    failures = {outcome.thread_id: outcome.reason for outcome in report.extract.outcomes if outcome_failed(outcome)}
    with Store.open(house.settings.database, clock=house.clock) as store:
        for thread_id, name in names.items():
            reason = failures[thread_id]
            assert matches(reason, replies[name][1]), (name, reason)
            assert len(reason) < 800, name
            job = store.extraction.job(thread_id)
            assert job is not None
            assert (job.status, job.last_error) == ("error", reason)
            assert len(store.ledger.calls(thread_id=thread_id)) == 1, name
    fallbacks = report.extract.fallbacks
    assert consolidated(report).inputs == 1 + fallbacks > 1
    assert MINE in house.handbook.read_text(encoding="utf-8")


def scripted(reply: Reply) -> LoopbackModel:
    def answer(request: RecordedRequest) -> Reply:
        return reply if request.json.get("tools") else Say(SAMPLE_MEMORY)

    return LoopbackModel(answer)


@pytest.mark.slow
@pytest.mark.parametrize("name", BAD_IN_BOTH)
def test_a_bad_answer_in_phase_2_leaves_the_folder_to_the_offline_engine(house: FaultyHouse, name: str) -> None:
    reply, pattern = BAD_IN_BOTH[name]
    with_words_of_a_person(house)
    with scripted(reply) as server:
        use(house, server.provider(), offline_consolidation=False, max_requests=5)
        report = house.run()
        assert server.count < 10
    status, reason = fell_back(report)
    assert status in ("failed_agent", "failed_invalid_artifacts")
    assert matches(reason, pattern) or name == "refusal"
    assert len(reason) < 1500
    assert MINE in house.handbook.read_text(encoding="utf-8")
    with Store.open(house.settings.database, clock=house.clock) as store:
        assert [call.phase for call in store.ledger.calls()].count("consolidate") >= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "reply",
    [
        Say("All done!"),
        Say(""),
        Say("```\nMEMORY.md\n```"),
        CallTool("no_such_tool", {"x": 1}),
        CallTool("write", {"wrong": "arguments"}),
        CallTool("write", {"path": "MEMORY.md", "content": ["a", "list"]}),
        CallTool("write", {"path": "../../x", "content": "out"}),
        CallTool("read", {"path": "/etc/passwd"}),
    ],
    ids=["prose", "nothing", "fences", "no such tool", "wrong arguments", "wrong types", "out", "absolute"],
)
def test_an_agent_that_gets_nowhere_is_stopped(house: FaultyHouse, reply: Reply) -> None:
    with_words_of_a_person(house)
    with scripted(reply) as server:
        use(house, server.provider(), offline_consolidation=False, max_requests=20)
        fell_back(house.run())
        assert server.count <= 22
    assert MINE in house.handbook.read_text(encoding="utf-8")
    assert not (house.base / "x").exists()


@pytest.mark.parametrize("phase", [1, 2])
@pytest.mark.parametrize("size", ["100 MB", "endless"])
@pytest.mark.slow
def test_a_reply_without_end_is_cut_off(house: FaultyHouse, phase: int, size: str) -> None:
    reply: Reply = NeverEnd() if size == "endless" else SendBytes(b'{"a": "' + b"x" * 100_000_000 + b'"}')
    with_words_of_a_person(house)
    with LoopbackModel(reply) if phase == 1 else scripted(reply) as server:
        use(house, server.provider(), offline_consolidation=phase == 1)
        house.set(stage_one=msgspec.structs.replace(IMPATIENT, local_timeout_seconds=30))
        report = house.run()
    if phase == 1:
        check_phase_1(house, report, "longer than 4,194,304 bytes")
    else:
        status, reason = fell_back(report)
        assert status == "failed_agent"
        assert "longer than" in reason
    assert house.handbook.read_text(encoding="utf-8").count(MINE) == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["no listener", "no TLS", "no host", "closes at once"])
@pytest.mark.parametrize("phase", [1, 2])
def test_a_server_that_is_not_there_is_told_with_its_address(house: FaultyHouse, phase: int, kind: str) -> None:
    with_words_of_a_person(house)
    with LoopbackModel(Say(SAMPLE_MEMORY)) as good, socket.create_server(("127.0.0.1", 0)) as deaf:
        match kind:
            case "no listener":
                deaf.close()
                provider = Provider(kind="openai-responses", base_url=f"http://127.0.0.1:{good.port - 1}/v1")
            case "no TLS":
                provider = Provider(kind="openai-responses", base_url=f"https://127.0.0.1:{good.port}/v1")
            case "no host":
                provider = Provider(kind="openai-responses", base_url="http://stillroom-test.invalid/v1")
            case _:
                provider = Provider(kind="openai-responses", base_url=f"http://127.0.0.1:{deaf.getsockname()[1]}/v1")
        use(house, provider, offline_consolidation=phase == 1)
        if phase == 2:
            house.set(memories=msgspec.structs.replace(house.settings.memories, extract_model="offline"))
        report = house.run()
    says = {"no listener": "refused|Connect call failed", "no host": "not known|resolution"}.get(
        kind, "timed out|no complete reply"
    )
    if phase == 1:
        check_phase_1(house, report, says)
    else:
        assert matches(fell_back(report)[1], says), report.consolidate
    assert house.handbook.read_text(encoding="utf-8").count(MINE) == 1
