#!/bin/sh
# Build the wheel and the sdist, then install each into an empty environment and use it there.
set -eu
python="$1"
rm -rf dist
"$python" -m build --outdir dist . >/dev/null
here="$(pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT INT TERM
for package in dist/*.whl dist/*.tar.gz; do
    "$python" -m venv "$work/env"
    "$work/env/bin/python" -m pip install --quiet --disable-pip-version-check "$here/$package"
    (
        cd "$work"
        HOME="$work" ./env/bin/stillroom --version
        HOME="$work" ./env/bin/stillroom init --dry-run --agent codex | grep -q "$work/env/bin/stillroom-hook codex"
        HOME="$work" CODEX_HOME="$here/examples/codex-home" ./env/bin/stillroom run \
            --home "$work/home" --backfill --now 2026-11-30T09:00:00Z --json >/dev/null
        test -s home/memories/MEMORY.md
        ./env/bin/python -c "import stillroom, pathlib; assert (pathlib.Path(stillroom.__file__).parent / 'py.typed').exists()"
    )
    echo "ok: $package"
    rm -rf "$work/env" "$work/home"
done
