"""Hard limits of the offline engine: whatever a session holds, what is made of it stays small. Reasons beside."""

from __future__ import annotations

#: Of one message that is looked at (characters); people type less, more is a paste.
MAX_MESSAGE_CHARS = 24_000
#: Of one message that are looked at; keeps a pasted book linear and cheap.
MAX_SENTENCES = 240
#: Turns that are looked at: the first ones say what was wanted, the last ones what came of it.
MAX_TURNS = 600
#: Of one tool output that is looked at (characters), half from its head, half from its tail.
MAX_OUTPUT_CHARS = 16_000
#: A quoted sentence (characters): longer ones are cut with `…`.
QUOTE_CHARS = 320
#: One line of a draft (characters): a longer one is a copy, not a memory.
LINE_CHARS = 480
#: A quoted command (characters).
COMMAND_CHARS = 200
#: An error line (characters).
ERROR_CHARS = 180
#: Lines of one kind in one task; the best ones are kept. A reader skims more than this.
MAX_WISHES = 24
MAX_FAILURES = 10
MAX_FINDINGS = 10
MAX_COMMANDS = 8
MAX_FILES = 12
#: Tasks told apart in one thread.
MAX_TASKS = 8
#: Key words of one task.
MAX_KEYWORDS = 14
#: The two texts of a draft (bytes). The handbook of phase 2 holds hundreds of them.
MAX_RAW_MEMORY_BYTES = 16_000
MAX_SUMMARY_BYTES = 24_000
#: A slug (characters): storage cuts it to 60 anyway.
SLUG_CHARS = 60
