"""llama.cpp's own server for one model, in a process of its own.

Run with the path of a model, the tokens of its window and a number of threads; it prints its address and ends when its
standard input does. What it says is the same each time: the likeliest word.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def serve(model: Path, *, context_tokens: int, threads: int) -> None:
    """Serve `model` until standard input ends."""
    import xllamacpp  # only in the server's process: a test is skipped where there is none

    settings = xllamacpp.CommonParams()
    settings.model.path = str(model)
    settings.n_ctx = context_tokens
    settings.n_parallel = 1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    settings.sampling.temp = 0
    settings.sampling.seed = 0
    settings.warmup = settings.ui = False
    settings.offline = True
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)
    sys.stdin.read()


@contextmanager
def running(*command: str) -> Iterator[str]:
    """The address of a server, by the script and the arguments that start it."""
    with subprocess.Popen(
        [sys.executable, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "OMP_WAIT_POLICY": "PASSIVE"},
    ) as server:
        assert server.stdout is not None and server.stdin is not None
        try:
            lines = (line.strip() for line in server.stdout)
            yield next(line for line in lines if line.startswith("http://127.0.0.1:"))
        finally:
            server.stdin.close()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), context_tokens=int(sys.argv[2]), threads=int(sys.argv[3]))
