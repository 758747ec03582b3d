"""The current thread of a tree, found without passing it on.

A session stands in a context variable. What is started inside its block sees it: coroutines, tasks and
`asyncio.to_thread` always. A plain `threading.Thread` or a pool starts without it (in Python 3.14 it is copied when
`sys.flags.thread_inherit_context` is set, as it is on free-threaded builds): wrap what it runs in `keep_session`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar

from stillroom.budget.protocol import Budget
from stillroom.budget.reminders import Reminder
from stillroom.budget.reservation import Reservation
from stillroom.spending import Usage

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Session:
    """A thread of a tree, with the ledger's methods for it."""

    budget: Budget
    thread_id: str

    def record_usage(self, usage: Usage, *, units: float | None = None) -> float:
        """`Budget.record_usage` for this thread."""
        return self.budget.record_usage(self.thread_id, usage, units=units)

    def check(self) -> None:
        """`Budget.check` for this thread."""
        self.budget.check(self.thread_id)

    def remaining(self) -> float:
        """`Budget.remaining` for this thread."""
        return self.budget.remaining(self.thread_id)

    def reserve(self, tokens: float, *, lease_seconds: float | None = None) -> Reservation:
        """`Budget.reserve` for this thread."""
        return self.budget.reserve(self.thread_id, tokens, lease_seconds=lease_seconds)

    def reserve_closing_answer(self) -> Reservation | None:
        """`Budget.reserve_closing_answer` for this thread."""
        return self.budget.reserve_closing_answer(self.thread_id)

    def pending_reminder(self, window_id: str) -> Reminder | None:
        """`Budget.pending_reminder` for this thread."""
        return self.budget.pending_reminder(self.thread_id, window_id)

    def mark_reminder_delivered(self, reminder: Reminder) -> None:
        """`Budget.mark_reminder_delivered`."""
        self.budget.mark_reminder_delivered(reminder)

    def rearm_reminder(self) -> None:
        """`Budget.rearm_reminder` for this thread."""
        self.budget.rearm_reminder(self.thread_id)


_current: ContextVar[Session | None] = ContextVar("stillroom_budget_session", default=None)


def current_session() -> Session | None:
    """The innermost session that this code runs in, if any."""
    return _current.get()


def keep_session(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """The function, to be run on another thread within the session that is current now.

    pool.map(keep_session(ask), questions)
    """
    session = _current.get()

    @wraps(function)
    def run(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        token = _current.set(session)
        try:
            return function(*args, **kwargs)
        finally:
            _current.reset(token)

    return run


class SessionScope:
    """The block of `Budget.session`. Make another to enter it again inside itself."""

    def __init__(self, budget: Budget, thread_id: str, *, parent: str | None, limit_tokens: float | None) -> None:
        self._session = Session(budget, thread_id)
        self._parent = parent
        self._limit_tokens = limit_tokens
        self._token: Token[Session | None] | None = None

    def __enter__(self) -> Session:
        if self._token:
            raise RuntimeError(f"the session `{self._session.thread_id}` is entered already; open another one")
        session, outer = self._session, _current.get()
        parent = self._parent
        # A session of another ledger says nothing about this tree.
        if parent is None and outer and outer.budget is session.budget and outer.thread_id != session.thread_id:
            parent = outer.thread_id
        session.budget.register(session.thread_id, parent=parent, limit_tokens=self._limit_tokens)
        self._token = _current.set(session)
        return session

    def __exit__(self, *_: object) -> None:
        token, self._token = self._token, None
        if token:
            try:
                _current.reset(token)
            except ValueError:
                pass  # the block was entered in another context, as an async generator's may be that is closed late
