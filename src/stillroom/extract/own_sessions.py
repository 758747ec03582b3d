"""Sessions of the memory itself, or of another memory system: learning from them would feed the memory on itself."""

from __future__ import annotations

from pathlib import Path

import msgspec

from stillroom.config import Settings
from stillroom.thread import Thread

SOURCE = '{"internal":"memory"}'
"""The source of such a thread; no pass takes it, and nothing that it used counts."""

#: Folders in which other memory systems run agents that watch, in the same clients: claude-mem's observers.
_OTHER_SYSTEMS = frozenset({".claude-mem"})
#: Where Codex keeps its memory, and lets its own consolidation run.
_CODEX_MEMORY = "memories"


class OwnFolders:
    """Where sessions of a memory run."""

    def __init__(self, settings: Settings) -> None:
        codex = [Path(source.root).expanduser() for source in settings.sources if source.format == "codex"]
        places = (settings.root, settings.staging, *(root / _CODEX_MEMORY for root in codex))
        self._places = tuple(str(place.absolute()) for place in places)

    def told(self, thread: Thread) -> Thread:
        """The thread, with the source that such a session has if it ran in one of these folders or below."""
        if not self._is_own(thread.cwd):
            return thread
        return msgspec.structs.replace(thread, source=SOURCE)

    def _is_own(self, cwd: str) -> bool:
        if any(cwd == place or cwd.startswith(f"{place}/") for place in self._places):
            return True
        return any(f"/{name}/" in f"{cwd}/" for name in _OTHER_SYSTEMS)
