"""Reading citation blocks, telling what commands read, and the pass that counts both, each beside what one would write.

    python bench/bench_citations.py

Medians of paired rounds, CPU time of one core. Citations are put beside regular expressions, commands beside
`shlex.split` (which finds the words and does not say what they do), the counting pass beside a `json.loads` loop that
looks for the same words in every line.
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from stillroom.clock import FixedClock
from stillroom.config import Settings, Source
from stillroom.extract.register import register_threads
from stillroom.recall.usage.citations import CitationStream, parse_memory_citation
from stillroom.recall.usage.counts import count_usage
from stillroom.recall.usage.usage_kinds import memories_usage_kinds_from_command
from stillroom.store import Store
from stillroom.testing.sessions import sample_rollout

ROUNDS = 5
SESSIONS = 200
SESSION_BYTES = 500_000

BLOCK = """<oai-mem-citation>
<citation_entries>
MEMORY.md:234-236|note=[how the tests are run here]
rollout_summaries/2026-11-29T12-16-13-ab12-deploy.md:10-12|note=[why the first try failed]
</citation_entries>
<rollout_ids>
01a2273c-0036-7133-90f0-7698c74b216a
</rollout_ids>
</oai-mem-citation>"""
ANSWER = "Run `make check`; it takes a minute. The deploy needs the staging profile first. " * 12 + "\n" + BLOCK
TEXTS = {
    "answers with a block": ANSWER * 1500,
    "blocks only": BLOCK * 5000,
    "`<` without an end": "<" * 3_000_000,
    "10,000 blocks, none closed": "<oai-mem-citation>" * 10_000 + "<citation_entries>" * 100_000,
    "lists of empty lines": BLOCK.replace("\n", "\n" * 100_000),
}
PLAIN = (
    "make check",
    "git status && git diff --stat",
    "python -m pytest -q tests/test_app.py 2>&1 | tail -n 20",
    "sed -n '1,200p' src/app/main.py",
    "rg -n 'def load_config' src | head -n 20",
    "ls -la && cat README.md",
    "for f in $(ls src); do wc -l $f; done",
    "npm run build > build.log",
    "cat > notes.md <<'EOF'\nsome text\nEOF",
)
MEMORY = (
    "cat /home/u/.codex/memories/MEMORY.md",
    "sed -n '1,200p' ~/.stillroom/memories/MEMORY.md",
    "rg -n 'make check' $HOME/.stillroom/memories/MEMORY.md | head -n 40",
    "cd ~/.stillroom/memories && rg -n deploy MEMORY.md rollout_summaries",
)


def with_expressions(text: str) -> int:
    """What a citation is to a regular expression."""
    blocks = re.findall(r"<oai-mem-citation>(.*?)(?:</oai-mem-citation>|\Z)", text, re.DOTALL)
    found = 0
    for block in blocks:
        found += len(re.findall(r"^(.*):(\d+)-(\d+)\|note=\[(.*)\]$", block, re.MULTILINE))
        found += len(re.findall(r"^[0-9a-f-]{36}$", block, re.MULTILINE))
    return found


def streamed(text: str) -> None:
    stream = CitationStream()
    for at in range(0, len(text), 40):  # a few tokens
        stream.feed(text[at : at + 40])
    stream.finish()


def seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def paired(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[float, float]:
    rounds = [(seconds(ours), seconds(theirs)) for _ in range(ROUNDS)]
    return statistics.median(a for a, _ in rounds), statistics.median(b for _, b in rounds)


def citations() -> None:
    print("| citations | stillroom MB/s | `re` MB/s | in pieces of 40 characters, MB/s |\n|---|---:|---:|---:|")
    for name, text in TEXTS.items():
        size = len(text) / 1e6
        ours, theirs = paired(lambda text=text: parse_memory_citation(text), lambda text=text: with_expressions(text))
        pieces = statistics.median(seconds(lambda text=text: streamed(text)) for _ in range(3))
        print(f"| {name} | {size / ours:.0f} | {size / theirs:.0f} | {size / pieces:.0f} |")


def commands() -> None:
    print("\n| commands | stillroom a second | `shlex.split` a second |\n|---|---:|---:|")
    few = tuple(PLAIN * 2 + MEMORY[:1])
    for name, given in (("any", PLAIN), ("one in 19 reads memory", few), ("all read memory", MEMORY)):
        many = given * (6000 // len(given))
        ours, theirs = paired(
            lambda many=many: [memories_usage_kinds_from_command(command) for command in many],
            lambda many=many: [shlex.split(command) for command in many],
        )
        print(f"| {name} | {len(many) / ours:,.0f} | {len(many) / theirs:,.0f} |")


def by_hand(files: list[Path]) -> int:
    found = 0
    for path in files:
        with path.open(encoding="utf-8") as file:
            for line in file:
                text = json.dumps(json.loads(line)["payload"])
                found += "oai-mem-citation" in text or "memories/" in text
    return found


def write_sessions(codex: Path, *, used: bool) -> list[Path]:
    paths = []
    for number in range(SESSIONS):
        path = sample_rollout(codex, size_bytes=SESSION_BYTES, number=number)
        paths.append(path)
        if not used:
            continue
        first, rest = path.read_bytes().split(b"\n", 1)
        told = message("developer", f"The memory is in /home/u/.stillroom/memories. Cite it: {BLOCK}")
        call = item({"type": "function_call", "name": "exec_command", "call_id": "memory-1",
                     "arguments": json.dumps({"cmd": MEMORY[2]})})  # fmt: skip
        output = item({"type": "function_call_output", "call_id": "memory-1", "output": "Process exited with code 0"})
        path.write_bytes(b"\n".join([first, told, call, output, rest.rstrip(b"\n"), message("assistant", ANSWER), b""]))
    return paths


def message(role: str, text: str) -> bytes:
    kind = "output_text" if role == "assistant" else "input_text"
    return item({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})


def item(payload: dict[str, object]) -> bytes:
    line = {"timestamp": "2026-06-01T12:16:15.270Z", "type": "response_item", "payload": payload}
    return json.dumps(line, separators=(",", ":")).encode()


def counting(*, used: bool) -> None:
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        paths = write_sessions(folder / "codex", used=used)
        size = sum(path.stat().st_size for path in paths) / 1e6
        clock = FixedClock(1_790_000_000_000)
        for number in range(ROUNDS):
            source = Source(format="codex", root=str(folder / "codex"))
            settings = Settings(home=folder / f"home{number}", sources=(source,))
            with Store.open(settings.database, clock=clock) as store:
                asyncio.run(register_threads(settings, store))
                count = partial(count_usage, settings, store, clock)
                ours.append(seconds(count))
                again = seconds(count)
            if number < 2:
                theirs.append(seconds(lambda: by_hand(paths)))
    mine, other = statistics.median(ours), statistics.median(theirs)
    name = "each reads and cites memory" if used else "none uses memory"
    print(f"| {name} | {size / mine:.0f} | {size / other:.0f} | {mine * 1000:.0f} ms | {again * 1000:.1f} ms |")


def main() -> None:
    citations()
    commands()
    print(f"\n| counting {SESSIONS} sessions of {SESSION_BYTES // 1000} kB", end="")
    print(" | stillroom MB/s | `json.loads` MB/s | a pass | the next pass |\n|---|---:|---:|---:|---:|")
    counting(used=False)
    counting(used=True)


if __name__ == "__main__":
    main()
