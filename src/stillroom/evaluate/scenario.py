"""Turns a scenario (`*.toml`) into a Codex rollout, the same bytes every time.

A scenario's `script` is a transcript. One of these marks at the start of a line opens an item, other lines continue it:

    @u TEXT          the user            @c TEXT   the assistant, working      @f TEXT   the assistant's final answer
    @h TEXT          harness context     @g NAME: TEXT   another agent         @d TEXT   a developer message
    @xN COMMAND      a shell command that exited with N; the lines below are its output. `@x?`: still running
    @xN [DIR] COMMAND   the same in another directory; `\\n` in a command is a line break
    @p               a patch (`*** Update File: …`, no Begin and End lines);  @p! the same, refused: why, after `---`
    @t NAME ARGS     any other function tool, output below;  @k NAME INPUT   a custom (free-form) tool, output below
    @repeat N … @end repeats what is between, `{i}` counting from 1;  `%N TEXT` is N lines of TEXT

`tools` chooses how shell commands and patches are recorded: see `_SHELLS`.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from stillroom.thread import Thread

SECONDS_BETWEEN_ITEMS = 7
_MARK = re.compile(r"^@(u|c|f|h|g|d|x\d+|x\?|p!|p|t|k)(?: |$)(.*)$")
_REPEAT = re.compile(r"^@repeat (\d+)\n(.*?)^@end\n", re.MULTILINE | re.DOTALL)
_LINES = re.compile(r"^%(\d+) (.*)\n", re.MULTILINE)


#: A mark of the notation, the rest of its line, and the lines below.
Block = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One made-up session and what is known of it."""

    name: str
    language: str
    cwd: str
    started: datetime
    script: str
    tools: str
    source: str
    branch: str
    origin: str | None
    table: dict[str, Any]
    said: tuple[Block, ...] = ()  #: instead of a script: what was said, as it was

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The items of the session, in order."""
        return self.said or tuple(_blocks(self.script))

    @property
    def thread_id(self) -> str:
        """A version 7 UUID of the start time; the random part comes from the name."""
        ms = int(self.started.timestamp() * 1000)
        tail = hashlib.sha256(self.name.encode()).digest()
        raw = bytearray(ms.to_bytes(6, "big") + tail[:10])
        raw[6], raw[8] = 0x70 | raw[6] & 0x0F, 0x80 | raw[8] & 0x3F
        return str(uuid.UUID(bytes=bytes(raw)))


def load(path: Path) -> Scenario:
    """Read a scenario file. A missing key is a `KeyError` that names it."""
    return from_table(path.stem, tomllib.loads(path.read_text(encoding="utf-8")))


def from_table(name: str, table: dict[str, Any]) -> Scenario:
    """A scenario from its parsed table."""
    return Scenario(
        name=name,
        language=table.get("language", "en"),
        cwd=table["cwd"],
        started=table["started"],
        script=table["script"].lstrip("\n"),
        tools=table.get("tools", "exec_command"),
        source=table.get("source", "cli"),
        branch=table.get("branch", "main"),
        origin=table.get("origin"),
        table=table,
    )


def rollout_lines(scenario: Scenario) -> list[dict[str, Any]]:
    """The lines of the rollout, in order."""
    clock = scenario.started
    lines: list[dict[str, Any]] = []

    def add(kind: str, payload: dict[str, Any]) -> None:
        nonlocal clock
        stamp = clock.strftime("%Y-%m-%dT%H:%M:%S.") + "000Z"
        lines.append({"timestamp": stamp, "ordinal": len(lines), "type": kind, "payload": payload})
        clock += timedelta(seconds=SECONDS_BETWEEN_ITEMS)

    add("session_meta", _meta(scenario))
    add(
        "response_item", _message("developer", "<permissions instructions>Approval policy is on-request.</permissions>")
    )
    add("response_item", _message("user", _environment(scenario)))
    for number, (mark, rest, body) in enumerate(scenario.blocks):
        for kind, payload in _items(scenario, number, mark, rest, body):
            add(kind, payload)
    return lines


def write_rollout(scenario: Scenario, home: Path) -> Path:
    """Write the rollout where Codex would put it under `home`, and return its path."""
    stamp = scenario.started.strftime("%Y-%m-%dT%H-%M-%S")
    folder = home / "sessions" / scenario.started.strftime("%Y/%m/%d")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rollout-{stamp}-{scenario.thread_id}.jsonl"
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in rollout_lines(scenario))
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def thread_of(scenario: Scenario, path: Path) -> Thread:
    """What a reader of the rollout's head would register."""
    first = next((rest + "\n" + body for mark, rest, body in scenario.blocks if mark == "u"), "")
    started_ms = int(scenario.started.timestamp() * 1000)
    items = len(scenario.blocks) * 2 + 3
    return Thread(
        thread_id=scenario.thread_id,
        agent="codex",
        rollout_path=str(path),
        source=scenario.source,
        cwd=scenario.cwd,
        created_at_ms=started_ms,
        updated_at_ms=started_ms + items * SECONDS_BETWEEN_ITEMS * 1000,
        title=first.strip()[:80],
        preview=first.strip()[:200],
        git_branch=scenario.branch,
        git_origin_url=scenario.origin,
    )


def _blocks(script: str) -> Iterator[Block]:
    script = _REPEAT.sub(lambda m: "".join(m[2].replace("{i}", str(i + 1)) for i in range(int(m[1]))), script + "\n")
    script = _LINES.sub(lambda m: "".join(m[2].replace("{i}", str(i + 1)) + "\n" for i in range(int(m[1]))), script)
    mark, rest, body = "", "", list[str]()
    for line in script.splitlines():
        found = _MARK.match(line)
        if found:
            if mark:
                yield mark, rest, "\n".join(body).rstrip()
            mark, rest, body = found[1], found[2], []
        elif mark:
            body.append(line)
        elif line.strip():
            raise ValueError(f"`{line}` stands before the first mark")
    if mark:
        yield mark, rest, "\n".join(body).rstrip()


def _items(scenario: Scenario, number: int, mark: str, rest: str, body: str) -> Iterator[tuple[str, dict[str, Any]]]:
    text = (rest + "\n" + body).strip() if body else rest
    call_id = f"call_{scenario.name}_{number}"
    if mark == "u":
        yield "response_item", _message("user", text)
        yield "event_msg", {"type": "user_message", "message": text, "kind": "plain"}
    elif mark in {"c", "f"}:
        phase = "commentary" if mark == "c" else "final_answer"
        yield "response_item", {**_message("assistant", text), "phase": phase}
        if mark == "f":
            yield "event_msg", {"type": "task_complete", "last_agent_message": text}
    elif mark in {"h", "d"}:
        yield "response_item", _message("user" if mark == "h" else "developer", text)
    elif mark == "g":
        author, _, said = text.partition(": ")
        content = [{"type": "input_text", "text": said}]
        item = {"type": "agent_message", "author": author, "recipient": "/root", "content": content}
        yield "response_item", item
    elif mark.startswith("x"):
        workdir, command = _workdir(rest)
        code = None if mark == "x?" else int(mark[1:])
        command = command.replace("\\n", "\n")
        yield from _responses(_SHELLS[scenario.tools](call_id, command, workdir, body, code))
    elif mark in {"p", "p!"}:
        yield from _responses(_patch(scenario, call_id, (rest + "\n" + body).strip(), refused=mark == "p!"))
    elif mark == "t":
        name, _, arguments = rest.partition(" ")
        call = {"type": "function_call", "name": name, "arguments": arguments or "{}", "call_id": call_id}
        yield from _responses([call, {"type": "function_call_output", "call_id": call_id, "output": body}])
    else:
        name, _, given = rest.partition(" ")
        call = {"type": "custom_tool_call", "status": "completed", "call_id": call_id, "name": name, "input": given}
        yield from _responses([call, {"type": "custom_tool_call_output", "call_id": call_id, "output": body}])


def _workdir(rest: str) -> tuple[str | None, str]:
    found = re.match(r"^\[(/[^\]]*)\] (.*)$", rest)
    return (found[1], found[2]) if found else (None, rest)


def _responses(items: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for item in items:
        yield "response_item", item


def _message(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _meta(scenario: Scenario) -> dict[str, Any]:
    git: dict[str, Any] = {"commit_hash": hashlib.sha1(scenario.cwd.encode()).hexdigest(), "branch": scenario.branch}
    if scenario.origin:
        git["repository_url"] = scenario.origin
    return {
        "id": scenario.thread_id,
        "timestamp": scenario.started.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "cwd": scenario.cwd,
        "originator": "codex_vscode" if scenario.source == "vscode" else "codex-tui",
        "cli_version": "0.171.0",
        "source": scenario.source,
        "model_provider": "openai",
        "base_instructions": {"text": "(elided)"},
        "git": git,
    }


def _environment(scenario: Scenario) -> str:
    day = scenario.started.strftime("%Y-%m-%d")
    return (
        f"<environment_context>\n  <cwd>{scenario.cwd}</cwd>\n  <shell>bash</shell>\n"
        f"  <current_date>{day}</current_date>\n</environment_context>"
    )


Shell = Callable[[str, str, str | None, str, int | None], list[dict[str, Any]]]


def _call(call_id: str, name: str, arguments: dict[str, Any], output: str) -> list[dict[str, Any]]:
    text = json.dumps(arguments, ensure_ascii=False)
    return [
        {"type": "function_call", "name": name, "arguments": text, "call_id": call_id},
        {"type": "function_call_output", "call_id": call_id, "output": output},
    ]


def _where(workdir: str | None) -> dict[str, Any]:
    return {"workdir": workdir} if workdir else {}


def _headed(output: str, code: int | None) -> str:
    end = "Process running with session ID 41" if code is None else f"Process exited with code {code}"
    return f"Chunk ID: 5c811a\nWall time: 0.4100 seconds\n{end}\nOriginal token count: 25\nOutput:\n{output}"


def _with_metadata(output: str, code: int | None) -> str:
    metadata = {} if code is None else {"exit_code": code, "duration_seconds": 0.4}
    return json.dumps({"output": output, "metadata": metadata}, ensure_ascii=False)


def _exec_command(
    call_id: str, command: str, workdir: str | None, output: str, code: int | None
) -> list[dict[str, Any]]:
    return _call(call_id, "exec_command", {"cmd": command, **_where(workdir)}, _headed(output, code))


def _shell(call_id: str, command: str, workdir: str | None, output: str, code: int | None) -> list[dict[str, Any]]:
    arguments = {"command": ["bash", "-lc", command], **_where(workdir)}
    return _call(call_id, "shell", arguments, _with_metadata(output, code))


def _shell_command(
    call_id: str, command: str, workdir: str | None, output: str, code: int | None
) -> list[dict[str, Any]]:
    shown = f"Exit code: {0 if code is None else code}\nWall time: 0.4 seconds\nOutput:\n{output}"
    return _call(call_id, "shell_command", {"command": command, **_where(workdir)}, shown)


def _local_shell(
    call_id: str, command: str, workdir: str | None, output: str, code: int | None
) -> list[dict[str, Any]]:
    action = {"type": "exec", "command": ["bash", "-lc", command], "working_directory": workdir}
    call = {"type": "local_shell_call", "call_id": call_id, "status": "completed", "action": action}
    return [call, {"type": "function_call_output", "call_id": call_id, "output": _with_metadata(output, code)}]


def _bash(call_id: str, command: str, workdir: str | None, output: str, code: int | None) -> list[dict[str, Any]]:
    """Another agent's shell tool as its reader maps it."""
    shown = output if code is None else f"Exit code: {code}\n{output}"
    return _call(call_id, "Bash", {"command": f"cd {workdir} && {command}" if workdir else command}, shown)


_SHELLS: dict[str, Shell] = {
    "exec_command": _exec_command,
    "shell": _shell,
    "shell_command": _shell_command,
    "local_shell": _local_shell,
    "bash": _bash,
}


def _patch(scenario: Scenario, call_id: str, text: str, *, refused: bool) -> list[dict[str, Any]]:
    body, _, problem = text.partition("\n---\n")
    patch = f"*** Begin Patch\n{body}\n*** End Patch"
    if refused:
        output = f"apply_patch verification failed: {problem.strip()}"
    else:
        kinds = {"Add": "A", "Update": "M", "Delete": "D"}
        touched = re.findall(r"^\*\*\* (Add|Update|Delete) File: (.+)$", body, re.MULTILINE)
        listed = "".join(f"{kinds[kind]} {path}\n" for kind, path in touched)
        output = f"Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated the following files:\n{listed}"
    if scenario.tools in {"shell", "local_shell"}:
        command = {"command": ["apply_patch", patch]}
        shown = _with_metadata(output, 1 if refused else 0)
        return _call(call_id, "shell", command, shown)
    call = {
        "type": "custom_tool_call",
        "status": "completed",
        "call_id": call_id,
        "name": "apply_patch",
        "input": patch,
    }
    return [call, {"type": "custom_tool_call_output", "call_id": call_id, "output": output}]
