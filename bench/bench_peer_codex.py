"""Phase 1 of the real Codex CLI and of Stillroom, paired: the same rollouts, the same loopback model, in one run.

    python bench/bench_peer_codex.py             # 50 × 61 kB, 128 × 61 kB, 50 × 560 kB; five rounds, some minutes
    python bench/bench_peer_codex.py --quick     # 8 × 61 kB, one round
    python bench/bench_peer_codex.py --json

Needs npm once (the CLI is kept under `.cache/npm`). Codex's total is from `turn/start`, which starts its pipeline in a
server that already runs, to its last job. Stillroom's is the whole process, from start to exit: imports, discovery,
phase 1 and an offline phase 2. Both are measured with the machine's certificates and with a bundle of one, as loading
the bundle is most of Codex's time. From first request to last job is what both do alike.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from stillroom.testing import SAMPLE_MEMORY, LoopbackModel, RecordedRequest, Reply, Say, sample_rollout

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from tests.interop.codex_client import VERSION, CodexServer, codex_binary, write_config  # noqa: E402

CASES = ((50, 61_000), (128, 61_000), (50, 560_000))
ROUNDS = 5
EXTRACTOR = "extractor"
#: Old enough to be idle, young enough for the age limit.
AGE_SECONDS = 86_400
POLL_SECONDS = 0.004
GIVE_UP_SECONDS = 120
BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
_DONE = "SELECT count(*) FROM jobs WHERE kind = 'memory_stage1' AND status IN ('done', 'error')"
_FAILED = "SELECT last_error FROM jobs WHERE kind = 'memory_stage1' AND status = 'error' LIMIT 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One run, in seconds."""

    total: float
    last_job: float  #: from the start to the last job
    first_request_to_last_job: float
    cpu: float
    peak_rss_mb: float


class Model:
    """The loopback model in a process of its own, so that it takes no time from whoever is measured."""

    def __init__(self) -> None:
        environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY / "src")}
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
        )
        assert self._process.stdout is not None
        self.base_url = self._process.stdout.readline().strip()

    def close(self) -> list[float]:
        """End it; the times at which extraction requests came (CLOCK_MONOTONIC)."""
        out, _ = self._process.communicate("")
        return [float(line) for line in out.split()]


def serve() -> None:
    """What `Model` runs."""
    arrived: list[float] = []

    def respond(request: RecordedRequest) -> Reply:
        if request.outline.model == EXTRACTOR:
            arrived.append(time.monotonic())
        return Say(SAMPLE_MEMORY)

    with LoopbackModel(respond, keep_requests=False) as model:
        print(model.base_url, flush=True)
        sys.stdin.read()
    print("\n".join(f"{at:.6f}" for at in arrived))


def run_codex(work: Path, count: int, certificates: Mapping[str, str]) -> Measured:
    """One user turn of the real Codex; its pipeline takes the rollouts."""
    codex_home = work / "codex"
    for leftover in codex_home.glob("memories*"):
        if leftover.is_dir():
            shutil.rmtree(leftover)
        else:
            leftover.unlink()
    (codex_home / "memories").mkdir()  # its presence makes Codex take version 1, the one with raw memories
    model = Model()
    keys = {"max_rollouts_per_startup": 128, "extract_model": EXTRACTOR}
    write_config(codex_home, model.base_url, memories=True, keys=keys)
    project = work / "project"
    project.mkdir(exist_ok=True)
    with CodexServer(codex_binary(), codex_home, environ=certificates) as codex:
        thread_id = codex.start_thread(project)
        _await(next(codex_home.glob("state_*.sqlite")), "SELECT count(*) FROM threads", count)
        cpu = _cpu_seconds(codex.pid)
        started = time.monotonic()
        said = [{"type": "text", "text": "Good morning."}]
        codex.request("turn/start", {"threadId": thread_id, "input": said})
        ended = _await_jobs(codex_home / "memories_1.sqlite", count)
        cpu, rss = _cpu_seconds(codex.pid) - cpu, _peak_rss_mb(codex.pid)
    first = min(model.close())
    wall = ended - started
    return Measured(total=wall, last_job=wall, first_request_to_last_job=ended - first, cpu=cpu, peak_rss_mb=rss)


def run_stillroom(work: Path, count: int, certificates: Mapping[str, str]) -> Measured:
    """One `stillroom run` on the same rollouts, from nothing."""
    home = work / "stillroom"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    model = Model()
    text = f"""[memories]
extract_model = "loopback:{EXTRACTOR}"
consolidation_model = "offline"
default_sources = false
max_rollouts_per_startup = 128
min_rollout_idle_hours = 1
max_weighted_tokens_per_run = 1_000_000_000  # Codex has no cap, and 50 long sessions are more than ours
max_weighted_tokens_per_day = 1_000_000_000
[providers.loopback]
kind = "openai-responses"
base_url = "{model.base_url}"
[[sources]]
format = "codex"
root = {json.dumps(str(work / "codex"))}
"""
    (home / "config.toml").write_text(text, encoding="utf-8")
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(work),
        "PYTHONPATH": str(REPOSITORY / "src"),
        "NO_PROXY": "127.0.0.1",
        **certificates,
    }
    command = [sys.executable, "-m", "stillroom", "run", "--home", str(home), "--json"]
    started = time.monotonic()
    with (work / "stillroom.out").open("wb") as out:
        process = subprocess.Popen(command, env=environ, stdout=out, stderr=out, stdin=subprocess.DEVNULL)

        def alive() -> bool:
            return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

        try:
            last = _await_jobs(home / "state.sqlite3", count, alive=alive)
        finally:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
    ended = time.monotonic()
    arrived = model.close()
    if process.returncode:
        raise SystemExit((work / "stillroom.out").read_text(encoding="utf-8"))
    return Measured(
        total=ended - started,
        last_job=last - started,
        first_request_to_last_job=last - min(arrived),
        cpu=usage.ru_utime + usage.ru_stime,
        peak_rss_mb=usage.ru_maxrss / 1024,
    )


def _await_jobs(path: Path, count: int, *, alive: Callable[[], bool] = lambda: True) -> float:
    ended = _await(path, _DONE, count, alive=alive)
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
        failed = database.execute(_FAILED).fetchone()
    if failed:
        raise SystemExit(f"a job failed: {failed[0]}")
    return ended


def _await(path: Path, query: str, count: int, *, alive: Callable[[], bool] = lambda: True) -> float:
    """The moment when the count that `query` asks for reaches `count`."""
    give_up, seen, ended = time.monotonic() + GIVE_UP_SECONDS, 0, False
    while time.monotonic() < give_up and not ended:
        ended = not alive()
        try:
            with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
                while time.monotonic() < give_up:
                    gone = not alive()
                    seen = database.execute(query).fetchone()[0]
                    if seen >= count:
                        return time.monotonic()
                    if gone:
                        break
                    time.sleep(POLL_SECONDS)
        except sqlite3.OperationalError:  # not there yet, or its tables are not
            time.sleep(POLL_SECONDS)
    raise SystemExit(f"only {seen} of {count} in `{path}`")


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak_rss_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def _one_certificate(work: Path) -> Path:
    bundle = next(Path(path) for path in BUNDLES if Path(path).exists()).read_text(encoding="utf-8")
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----\n"
    path = work / "one.pem"
    path.write_text(bundle[bundle.index(begin) : bundle.index(end) + len(end)], encoding="utf-8")
    return path


RUNNERS = {"Codex": run_codex, "Stillroom": run_stillroom}


def measure(count: int, size: int, rounds: int) -> dict[str, list[Measured]]:
    """Every runner with both bundles, in turns, so that a slow minute of the machine hits all alike."""
    found: dict[str, list[Measured]] = {}
    with tempfile.TemporaryDirectory(prefix="peer-") as name:
        work = Path(name)
        now = time.time()
        for number in range(1, count + 1):
            started_at_ms = int((now - AGE_SECONDS - number) * 1000)
            path = sample_rollout(work / "codex", size_bytes=size, number=number, started_at_ms=started_at_ms)
            os.utime(path, (now - AGE_SECONDS, now - AGE_SECONDS))
        bundles = {"machine's certificates": {}, "one certificate": {"SSL_CERT_FILE": str(_one_certificate(work))}}
        for _ in range(rounds):
            for bundle, environ in bundles.items():
                for runner, run in RUNNERS.items():
                    found.setdefault(f"{runner}, {bundle}", []).append(run(work, count, environ))
    return found


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} [{min(values):.2f}-{max(values):.2f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    cases, rounds = (((8, 61_000),), 1) if options.quick else (CASES, options.rounds)
    measured = {f"{count} × {size // 1000} kB": measure(count, size, rounds) for count, size in cases}
    fields = list(Measured.__slots__)
    if options.json:
        medians = {
            case: {
                name: {field: statistics.median(getattr(run, field) for run in runs) for field in fields}
                for name, runs in rows.items()
            }
            for case, rows in measured.items()
        }
        print(json.dumps(medians, indent=1))
        return
    print(f"Codex {VERSION}, {os.cpu_count()} cores, median [min-max] of {rounds}, seconds\n")
    print("| rollouts | who | total | to the last job | first request to last job | CPU | peak RSS MB |")
    print("|---|---|---|---|---|---|---|")
    for case, rows in measured.items():
        for name, runs in rows.items():
            columns = [[getattr(run, field) for run in runs] for field in fields]
            figures = [_spread(column) for column in columns[:4]]
            print(f"| {case} | {name} | {' | '.join(figures)} | {statistics.median(columns[4]):.0f} |")


if __name__ == "__main__":
    main()
