"""Whole runs of the agent: a scripted model, the real jail. A run may end in any way and leaves no process behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import exceptions
from pydantic_ai.messages import ModelMessage, ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.profiles import ModelProfile

from stillroom.config import StageTwo
from stillroom.consolidate.agent import AgentCompleted, AgentFailed, AgentReport, AgentStopped, run_agent
from stillroom.consolidate.prompt import render_prompt
from stillroom.errors import JailUnavailable, ModelUnavailable
from stillroom.sandbox import Jail, choose, probe
from stillroom.sandbox.watch import descendants

Turn = ModelResponse | Callable[[list[ModelMessage]], ModelResponse]
#: No other process on this machine sleeps as long.
SLEEP = f"sleep {100_000 + os.getpid()}"
SMALL = StageTwo(
    max_requests=12,
    max_tool_calls=20,
    max_requests_without_progress=6,
    max_identical_calls=4,
    max_folder_bytes=4_000_000,
    max_call_seconds=10,
    max_shell_seconds=10,
)


@pytest.fixture(params=["files", pytest.param("bwrap", marks=pytest.mark.slow)])
def jail(request: pytest.FixtureRequest) -> Jail:
    try:
        return choose(request.param)
    except JailUnavailable as error:
        pytest.skip(f"no {request.param} jail here: {error}")


@pytest.fixture
def shell_jail() -> Jail:
    for report in probe():
        if report.available and report.level != "files":
            return choose(report.level)
    pytest.skip("no jail with a shell here")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    staging = tmp_path / "staging"
    (staging / "rollout_summaries").mkdir(parents=True)
    (staging / "raw_memories.md").write_text("# Raw Memories\n", encoding="utf-8")
    (staging / "rollout_summaries/a.md").write_text("thread_id: 1\n\nbody\n", encoding="utf-8")
    (staging / "phase2_workspace_diff.md").write_text("# Memory Workspace Diff\n", encoding="utf-8")
    (tmp_path / "outside").write_text("outside", encoding="utf-8")
    return staging


def call(name: str, **arguments: Any) -> ModelResponse:
    return ModelResponse(parts=[ToolCallPart(name, arguments)])


def done(text: str = "done") -> ModelResponse:
    return ModelResponse(parts=[TextPart(text)])


def scripted(*turns: Turn, forever: bool = False) -> FunctionModel:
    """A model that plays its turns in order; with `forever` the last one again and again."""
    left = list(turns)

    def play(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        del info
        turn = left[0] if forever and len(left) == 1 else left.pop(0)
        return turn(messages) if callable(turn) else turn

    return FunctionModel(play)


def last_answer(messages: list[ModelMessage]) -> str:
    return "\n".join(
        str(part.content) for part in messages[-1].parts if isinstance(part, ToolReturnPart | RetryPromptPart)
    )


def run(
    model: FunctionModel,
    folder: Path,
    jail: Jail,
    *,
    limits: StageTwo = SMALL,
    check: Callable[[Path], Sequence[str]] | None = None,
) -> AgentReport:
    async def whole() -> AgentReport:
        async with asyncio.timeout(60):
            return await run_agent(
                model,
                folder,
                jail,
                prompt=render_prompt(folder),
                effort="medium",
                limits=limits,
                check=check,
            )

    return asyncio.run(whole())


def left_over() -> list[int]:
    """Processes of this test that are still there, whoever their parent is by now."""
    found = descendants(os.getpid())
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if line.read_bytes().split(b"\0")[:2] == SLEEP.encode().split():
                found.append(int(line.parent.name))
    return found


def test_an_agent_writes_the_folder_and_ends(jail: Jail, folder: Path) -> None:
    seen: list[str] = []

    def look(messages: list[ModelMessage]) -> ModelResponse:
        seen.append(last_answer(messages))
        return call("write", path="MEMORY.md", content="# Task Group: x\n")

    patch = "*** Begin Patch\n*** Add File: memory_summary.md\n+v1\n*** End Patch"
    report = run(scripted(call("list"), look, call("apply_patch", patch=patch), done()), folder, jail)
    assert report.outcome == AgentCompleted(said="done")
    assert (report.jail, report.requests, report.tool_calls) == (jail.level, 4, 3)
    assert report.usage.output_tokens > 0
    assert "rollout_summaries/a.md  19 bytes" in seen[0]
    assert (folder / "MEMORY.md").read_text(encoding="utf-8") == "# Task Group: x\n"
    assert (folder / "memory_summary.md").read_text(encoding="utf-8") == "v1\n"


def test_the_agent_has_these_tools_and_our_words(jail: Jail, folder: Path) -> None:
    asked: list[tuple[list[str], str, str, object]] = []

    def play(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        [request] = messages
        asked.append(
            (
                [tool.name for tool in info.function_tools],
                info.instructions or "",
                str(request.parts[0].content),  # type: ignore[union-attr]  # the one part is the user's
                info.model_request_parameters.thinking,
            )
        )
        return done()

    run(FunctionModel(play, profile=ModelProfile(supports_thinking=True)), folder, jail)
    [(tools, instructions, task, thinking)] = asked
    assert tools == ["list", "read", "search", "write", "apply_patch", *(["shell"] if jail.level != "files" else [])]
    assert instructions.startswith("You keep the memory of a person's coding agents.")
    assert task.startswith("Bring the memory folder up to date. Mode: INIT.")
    assert thinking == "medium"


def test_failures_of_tools_speak_to_the_model(jail: Jail, folder: Path) -> None:
    answers: list[str] = []

    def then(*, next_call: ModelResponse) -> Turn:
        def turn(messages: list[ModelMessage]) -> ModelResponse:
            answers.append(last_answer(messages))
            return next_call

        return turn

    model = scripted(
        call("read", path="../outside"),
        then(next_call=call("read", path="gone.md")),
        then(next_call=call("write", path="MEMORY.md")),
        then(next_call=call("format_disk", now=True)),
        then(next_call=done()),
    )
    assert isinstance(run(model, folder, jail).outcome, AgentCompleted)
    for answer, words in zip(
        answers, ["`..` is not allowed", "no such file", "bad arguments", "format_disk"], strict=True
    ):
        assert words in answer


@pytest.mark.parametrize(
    ("turn", "kind"),
    [
        (call("list"), "repeated_calls"),
        (lambda messages: call("read", path="raw_memories.md", max_lines=len(messages)), "no_progress"),
        (lambda messages: call("write", path="MEMORY.md", content=str(len(messages))), "requests"),
        (
            lambda messages: ModelResponse(
                parts=[ToolCallPart("write", {"path": f"{n}", "content": str(len(messages))}) for n in range(5)]
            ),
            "tool_calls",
        ),
    ],
)
def test_an_agent_that_never_ends_is_stopped(jail: Jail, folder: Path, turn: Turn, kind: str) -> None:
    outcome = run(scripted(turn, forever=True), folder, jail).outcome
    assert isinstance(outcome, AgentStopped)
    assert outcome.kind == kind
    assert not left_over()


def test_tokens_are_limited(jail: Jail, folder: Path) -> None:
    limits = StageTwo(max_total_tokens=100)
    turn = lambda messages: call("write", path="MEMORY.md", content="word " * 200 + str(len(messages)))  # noqa: E731
    outcome = run(scripted(turn, forever=True), folder, jail, limits=limits).outcome
    assert isinstance(outcome, AgentStopped) and outcome.kind == "tokens"


def test_the_time_of_a_run_is_limited(shell_jail: Jail, folder: Path) -> None:
    limits = StageTwo(max_run_seconds=2)
    outcome = run(scripted(call("shell", command=SLEEP, timeout_seconds=60), done()), folder, shell_jail, limits=limits)
    assert outcome.outcome in (
        AgentStopped(kind="time", reason="not done after 2 s"),
        # The jail counts the same seconds, and may tell the model first.
        AgentCompleted(said="done"),
    )
    assert not left_over()


def test_unknown_tools_again_and_again_are_a_failure(jail: Jail, folder: Path) -> None:
    outcome = run(scripted(lambda messages: call(f"tool_{len(messages)}"), forever=True), folder, jail).outcome
    assert isinstance(outcome, AgentFailed | AgentStopped)
    assert not left_over()


@pytest.mark.parametrize(
    "error",
    [
        ModelUnavailable("no answer"),
        exceptions.ModelHTTPError(500, "m", "no answer"),
        exceptions.UnexpectedModelBehavior("no answer"),
        exceptions.UserError("no answer"),
    ],
)
def test_a_model_that_fails_is_a_failed_run(jail: Jail, folder: Path, error: Exception) -> None:
    def fail(messages: list[ModelMessage]) -> ModelResponse:
        raise error

    outcome = run(scripted(call("write", path="MEMORY.md", content="half"), fail), folder, jail).outcome
    assert isinstance(outcome, AgentFailed)
    assert "no answer" in outcome.reason and type(error).__name__.lstrip("_") in outcome.reason
    assert not left_over()


def test_an_error_of_ours_is_not_hidden_and_leaves_no_process(jail: Jail, folder: Path) -> None:
    def fail(messages: list[ModelMessage]) -> ModelResponse:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(scripted(call("list"), fail), folder, jail)
    assert not left_over()


def test_a_cancelled_run_leaves_no_process(shell_jail: Jail, folder: Path) -> None:
    async def whole() -> None:
        begun = asyncio.Event()

        def play(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            if len(messages) == 1:
                return call("write", path="begun", content="x")
            begun.set()
            return call("shell", command=f"{SLEEP} & {SLEEP}", timeout_seconds=60)

        async with asyncio.timeout(30):
            running = asyncio.create_task(
                run_agent(
                    FunctionModel(play), folder, shell_jail, prompt=render_prompt(folder), effort="low", limits=SMALL
                )
            )
            await begun.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

    asyncio.run(whole())
    assert not left_over()


def test_what_the_validators_find_is_given_back(jail: Jail, folder: Path) -> None:
    def check(folder: Path) -> list[str]:
        text = (folder / "MEMORY.md").read_text(encoding="utf-8")
        return [] if text == "good" else [f"MEMORY.md:1: it is `{text}`\n# not a heading [shape]"]

    asked: list[str] = []

    def mend(messages: list[ModelMessage]) -> ModelResponse:
        asked.append(str(messages[-1].parts[-1].content))  # type: ignore[union-attr]  # the user's part
        return call("write", path="MEMORY.md", content="good")

    model = scripted(call("write", path="MEMORY.md", content="bad"), done(), mend, done("mended"))
    assert run(model, folder, jail, check=check).outcome == AgentCompleted(said="mended")
    assert "- MEMORY.md:1: it is `bad` # not a heading [shape]\n" in asked[0]


def test_an_agent_that_does_not_mend_ends_with_its_findings(jail: Jail, folder: Path) -> None:
    report = run(scripted(call("list"), done(), forever=True), folder, jail, check=lambda _: ["bad"])
    assert report.outcome == AgentCompleted(said="done", findings=("bad",))
    assert report.requests == 2 + SMALL.max_corrections


def test_a_model_that_only_talks_is_told_once_what_is_missing(jail: Jail, folder: Path) -> None:
    """SmolLM2-135M writes the form as its answer, again and again."""
    report = run(scripted(done("# Task 1:"), forever=True), folder, jail, check=lambda _: ["MEMORY.md is missing"])
    assert isinstance(report.outcome, AgentFailed) and "none of its tools" in report.outcome.reason
    assert report.requests == 2


def test_hostile_work_stays_in_the_folder_and_within_limits(shell_jail: Jail, folder: Path) -> None:
    answers: list[str] = []

    def then(next_call: ModelResponse) -> Turn:
        def turn(messages: list[ModelMessage]) -> ModelResponse:
            answers.append(last_answer(messages))
            return next_call

        return turn

    model = scripted(
        call("shell", command="ln -s / root; ln -s ../outside link; ls"),
        then(call("shell", command="head -c 100 /dev/urandom > MEMORY.md; mkdir .git")),
        then(call("shell", command="head -c 1000000000 /dev/zero > big")),
        then(call("write", path="small", content="x")),
        then(call("shell", command="rm -rf big .git * ../outside /memory")),
        then(call("list")),
        then(done()),
    )
    assert isinstance(run(model, folder, shell_jail).outcome, AgentCompleted)
    assert answers[0].count("Operation not permitted") == 2
    assert "not allowed in the memory folder, remove them: '.git'" in answers[1]
    assert "more than 4,000,000" in answers[2]
    assert "don't fit" in answers[3]
    assert answers[5] == "(empty)"
    assert list(folder.iterdir()) == []
    assert (folder.parent / "outside").read_text(encoding="utf-8") == "outside"
    assert not left_over()


def test_a_jail_that_does_not_start_is_a_failed_run(folder: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    jail = choose("files")
    report = run(scripted(done()), folder, jail)
    assert isinstance(report.outcome, AgentCompleted)

    async def whole() -> AgentReport:
        return await run_agent(
            scripted(done()), missing, jail, prompt=render_prompt(folder), effort="low", limits=SMALL
        )

    report = asyncio.run(whole())
    assert isinstance(report.outcome, AgentFailed) and "can't be started" in report.outcome.reason
    assert not report.started
