#!/bin/sh
# Make sure that Chromium is there for the tests of the site.
set -eu
command -v chromium >/dev/null && exit 0
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "browser: installing chromium"
    apt-get -o Acquire::Retries=3 -q update >/dev/null
    DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 -qy install --no-install-recommends chromium >/dev/null
    exit 0
fi
echo "browser: install chromium (\`sudo apt-get install chromium\`), then run again" >&2
exit 1
