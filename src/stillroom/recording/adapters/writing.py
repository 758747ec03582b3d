"""What a framework hands over, as its stored form is read, and into the record.

An agent's work is worth more than its record: what can't be written is logged once, and the agent goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from stillroom.errors import RecordingError
from stillroom.recording.recorder import Recorder
from stillroom.sessions.conversation import LineDecoder
from stillroom.spending import Usage

log = logging.getLogger(__name__)


class Writing:
    """Records what one run, or one session, tells in the words of its framework."""

    def __init__(self, recorder: Recorder, decoder: LineDecoder) -> None:
        self._recorder = recorder
        self._decoder = decoder
        self._failed = False

    async def write(self, lines: Iterable[bytes], used: Iterable[Usage] = ()) -> None:
        """Record what these lines of the stored form say, and what requests used; outside of the event loop."""
        lines, used = list(lines), list(used)
        if (lines or used) and not self._failed:
            await asyncio.to_thread(self._write, lines, used)

    def _write(self, lines: list[bytes], used: list[Usage]) -> None:
        try:
            for item in self._decoder.items(lines, 1):
                self._recorder.record(item)
            for usage in used:
                self._recorder.usage(usage)
        except RecordingError as error:
            self._failed = True
            log.warning("`%s` is not recorded any more: %s", self._recorder.thread_id, error)
