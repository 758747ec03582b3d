"""How fast secrets are found: `python -m bench.bench_redact [FILE…]`. Medians, MB/s, paired in one run.

Without files: session lines made of Python's own library, a planted secret about every 100 kB. Beside ours, the
standard library's `re` looking for the same heads, and for the four patterns of Codex.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

from stillroom.rollouts.redact import heads_pattern, redact, redact_counted

_ROUNDS, _BYTES = 5, 6_000_000
_CODEX = [
    re.compile(r"(?i:\bbearer[ \t]+)[A-Za-z0-9._~+/-]{16,}=*"),
    re.compile(r"sk-[A-Za-z0-9]{20,}"),
    re.compile(r"\bAKIA[0-9A-Z]{16}\b"),
    re.compile(r"(?i)\b(api[_-]?key|token|secret|password)\b(\s*[:=]\s*)([\"']?)[^\s\"']{8,}"),
]


def session_texts(paths: list[Path]) -> list[str]:
    """Texts as rendering hands them over: one line of JSON each."""
    if paths:
        return [line for path in paths for line in path.read_text(encoding="utf-8", errors="replace").splitlines()]
    texts: list[str] = []
    total = 0
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        output = path.read_text(encoding="utf-8", errors="replace")
        if total // 100_000 != (total + len(output)) // 100_000:
            output += "\nexport GITHUB_TOKEN=ghp_" + "a1" * 18
        texts.append(json.dumps({"type": "function_call_output", "call_id": "call_1", "output": output}))
        total += len(output)
        if total > _BYTES:
            break
    return texts


def _codex_patterns(text: str) -> None:
    for pattern in _CODEX:
        text = pattern.sub("[REDACTED_SECRET]", text)


def main() -> None:
    texts = session_texts([Path(name) for name in sys.argv[1:]])
    size = sum(len(text.encode()) for text in texts)
    with_re = re.compile(heads_pattern().encode())
    ways: dict[str, Callable[[str], object]] = {
        "ours": redact,
        "re, the same heads": lambda text: with_re.findall(text.encode()),
        "re, Codex's four": _codex_patterns,
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(_ROUNDS):
        for name, way in ways.items():
            started = time.process_time()
            for text in texts:
                way(text)
            times[name].append(time.process_time() - started)
    found = sum((redact_counted(text)[1].total() for text in texts), 0)
    figures = {name: round(size / statistics.median(spent) / 1e6, 1) for name, spent in times.items()}
    print(json.dumps({"MB": round(size / 1e6, 1), "secrets": found, "MB/s": figures}, indent=2))


if __name__ == "__main__":
    main()
