"""What is imported is what a user waits for: `stillroom --version` and the offline pass stay free of heavy packages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[1]
HEAVY = {"pydantic", "pydantic_ai", "openai", "httpx2", "opentelemetry", "argparse", "rich"}


def modules_after(code: str, tmp_path: Path) -> set[str]:
    script = f"{code}\nimport sys\nprint('\\n'.join({{name.split('.')[0] for name in sys.modules}}), file=sys.stderr)"
    environment = {
        "HOME": str(tmp_path),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(PROJECT / "src"),
        "CODEX_HOME": str(PROJECT / "examples" / "codex-home"),
    }
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stderr.split())


def test_importing_the_package_imports_nothing_else(tmp_path: Path) -> None:
    assert not modules_after("import stillroom", tmp_path) & (HEAVY | {"msgspec", "sqlite3", "asyncio"})


def test_version_is_answered_before_anything_heavy_is_imported(tmp_path: Path) -> None:
    code = "from stillroom.cli import main\ntry:\n    main(['--version'])\nexcept SystemExit:\n    pass"
    assert not modules_after(code, tmp_path) & HEAVY


def test_a_pass_without_a_model_imports_no_http_client_and_no_sdk(tmp_path: Path) -> None:
    code = (
        "from stillroom.cli import main\n"
        "try:\n    main(['run', '--backfill', '--json', '--now', '2026-11-30T09:00:00Z'])\nexcept SystemExit:\n    pass"
    )
    loaded = modules_after(code, tmp_path)
    assert (tmp_path / ".stillroom" / "memories" / "MEMORY.md").exists()
    assert not loaded & {"pydantic", "pydantic_ai", "openai", "httpx2", "opentelemetry", "zipfile", "rich"}


def test_a_pass_is_ready_before_any_rule_is_imported(tmp_path: Path) -> None:
    code = "import sys, stillroom.pipeline\nprint(*(name for name in sys.modules if 'offline.session' in name))"
    environment = {"HOME": str(tmp_path), "PYTHONPATH": str(PROJECT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == []


def test_a_session_start_imports_nothing_that_takes_long(tmp_path: Path) -> None:
    """What a hook calls: every agent waits for it, at every start."""
    code = (
        "import sys, stillroom\nbefore = set(sys.modules)\n"
        "from stillroom.recall.injection.instructions import fast_instructions\n"
        "fast_instructions('/nowhere', None, '/')\nprint(*set(sys.modules) - before)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(PROJECT / "src"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    ours = {name.partition(".")[0] for name in done.stdout.split()} - {"stillroom"}
    assert not ours & (HEAVY | {"msgspec", "sqlite3", "typing", "pathlib", "dataclasses", "subprocess", "asyncio"})
    assert {name for name in done.stdout.split() if name.startswith("stillroom.")} == {
        "stillroom.recall",
        "stillroom.recall.projects",
        *(
            f"stillroom.recall.projects.{name}"
            for name in ("declared", "objects", "remotes", "repository", "switched_off")
        ),
        "stillroom.recall.injection",
        *(f"stillroom.recall.injection.{name}" for name in ("instructions", "prepared", "quick_json", "statements")),
        "stillroom.system",
        "stillroom.wording",
    }


def test_metrics_go_to_a_provider_that_the_environment_names(tmp_path: Path) -> None:
    count = "from stillroom import telemetry\ntelemetry.count('memory.startup', status='ok')"
    assert "opentelemetry" not in modules_after(count, tmp_path)
    named = "import os\nos.environ['OTEL_PYTHON_METER_PROVIDER'] = 'default_meter_provider'\n"
    assert "opentelemetry" in modules_after(named + count, tmp_path)


def test_searching_imports_no_http_client_no_sdk_and_no_telemetry(tmp_path: Path) -> None:
    code = "from stillroom.cli import main\ntry:\n    main(['search', 'word'])\nexcept SystemExit:\n    pass"
    assert not modules_after(code, tmp_path) & {"pydantic", "pydantic_ai", "openai", "httpx2", "opentelemetry", "mcp"}


#: What no short command has a use for. `dataclasses` brings `inspect`, `hashlib` brings OpenSSL, `tempfile` and
#: `argparse` bring every compressor, and each of them takes longer than most of our own modules.
SLOW = {
    *("argparse", "ast", "asyncio", "backports.zstd", "concurrent.futures", "dataclasses", "email", "hashlib"),
    *("httpx2", "inspect", "json", "logging", "pydantic", "random", "rich", "shutil", "tempfile", "tomllib"),
    "typing_extensions",
}


def all_after(words: list[str], tmp_path: Path) -> set[str]:
    """Every module that a command loads, by its full name."""
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT / "src")}
    script = (
        "import sys\nbefore = set(sys.modules)\n"
        f"sys.argv[1:] = {words!r}\n"
        "from stillroom.cli import main\ntry:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end\n"
        "print(*set(sys.modules) - before, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stderr.splitlines()[-1].split())


def test_git_is_asked_why_a_line_stands_there_before_sessions_and_secrets_can_be_read(tmp_path: Path) -> None:
    code = "import stillroom.cli.app, stillroom.cli.why"
    assert not modules_after(code, tmp_path) & {"re2", "rich", "sqlite3", "asyncio"}
