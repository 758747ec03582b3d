"""Calls of the Responses API that have a form of their own, as Codex would have recorded them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from stillroom.rollouts.agents.decoder import number_of, text_of
from stillroom.rollouts.agents.made import Made, function_call, output, patch_call, web_call
from stillroom.rollouts.agents.programs import content_of

Fields = dict[str, Any]
_PATCHES = {"create_file": "Add", "update_file": "Update", "delete_file": "Delete"}


def _local_shell(item: Fields, call_id: str) -> Iterator[Made]:
    action = _fields(item, "action")
    given = {"command": action.get("command"), "workdir": action.get("working_directory")}
    yield function_call("shell", msgspec.json.encode(given), call_id)


def _shell(item: Fields, call_id: str) -> Iterator[Made]:
    commands = _fields(item, "action").get("commands")
    given = {"command": "\n".join(map(text_of, commands)) if isinstance(commands, list) else ""}
    yield function_call("shell", msgspec.json.encode(given), call_id)


def _patch(item: Fields, call_id: str) -> Iterator[Made]:
    operation = _fields(item, "operation")
    verb, path = _PATCHES.get(text_of(operation.get("type"))), text_of(operation.get("path"))
    if verb is None or not path or "\n" in path:
        yield function_call("apply_patch", msgspec.json.encode(operation), call_id)
        return
    body = [] if verb == "Delete" else [text_of(operation.get("diff"))]
    yield patch_call("\n".join(["*** Begin Patch", f"*** {verb} File: {path}", *body, "*** End Patch"]), call_id)


def _web(item: Fields, call_id: str) -> Iterator[Made]:
    action = _fields(item, "action")
    yield web_call(call_id, query=text_of(action.get("query")) or None, url=text_of(action.get("url")) or None)


def _files(item: Fields, call_id: str) -> Iterator[Made]:
    yield function_call("file_search", msgspec.json.encode({"queries": item.get("queries")}), call_id)


def _code(item: Fields, call_id: str) -> Iterator[Made]:
    yield (call := function_call("code_interpreter", msgspec.json.encode({"code": item.get("code")}), call_id))
    outputs: list[Any] = item["outputs"] if isinstance(item.get("outputs"), list) else []
    logs = "\n".join(text_of(each.get("logs")) for each in outputs if isinstance(each, dict))
    yield output(call, call_id, logs, ok=False if item.get("status") == "failed" else None)


def _mcp(item: Fields, call_id: str) -> Iterator[Made]:
    name = f"mcp__{text_of(item.get('server_label'))}__{text_of(item.get('name'))}"
    yield (call := function_call(name, text_of(item.get("arguments")).encode("utf-8", "replace"), call_id))
    error = item.get("error")
    yield output(call, call_id, text_of(item.get("output")) or text_of(error), ok=error is None)


def _computer(item: Fields, call_id: str) -> Iterator[Made]:
    yield function_call("computer", msgspec.json.encode(item.get("action")), call_id)


def _custom(item: Fields, call_id: str) -> Iterator[Made]:
    yield function_call(text_of(item.get("name")), msgspec.json.encode(item.get("input")), call_id)


CALLS: dict[str, Callable[[Fields, str], Iterator[Made]]] = {
    "local_shell_call": _local_shell,
    "shell_call": _shell,
    "apply_patch_call": _patch,
    "web_search_call": _web,
    "file_search_call": _files,
    "code_interpreter_call": _code,
    "mcp_call": _mcp,
    "computer_call": _computer,
    "custom_tool_call": _custom,
}
"""By the type of the item; some come with their result."""


def shell_output(call: Made | None, call_id: str, results: list[Any]) -> Made:
    """How the commands of a `shell_call` ended: with the code of the first that failed."""
    texts: list[str] = []
    codes: list[int | None] = []
    for each in results:
        if isinstance(each, dict):
            texts += filter(None, (text_of(each.get("stdout")), text_of(each.get("stderr"))))
            codes.append(number_of(_fields(each, "outcome").get("exit_code")))
    code = next((code for code in codes if code != 0), 0 if codes else None)
    return output(call, call_id, "\n".join(texts) or "\n".join(content_of(results).texts), exit_code=code, ok=False)


def _fields(item: Fields, name: str) -> Fields:
    value = item.get(name)
    return value if isinstance(value, dict) else {}
