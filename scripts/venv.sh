#!/usr/bin/env bash
# Make .venv from a hash-pinned lock file, with the suite itself in it: scripts/venv.sh LOCK
set -euo pipefail
cd "$(dirname "$0")/.."
lock=$1

python=""
for candidate in python3.13 python3.12 python3.11 python3; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ] || ! "$python" -c 'import ensurepip' 2>/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -q && apt-get install -qy python3 python3-venv
        python=${python:-python3}
    else
        echo "Python 3.11 or newer with the venv module is needed: install python3 and python3-venv, then run again." >&2
        exit 1
    fi
fi

[ -x .venv/bin/python ] || "$python" -m venv .venv
export PIP_DISABLE_PIP_VERSION_CHECK=1
.venv/bin/pip install -q --require-hashes -r "$lock"
# The lock holds the build tools too, so that nothing is fetched without a hash.
.venv/bin/pip install -q --no-deps --no-build-isolation -e . 2>&1 | { grep -iE '^error' || true; }
.venv/bin/hab-suite --version
