#!/usr/bin/env bash
# Pin the dependencies anew: hashes, no index URLs, no host names.
set -euo pipefail
cd "$(dirname "$0")/.."
compile() {
    .venv/bin/pip-compile -q --generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
        --allow-unsafe --strip-extras "$@" pyproject.toml
}
compile --extra build -o requirements.lock
compile --extra build --extra dev -c requirements.lock -o requirements-dev.lock
