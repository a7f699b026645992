"""A simulated run of 100,000 trials: report within 5 s and 1 GB, site within 60 s, cost linear in the trials.

Budgets are asserted on processor time, imports included: on an idle machine the clock shows no more, on a busy one
it shows the neighbours' work.

``python tests/bench/bench_report.py [trials ...]`` prints what it measures; under pytest the budgets are asserted.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[2]
AGENTS = (
    ("codex", "gpt-5.4", "high", 0.05),
    ("codex", "gpt-5.4", "low", 0.0),
    ("codex", "gpt-5.4-mini", "", -0.1),
    ("claude-code", "claude-opus-4-5", "", 0.1),
    ("claude-code", "claude-sonnet-4-6", "", 0.0),
    ("copilot", "gpt-5.5", "", 0.05),
)
TRIALS = 100_000
REPORT_S, REPORT_MB, SITE_S = 5.0, 1024, 60.0
WORKER = """
import json, resource, sys, time
from pathlib import Path
started = time.perf_counter()
from results.folder import RunFolder
if sys.argv[1] == "report":
    from results.report import build_report
    from results.render import FORMATS
    report = build_report([RunFolder.open(Path(sys.argv[2]))])
    size = sum(len(render(report)) for render in FORMATS.values())
else:
    from results.site.build import build_site
    size = build_site([RunFolder.open(Path(sys.argv[2]))], Path(sys.argv[3])).stat().st_size
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"seconds": time.perf_counter() - started, "cpu_s": time.process_time(), "peak_mb": peak, "size": size}))
"""


def simulated(folder: Path, trials: int) -> Path:
    """Make the run in a process of its own, so that its memory is not counted."""
    per_instance = 54 * len(AGENTS) * 3
    code = (
        "import sys; from pathlib import Path; import simulate\n"
        f"simulate.simulate(Path(sys.argv[1]), {AGENTS!r}, instances={-(-trials // per_instance)}, durable=False)"
    )
    target = folder / f"run-{trials}"
    subprocess.run(
        [sys.executable, "-c", code, str(target)], cwd=HOUSE / "tests" / "results", check=True, env=environment()
    )
    return target


def environment() -> dict[str, str]:
    return {"PYTHONPATH": f"{HOUSE}:{HOUSE / 'tests' / 'results'}", "PATH": "/usr/bin:/bin", "HOME": "/tmp"}


def measured(what: str, run: Path, *more: str) -> dict[str, float]:
    """Seconds from a cold start, imports included, and peak memory of one command."""
    command = [sys.executable, "-c", WORKER, what, str(run), *more]
    done = subprocess.run(command, cwd=HOUSE, check=True, capture_output=True, text=True, env=environment())
    return json.loads(done.stdout)


@pytest.mark.full
def test_budgets(tmp_path):
    run = simulated(tmp_path, TRIALS)
    report = measured("report", run)
    assert report["cpu_s"] <= REPORT_S and report["peak_mb"] <= REPORT_MB, report
    site = measured("site", run, str(tmp_path / "site"))
    assert site["cpu_s"] <= SITE_S, site


@pytest.mark.full
def test_cost_is_linear(tmp_path):
    small, large = (measured("report", simulated(tmp_path, trials))["cpu_s"] for trials in (TRIALS // 4, TRIALS))
    assert large <= 4 * 1.3 * small


def main() -> None:
    sizes = [int(word) for word in sys.argv[1:]] or [TRIALS // 4, TRIALS]
    with tempfile.TemporaryDirectory() as name:
        for trials in sizes:
            run = simulated(Path(name), trials)
            mb = (run / "events.jsonl").stat().st_size / 1e6
            report, site = measured("report", run), measured("site", run, f"{name}/site-{trials}")
            print(
                f"{trials} trials, journal {mb:.0f} MB: report {report['cpu_s']:.1f} s CPU, "
                f"{report['seconds']:.1f} s wall, {report['peak_mb']:.0f} MB; site {site['cpu_s']:.1f} s CPU, "
                f"{site['seconds']:.1f} s wall, {site['peak_mb']:.0f} MB",
                flush=True,
            )


if __name__ == "__main__":
    main()
