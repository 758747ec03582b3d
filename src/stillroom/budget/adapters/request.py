"""One request to a model within a session: admitted, told what is left, sent, charged.

Adapters differ only in where their framework lets them take these steps.

    with admit(session) as request:
        response = send(messages + reminder_of(request))
        request.sent()
        request.charge(usage_of(response))
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Self

from stillroom.budget.outcome import TurnAborted
from stillroom.budget.reminders import Reminder
from stillroom.budget.reservation import Reservation
from stillroom.budget.session import Session, current_session
from stillroom.spending import Usage

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metering:
    """How the requests of one adapter are metered."""

    #: Counts where no session is current, e.g. on a thread that a framework started.
    session: Session | None = None
    #: Weighted tokens to hold for each request, so that requests that are sent at once can't all count on the same
    #: rest; None: a request is let through as long as anything is left.
    reserve_tokens: float | None = None
    #: Names the context window. Where a history is compacted without a new name, call `session.rearm_reminder()`.
    window_id: str = "0"

    def admit(self) -> Request | None:
        """A request that may be sent; None outside of every session. Raises `TurnAborted`."""
        session = current_session() or self.session
        if session is None:
            return None
        held = _admitted(session, self.reserve_tokens)
        return Request(session=session, reminder=session.pending_reminder(self.window_id), held=held)


@dataclass(slots=True, kw_only=True)
class Request:
    """A request that may be sent. Leaving its block gives back what it held and did not use."""

    session: Session
    #: To be put at the end of what is sent.
    reminder: Reminder | None
    held: Reservation | None
    ended: bool = False

    def sent(self) -> None:
        """The model has read it. Until then its reminder stays due: a request that failed is asked again with it."""
        if self.reminder:
            self.session.mark_reminder_delivered(self.reminder)

    def charge(self, usage: Usage | None, *, units: float | None = None) -> None:
        """Charge the response. Raises `TurnAborted` when a limit is exceeded; a second call does nothing."""
        if self.ended:
            return
        self.ended = True
        if usage is None and units is None:
            _log.warning("thread %s: a response told no usage; nothing was charged", self.session.thread_id)
            if self.held and self.held.closing:
                self.held.settle(Usage())  # given back, it would be given again and again
        elif self.held:
            self.held.settle(usage or Usage(), units=units)
        else:
            self.session.record_usage(usage or Usage(), units=units)

    def charge_failed(self, usage: Usage | None, *, units: float | None = None) -> None:
        """Charge a response that somebody stopped or that broke off: its own error is the one to be raised."""
        if usage is not None or units is not None:
            try:
                self.charge(usage, units=units)
            except TurnAborted:  # the next request finds it out
                pass

    def end(self) -> None:
        """Give back what is still held. Does nothing after `charge`."""
        if self.held:
            self.held.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def _admitted(session: Session, reserve_tokens: float | None) -> Reservation | None:
    try:
        if reserve_tokens is not None:
            return session.reserve(reserve_tokens)
        session.check()
    except TurnAborted:
        closing = session.reserve_closing_answer()
        if closing is None:
            raise
        return closing
    return None
