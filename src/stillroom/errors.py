"""Every error that Stillroom raises on purpose.

    StillroomError
    ├── CommandLineError        a command was called with words that it does not know
    ├── ConfigError             a setting can't be used
    ├── SettingsRefused         an agent's settings file can't be changed, or should not be
    ├── StoreError              the state database
    │   ├── StoreUnavailable    it can't be opened, or stays locked
    │   │   └── StoreReadOnly   it can't be written, only read
    │   └── NewerSchema         a newer Stillroom wrote it
    ├── RolloutError            a session file can't be read
    │   └── EmptyRollout        it holds no line
    ├── RecordingError          a thread can't be recorded, ingested or exported
    ├── WorkspaceError          the memory folder
    │   ├── FolderRefused       it is a link, or not ours to write
    │   │   └── MemoriesFound   another program keeps memories in it
    │   ├── HistoryError        git said no
    │   └── InvalidArtifacts    what the consolidator wrote breaks the format
    ├── RecallError             what was asked of the memory can't be answered
    │   ├── InvalidRequest      an argument can't be used
    │   ├── PathRefused         the path leads out of the memory folder, or over a link
    │   ├── NotFound            nothing is there
    │   └── Unreadable          it is no text, or too large
    ├── BudgetError             the ledger of a session tree
    │   ├── TurnAborted         it is used up (`stillroom.budget.outcome`, with why)
    │   ├── InvalidUsage        a count that can't be charged
    │   ├── SpendingCapped      the pipeline's own cap of a pass or a day is reached
    │   └── ReservationSettled  the same reservation was settled before
    ├── JailError               the sandbox of the consolidation agent
    │   └── JailUnavailable     the asked level can't be had on this machine
    └── ModelError              a language model
        ├── ModelUnavailable    no answer: network, 5xx, time-out
        ├── RateLimited         429
        ├── ContextTooLong      the input doesn't fit its window
        ├── ModelRefused        any other 4xx, or a refusal
        └── InvalidReply        an answer that is not what the schema asks for

Expected results ("nothing changed", "lease lost", "no output") are return values, not errors.

    try:
        report = await run_pipeline(settings)
    except StillroomError as error:
        print(error, error.hint)
"""

from __future__ import annotations

import errno
from pathlib import Path


def way_out(error: OSError, path: Path | str) -> str:
    """The hint for a path that the system refuses to write."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "free some disk space (`df -h`, and `df -i` for the number of files), then try again"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"`{path}` must be yours to write: `chmod u+rwX '{path}'`"
    if error.errno == errno.EROFS:
        return "nothing can be written there from here; if this is an agent's sandbox, try it outside"
    return "`stillroom doctor` looks for what is wrong"


class StillroomError(Exception):
    """Something that Stillroom was asked to do can't be done."""

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        super().__init__(message or (self.__doc__ or "").strip().splitlines()[0])
        self.hint = hint


class CommandLineError(StillroomError):
    """A command was called with words that it does not know."""


class ConfigError(StillroomError):
    """A setting has a value that can't be used."""


class SettingsRefused(StillroomError):
    """An agent's settings file can't be changed safely."""


class StoreError(StillroomError):
    """The state database refused an operation."""


class StoreUnavailable(StoreError):
    """The state database can't be opened, or stays locked."""


class StoreReadOnly(StoreUnavailable):
    """The state database can't be written: a read-only folder, somebody else's, or a full disk."""


class NewerSchema(StoreError):
    """A newer Stillroom wrote this state database."""


class RolloutError(StillroomError):
    """A session file can't be read."""


class EmptyRollout(RolloutError):
    """The session file holds no line."""


class RecordingError(StillroomError):
    """A thread can't be recorded."""


class WorkspaceError(StillroomError):
    """The memory folder can't be prepared or written."""


class FolderRefused(WorkspaceError):
    """The memory folder is a link, or is not ours to write."""


class MemoriesFound(FolderRefused):
    """The memory folder holds memories that another program wrote, and nobody said that they may be replaced."""


class HistoryError(WorkspaceError):
    """git refused an operation on the history of the memory folder."""


class InvalidArtifacts(WorkspaceError):
    """The consolidated files break their format."""


class RecallError(StillroomError):
    """What was asked of the memory can't be answered."""


class InvalidRequest(RecallError):
    """An argument can't be used."""


class PathRefused(RecallError):
    """The path leads out of the memory folder, or over a link."""


class NotFound(RecallError):
    """Nothing is there."""


class Unreadable(RecallError):
    """The file is no text, or too large to be read."""


class BudgetError(StillroomError):
    """The ledger of a session tree refused an operation."""


class InvalidUsage(BudgetError):
    """A count of tokens can't be charged; nothing was."""


class SpendingCapped(BudgetError):
    """The pipeline may send nothing more in this pass, or today; nothing was sent."""


class ReservationSettled(BudgetError):
    """This reservation was settled before; nothing was charged again."""


class JailError(StillroomError):
    """The sandbox of the consolidation agent failed."""


class JailUnavailable(JailError):
    """The asked level of the sandbox can't be had on this machine."""


class ModelError(StillroomError):
    """A language model could not be used."""


class ModelUnavailable(ModelError):
    """The model gave no answer: network, server error or time-out."""


class RateLimited(ModelError):
    """The provider answered 429."""


class ContextTooLong(ModelError):
    """The input does not fit the model's context window."""


class ModelRefused(ModelError):
    """The provider refused the request."""


class AccessRefused(ModelRefused):
    """The provider serves nobody with this key, account or model: no other request would fare better."""


class QuotaExhausted(RateLimited, AccessRefused):
    """The account has no quota left, or the provider asks for a wait that is longer than any of ours."""


class InvalidReply(ModelError):
    """The model's answer is not what the schema asks for."""
