#!/bin/sh
# Makes ~/env: a virtual environment of the agent's own that also sees the image's packages in /opt/env.
# By hand, because `python -m venv` takes seconds where this takes milliseconds.
set -eu
env="${1:-$HOME/env}"
site="$env/lib/python3.11/site-packages"
mkdir -p "$env/bin" "$site"
printf 'home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11\n' > "$env/pyvenv.cfg"
ln -sf /usr/bin/python3.11 "$env/bin/python3.11"
ln -sf python3.11 "$env/bin/python3"
ln -sf python3.11 "$env/bin/python"
echo /opt/env/lib/python3.11/site-packages > "$site/image.pth"
for name in pip pip3; do
    printf '#!%s/bin/python\nimport sys\nfrom pip._internal.cli.main import main\nsys.exit(main())\n' "$env" > "$env/bin/$name"
    chmod +x "$env/bin/$name"
done
