"""How long a jail takes to start and to answer: `python -m bench.bench_sandbox`. Medians, milliseconds."""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path

from stillroom.config import StageTwo
from stillroom.sandbox import Jail, JailLimits, choose, probe

_STARTS, _CALLS, _SHELLS = 7, 500, 15


async def measure(jail: Jail, folder: Path) -> dict[str, float]:
    limits = JailLimits.of(StageTwo())
    figures: dict[str, list[float]] = {"start": [], "close": [], "read": [], "write": [], "shell": []}

    async def timed(name: str, tool: str, arguments: dict[str, object]) -> None:
        begun = time.perf_counter()
        result = await worker.call(tool, arguments)
        figures[name].append(time.perf_counter() - begun)
        assert result.ok, result

    for _ in range(_STARTS):
        begun = time.perf_counter()
        worker = await jail.start(folder, limits=limits)
        figures["start"].append(time.perf_counter() - begun)
        begun = time.perf_counter()
        await worker.close()
        figures["close"].append(time.perf_counter() - begun)
    async with await jail.start(folder, limits=limits) as worker:
        for number in range(_CALLS):
            await timed("read", "read", {"path": "0.md"})
            if number % 10 == 0:
                await timed("write", "write", {"path": "new.md", "content": f"{number}\n"})
        if jail.level != "files":
            for _ in range(_SHELLS):
                await timed("shell", "shell", {"command": "grep -rl needle . | wc -l"})
    return {name: round(statistics.median(values) * 1000, 2) for name, values in figures.items() if values}


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory).resolve()
        for number in range(500):
            (folder / f"{number}.md").write_text("a line of a summary\n" * 50, encoding="utf-8")
        figures = {
            report.level: asyncio.run(measure(choose(report.level), folder)) for report in probe() if report.available
        }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
