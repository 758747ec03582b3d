"""The `stillroom` command: parse, call one function, print."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of the console script. Ends the process with the command's exit code."""
    tokens = list(sys.argv[1:] if argv is None else argv)
    if tokens in (["--version"], ["-V"]):  # answered before anything heavy is imported
        from stillroom import __version__

        print(__version__)
        sys.exit(0)
    from stillroom.cli.app import run_command

    sys.exit(run_command(tokens))
