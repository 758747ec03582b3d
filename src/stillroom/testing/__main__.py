"""`python -m stillroom.testing --port 0`: the loopback model in its own process. Prints its base URL, then serves.

Ends when its standard input is closed, so that it never outlives the program that started it.
"""

from __future__ import annotations

import argparse
import sys
import time

from stillroom.testing.loopback import SAMPLE_MEMORY, LoopbackModel
from stillroom.testing.script import RecordedRequest, Reply, Say, Slowly


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m stillroom.testing", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--think", type=float, default=0.0, metavar="SECONDS", help="wait before each answer")
    parser.add_argument("--answer", help="the text to answer with; without it a sample memory")
    parser.add_argument("--times", action="store_true", help="print the time of each request (CLOCK_MONOTONIC, s)")
    options = parser.parse_args()
    answer = Say(options.answer if options.answer is not None else SAMPLE_MEMORY)
    reply: Reply = Slowly(options.think, answer) if options.think else answer
    arrived: list[float] = []

    def respond(request: RecordedRequest) -> Reply:
        arrived.append(time.monotonic())
        return reply

    with LoopbackModel(respond, port=options.port, keep_requests=False) as server:
        print(server.base_url, flush=True)
        sys.stdin.read()
        if options.times:
            print("\n".join(f"{at:.6f}" for at in arrived), flush=True)


if __name__ == "__main__":
    main()
