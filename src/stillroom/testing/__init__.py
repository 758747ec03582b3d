"""Public doubles for tests of Stillroom and of what is built on it: no mock, no patch, no network but 127.0.0.1.

`LoopbackModel` is a language model over real HTTP, `ScriptedModel` one without; `sample_rollout` writes a session as
Codex would; `FixedClock` stands still; `ListLedger` keeps spending rows.
"""

from stillroom.clock import FixedClock
from stillroom.testing.doubles import ListLedger, ScriptedModel
from stillroom.testing.loopback import SAMPLE_MEMORY, LoopbackModel
from stillroom.testing.script import (
    CallTool,
    CallTools,
    CutOff,
    Hang,
    NeverEnd,
    RecordedRequest,
    Refuse,
    Reply,
    Say,
    SendBytes,
    Slowly,
    Status,
    StopShort,
)
from stillroom.testing.sessions import sample_rollout

__all__ = [
    "SAMPLE_MEMORY",
    "CallTool",
    "CallTools",
    "CutOff",
    "FixedClock",
    "Hang",
    "ListLedger",
    "LoopbackModel",
    "NeverEnd",
    "RecordedRequest",
    "Refuse",
    "Reply",
    "Say",
    "ScriptedModel",
    "SendBytes",
    "Slowly",
    "Status",
    "StopShort",
    "sample_rollout",
]
