"""Records what an agent of one's own does, as a rollout in Codex's form, so that every pass finds it.

from stillroom import Recorder

with Recorder("shop-assistant", cwd="/home/me/shop") as recorder:
    recorder.user("Which tests fail?")
    call = recorder.tool_call("shell", {"command": "make test"})
    recorder.tool_result(call, "2 passed", exit_code=0)
    recorder.assistant("None: both pass.")
"""

from __future__ import annotations

import os
import threading
import uuid
from pathlib import Path
from typing import Any, Literal, Self

from stillroom.clock import Clock, SystemClock
from stillroom.config import RedactionStyle, default_home
from stillroom.ending import mark_ended
from stillroom.recording.lines import encoded, item_payload, line, meta_payload, usage_payload, whole_text
from stillroom.recording.names import check_thread_id, file_id, find_rollouts, new_thread_id, rollout_path
from stillroom.recording.rollout_file import RolloutFile, last_total
from stillroom.rollouts.redact import redact as redact_text
from stillroom.sessions import normalize
from stillroom.sessions.item import Item
from stillroom.sessions.meta import Git
from stillroom.sessions.speech import said_in
from stillroom.spending import Usage

Source = Literal["cli", "vscode", "exec"]
"""How the thread was started, in Codex's words: by a person in a terminal or an editor, or by a script."""


class Recorder:
    """Appends to one thread's rollout, which is made with its first record.

    A record is one write of one whole line: whatever kills the process costs at most the record at hand, and a thread
    that is recorded again under its id goes on behind. Any thread may call any method. 4 KB take about a tenth of a
    millisecond, so an event loop may call it too (with `durable=True` through `asyncio.to_thread`). All methods that
    write raise `RecordingError` if the disk refuses.
    """

    def __init__(
        self,
        agent: str,
        *,
        cwd: str | Path | None = None,
        thread_id: str | None = None,
        parent_thread_id: str | None = None,
        source: Source = "cli",
        version: str | None = None,
        model_provider: str | None = None,
        git: Git | None = None,
        home: Path | None = None,
        durable: bool = False,
        redaction: RedactionStyle | None = "typed",
        clock: Clock | None = None,
    ) -> None:
        """`agent` is the name of the program that is recorded, `version` its version.

        `cwd`: where it works; the memory is told to sessions of the same project. Default: the current folder.
        `thread_id`: a thread to go on with, or a name for a new one: up to 128 letters, digits, `_`, `.`, `:`, `-`.
        Default: a new UUID. `parent_thread_id`: the thread that asked for this one; see `child`.
        `source`: threads of an `exec` are kept but never distilled, as no person speaks in them.
        `home`: Stillroom's. Default: `$STILLROOM_HOME`, else `~/.stillroom`.
        `durable`: wait for the disk after every record. `redaction`: None keeps secrets in the file, as Codex does;
        they are taken out before anything is made of it.
        """
        self.agent = agent
        self.cwd = str(Path(cwd or Path()).absolute())
        self._home = (home or default_home(os.environ)).absolute()
        self._clock = clock or SystemClock()
        self._source, self._version, self._model_provider, self._git = source, version, model_provider, git
        self._durable, self._redaction = durable, redaction
        self._parent = check_thread_id(parent_thread_id) if parent_thread_id else None
        known = find_rollouts(self._home).get(file_id(check_thread_id(thread_id))) if thread_id else None
        self.thread_id = thread_id or new_thread_id(self._clock)
        now = self._clock.now_ms()
        self._file = RolloutFile(known or rollout_path(self._home, self.thread_id, created_at_ms=now), durable=durable)
        self._total = last_total(known) if known else Usage()
        self._is_open = True
        # Protects the total: it must be written in the order in which it grows.
        self._counting = threading.Lock()

    @property
    def path(self) -> Path:
        """The rollout; it is there once something was recorded."""
        return self._file.path

    # What was said

    def user(self, *texts: str) -> None:
        """What a person said. In a sub-agent's thread nobody but the agent above speaks, and it is recorded as that."""
        if self._parent:
            self.from_agent("\n".join(texts), author=self._parent)
        else:
            self._made(normalize.said_by_user(*map(whole_text, texts)))

    def assistant(self, text: str) -> None:
        """What the recorded agent said."""
        self._made(normalize.said_by_assistant(whole_text(text)))

    def from_agent(self, text: str, *, author: str = "") -> None:
        """What another agent said to this one: its task, or what a sub-agent found."""
        content = [{"type": "input_text", "text": text}]
        self.item({"type": "agent_message", "author": author, "recipient": self.agent, "content": content})

    # What was done

    def tool_call(self, name: str, arguments: Any = None, *, call_id: str | None = None) -> str:
        """A tool was called; `arguments` are JSON text, or any value that can be written as JSON.

        A shell's command is understood under `command` or `cmd`. Returns the id to hand to `tool_result`.
        """
        call_id = call_id or f"call_{uuid.uuid4().hex[:24]}"
        text = arguments.encode("utf-8", "replace") if isinstance(arguments, str) else encoded(arguments or {})
        self._made(normalize.function_call(whole_text(name), text, whole_text(call_id)))
        return call_id

    def tool_result(self, call_id: str, output: Any, *, exit_code: int | None = None, ok: bool | None = None) -> None:
        """What a call gave: text, or any value that can be written as JSON.

        `exit_code` of a program that ran, else `ok`: whether it did what it was asked. Neither: nobody knows.
        """
        text = whole_text(output) if isinstance(output, str) else encoded(output).decode()
        self._made(normalize.output(None, whole_text(call_id), text, exit_code=exit_code, ok=ok))

    def item(self, payload: dict[str, Any]) -> None:
        """Any `ResponseItem` of OpenAI's Responses API, as it is."""
        self._write("response_item", item_payload(encoded(payload), redact=self._redact))

    def record(self, item: Item) -> None:
        """What a reader of another agent's sessions made of a record."""
        said = said_in(item) if self._parent and item.role == "user" else None
        if said is not None:
            for _, text in said:
                self.user(text)
        else:
            self._write("response_item", item_payload(item.raw, redact=self._redact))

    def usage(self, usage: Usage) -> None:
        """What a request to the model used."""
        with self._counting:
            self._total += usage
            self._write("event_msg", usage_payload(usage, self._total))

    # Its life

    def child(self, agent: str, *, task: str | None = None, thread_id: str | None = None) -> Recorder:
        """A recorder for a sub-agent, in a thread of its own. `task`: what this agent asked it to do."""
        child = Recorder(
            agent,
            cwd=self.cwd,
            thread_id=thread_id,
            parent_thread_id=self.thread_id,
            source=self._source,
            version=self._version,
            model_provider=self._model_provider,
            git=self._git,
            home=self._home,
            durable=self._durable,
            redaction=self._redaction,
            clock=self._clock,
        )
        if task is not None:
            child.user(task)
        return child

    def close(self, *, over: bool = True) -> None:
        """Release the file, and say that the session is over: the next pass extracts it without waiting.

        A thread may go on all the same, recorded by another recorder with its id. Where that is sure, `over=False` only
        releases the file. Closing twice is closing once.
        """
        self._file.close()
        if over and self._parent is None and self._is_open and self.path.exists():
            mark_ended(str(self._home), self.thread_id, at_ms=self._clock.now_ms())
        self._is_open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _made(self, item: normalize.NormalizedItem) -> None:
        self._write("response_item", item_payload(item.raw, redact=self._redact))

    def _redact(self, text: str) -> str:
        return text if self._redaction is None else redact_text(text, style=self._redaction)

    def _write(self, kind: str, payload: bytes) -> None:
        at = self._clock.now_ms()
        self._file.append(line(kind, payload, at_ms=at), first=line("session_meta", self._meta(at), at_ms=at))

    def _meta(self, at_ms: int) -> bytes:
        source: object = self._source
        if self._parent:
            source = {"subagent": {"thread_spawn": {"parent_thread_id": self._parent, "agent_nickname": self.agent}}}
        return meta_payload(
            self.thread_id,
            at_ms=at_ms,
            cwd=self.cwd,
            agent=self.agent,
            source=source,
            version=self._version,
            model_provider=self._model_provider,
            parent_thread_id=self._parent,
            nickname=self.agent if self._parent else None,
            git=self._git,
        )


__all__ = ["Git", "Recorder", "Source"]
