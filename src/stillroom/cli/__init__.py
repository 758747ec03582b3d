"""The `stillroom` command: parse, call one function, print."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of the console script. Ends the process with the command's exit code."""
    tokens = list(sys.argv[1:] if argv is None else argv)
    try:
        from stillroom.cli.app import run_command
    except KeyboardInterrupt:  # the imports take long enough to be interrupted, and a traceback tells a person nothing
        sys.exit(130)
    sys.exit(run_command(tokens))
