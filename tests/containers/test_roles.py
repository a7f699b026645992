"""What the images of the roles can do, on a read-only root as the agent's user."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from containers.box import BoxLimits, Mount
from containers.disk import make_disk

pytestmark = [pytest.mark.engine, pytest.mark.slow]
HOUSE = Path(__file__).parent.parent.parent
LIMITS = BoxLimits(cpus=2, memory_mb=1500, pids=200)


@pytest.fixture
def tabular_box(opened, spec, role_image, lease):
    with make_disk(lease.folder, 500, 1000, 1000) as disk:
        folders = {"workspace": "/workspace", "home": "/home/agent", "tmp": "/tmp"}
        mounts = tuple(Mount(disk.path / name, target, read_only=False) for name, target in folders.items())
        box = opened(replace(spec, image=role_image("tabular"), limits=LIMITS, mounts=mounts, tmpfs={}))
        yield box
        box.remove()


def test_tools_an_agent_expects(box, say):
    tools = "python3.11 bash git jq rg less ps nano socat"
    assert say(box, f"for tool in {tools}; do command -v $tool >/dev/null || echo no $tool; done") == (0, "")
    assert say(box, "ls /etc/ssl/certs/ca-certificates.crt /usr/lib/*/libstdc++.so.6 | wc -l")[1] == "2"
    assert say(box, "date +%Z; locale charmap 2>/dev/null; id")[1].split()[0] == "UTC"


def test_own_environment_sees_the_images_packages(tabular_box, say):
    assert [tabular_box.exec(("/opt/bin/make-env",)).exit_code for _ in range(2)] == [0, 0], "also the second time"
    code, text = say(
        tabular_box,
        "python -c 'import sys, polars; print(sys.prefix, polars.__file__)'; command -v python pip; "
        "pip --disable-pip-version-check list --format json",
    )
    assert code == 0
    where, python, pip, listing = text.splitlines()[-4:]
    assert where.split() == ["/home/agent/env", "/opt/env/lib/python3.11/site-packages/polars/__init__.py"]
    assert (python, pip) == ("/home/agent/env/bin/python", "/home/agent/env/bin/pip")
    assert {"lightgbm", "pandas", "xgboost-cpu"} <= {one["name"] for one in json.loads(listing)}


def test_agent_can_install_beside_the_images_packages(tabular_box, say):
    script = (
        "/opt/bin/make-env && mkdir -p /tmp/p/mine && cd /tmp/p && echo 'x = 5' > mine/__init__.py && "
        'printf \'[project]\\nname = "mine"\\nversion = "1"\\n[tool.setuptools]\\npackages = ["mine"]\\n\' > pyproject.toml && '
        "pip install -q --disable-pip-version-check --no-build-isolation . && cd / && "
        "python -c 'import mine, numpy; print(mine.x, mine.__file__)'"
    )
    code, text = say(tabular_box, script)
    assert (code, text.splitlines()[-1]) == (0, "5 /home/agent/env/lib/python3.11/site-packages/mine/__init__.py")


def test_tabular_packages_work_and_are_compiled(tabular_box, say):
    modules = "duckdb lightgbm lxml.etree matplotlib.pyplot numpy pandas polars pyarrow scipy.stats sklearn.linear_model statsmodels.api xgboost"
    script = f"python -v -c 'import {modules.replace(' ', ', ')}' 2>&1 | grep -cE 'bytecode is stale|could not create|wrote '"
    assert say(tabular_box, script)[1] == "0"
    train = (
        "import numpy as np, lightgbm, xgboost, duckdb; x = np.random.default_rng(0).normal(size=(200, 3)); y = x[:, 0] > 0; "
        "a = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1).fit(x, y).score(x, y); "
        "b = xgboost.XGBClassifier(n_estimators=5).fit(x, y).score(x, y); print(a > 0.9, b > 0.9, duckdb.sql('select 42').fetchall()[0][0])"
    )
    code, text = say(tabular_box, f'python -W ignore -c "{train}"')
    assert (code, text.splitlines()[-1]) == (0, "True True 42")


def test_verifier_runs_isolated_on_a_read_only_root(engine, spec, role_image):
    package = HOUSE / "verifiers_hidden"
    files = {f"verifiers_hidden/{path.relative_to(package)}": path for path in package.rglob("*.py")}
    image = role_image("verifier", files)
    checks = replace(spec, image=image, limits=LIMITS)
    done = engine.run(replace(checks, command=("python", "-I", "-m", "verifiers_hidden", "--help")), timeout_s=60)
    assert done.exit_code == 0 and b"judge" in done.stdout, done
    modules = "numpy, polars, pyarrow, scipy.stats, sklearn.metrics, verifiers_hidden.kit"
    script = f"python -I -v -c 'import {modules}; print(verifiers_hidden.kit.__cached__)' 2>&1 | grep -E 'stale|could not create|wrote |^/opt'"
    done = engine.run(replace(checks, command=("sh", "-c", script)), timeout_s=60)
    assert done.stdout.splitlines() == [
        b"/opt/env/lib/python3.11/site-packages/verifiers_hidden/__pycache__/kit.cpython-311.pyc"
    ]


def test_the_agents_images_hold_no_verifier(box, tabular_box, say):
    for one in (box, tabular_box):
        assert say(one, "find / -xdev -name '*verifiers_hidden*' 2>/dev/null")[1] == ""
