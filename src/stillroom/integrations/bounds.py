"""The hook's numbers, in plain Python: `stillroom.config` needs msgspec, which no session start should wait for."""

from __future__ import annotations

#: An event is a kilobyte; one with a long last message, some dozens.
MAX_EVENT_BYTES = 4 * 1024 * 1024
#: The hook gives up then. Codex ends a hook of the session's end after 3 s, and nobody waits gladly for longer.
GIVE_UP_SECONDS = 2.0
#: Each log, and the one rotation of it that is kept: enough for weeks.
MAX_LOG_BYTES = 256 * 1024
#: The same for what sessions were given: at 250 bytes a line, some thousand sessions.
MAX_SESSIONS_BYTES = 1024 * 1024
#: No two passes are started within this, whatever the settings say: answered by one `stat`.
START_FLOOR_SECONDS = 60
#: A pass of the offline engine takes a second or two; whoever ended a session meanwhile waits for it so long.
LOCK_WAIT_SECONDS = 20.0
#: No two of these are started within this: a script may end a session every second.
AT_ONCE_FLOOR_SECONDS = 5.0
#: `memories.pass_interval_minutes`, unless the settings say otherwise.
PASS_INTERVAL_MINUTES = 15
#: A thread's id is a uuid in every agent so far; a longer word is none.
MAX_THREAD_ID_CHARS = 128
#: What an agent takes from one hook, in characters. Claude Code puts more than 10,000 into a file and shows the
#: beginning; Codex takes as many as the entry asks for (`additionalContextLimit`).
MAX_CONTEXT_CHARS = {"claude-code": 10_000, "codex": 30_000}
#: An agent's settings are some kilobytes; a file larger than this is something else.
MAX_SETTINGS_BYTES = 4 * 1024 * 1024
#: How long Codex waits for the MCP server: importing the SDK takes two seconds, on a busy machine several times that,
#: and Codex gives up after ten unless it is told otherwise.
SERVER_START_SECONDS = 30
