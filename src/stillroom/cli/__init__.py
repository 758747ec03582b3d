"""The `stillroom` command: parse, call one function, print."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of the console script. Ends the process with the command's exit code."""
    tokens = list(sys.argv[1:] if argv is None else argv)
    if tokens in (["--version"], ["-V"]):  # answered before anything heavy is imported
        from stillroom import __version__

        print(__version__)
        sys.exit(0)
    try:
        _load_msgspec()
        from stillroom.cli.app import run_command
    except KeyboardInterrupt:  # the imports take long enough to be interrupted, and a traceback tells a person nothing
        sys.exit(130)
    exit_code = run_command(tokens)
    if argv is None:
        gc.freeze()  # what is loaded goes with the process: to look for garbage in it takes a tenth of a short command
    sys.exit(exit_code)


def _load_msgspec() -> None:
    """Import msgspec without `typing_extensions`, of which it wants what `typing` has as well.

    That takes as long as all that a short command imports beside it; whoever needs it later gets it.
    """
    if "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # what Python takes for "there is none"
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules["typing_extensions"]
