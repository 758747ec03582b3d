#!/bin/sh
# The main job on real sessions: six that Codex CLI recorded, distilled into a home that is thrown away.
set -eu
sessions="$(cd "$(dirname "$0")/codex-home" && pwd)"
home="$(mktemp -d)"
trap 'rm -rf "$home"' EXIT INT TERM

echo "sessions: $sessions"
echo "home:     $home (thrown away at the end)"
echo
# Nobody's own sessions: only these.
cat >"$home/config.toml" <<END
[memories]
default_sources = false

[[sources]]
format = "codex"
root = "$sessions"
END
# The sessions are from 2026-11-29. The clock is set to the day after, so that they count as finished.
stillroom run --home "$home" --backfill --now 2026-11-30T09:00:00Z

echo
echo "the memory folder:"
(cd "$home/memories" && find . -type f | sort | sed 's|^\./|  |')
echo
echo "memory_summary.md:"
echo
cat "$home/memories/memory_summary.md"
