"""What the gateway costs: milliseconds a request, delay of a stream, time to each CLI's first request, twelve at once.

``python tests/bench/bench_gateway.py [requests|clis|twelve|runs]``, all without a word. Prints one JSON object a line.
"""

import http.client
import json
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.runners.cli_box import MODELS, Stage, drive, make_stage
from tests.runners.suite_run import AGENTS, suite
from tests.stub_model.host_gateway import Connection
from tests.stub_model.script import Script, Turn
from tests.stub_model.server import StubModel

REQUESTS = 200
PATH = "/v1/chat/completions"
BODY = json.dumps(
    {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": "x" * 50_000}],
        "tools": [{"type": "function", "function": {"name": "bash", "parameters": {}}}],
    }
)
SOLVE = Script((Turn(text="Writing.", shell="echo 42 > answer.txt"), Turn(text="Done.")))


def ask(connection: http.client.HTTPConnection, path: str) -> tuple[float, list[float]]:
    """Send one request; returns milliseconds to its end, and when each event came."""
    began = time.monotonic()
    connection.request("POST", path, BODY)
    answer, events = connection.getresponse(), []
    while line := answer.readline():
        if line.startswith(b"data:"):
            events.append(time.monotonic())
    return (time.monotonic() - began) * 1000, events


def requests(stage: Stage) -> None:
    """Compare requests straight to the stub with requests through a door; in turns, so that load falls on both."""
    with StubModel(Script((Turn(text="one two three four five"),))) as stub, stage.gateway(stub) as gateway:
        door = gateway.open_door("bench")
        host = urlsplit(stub.url)
        straight, through = (
            http.client.HTTPConnection(host.hostname, host.port),
            Connection(door.mount.source / "model"),
        )
        taken: dict[str, list[float]] = {"straight": [], "through": []}
        lags = []
        for _ in range(REQUESTS):
            taken["straight"].append(ask(straight, PATH)[0])
            ms, events = ask(through, f"/openai{PATH}")
            taken["through"].append(ms)
            sent = stub.requests[-1].events_sent
            lags += [(came - left) * 1000 for came, left in zip(events, sent, strict=True)]
        straight.close()
        through.close()
    medians = {name: statistics.median(values) for name, values in taken.items()}
    print(
        json.dumps(
            {
                "bench": "requests",
                "requests": REQUESTS,
                "straight_ms": round(medians["straight"], 2),
                "through_ms": round(medians["through"], 2),
                "added_ms": round(medians["through"] - medians["straight"], 2),
                "event_lag_ms": round(statistics.median(lags), 2),
                "event_lag_p95_ms": round(statistics.quantiles(lags, n=20)[-1], 2),
            }
        )
    )


def clis(stage: Stage) -> None:
    """Time each CLI from opening its box to its first request."""
    for name in MODELS:
        runs = [drive(stage, name, SOLVE) for _ in range(3)]
        first = statistics.median(run.first_request_s or 0 for run in runs)
        whole = statistics.median(run.seconds for run in runs)
        print(json.dumps({"bench": "cli", "cli": name, "first_request_s": round(first, 2), "whole_s": round(whole, 2)}))


def twelve(stage: Stage) -> None:
    """Time twelve sessions at once."""
    names = ["codex", "claude-code", "copilot-cli"] * 4
    began = time.monotonic()
    with ThreadPoolExecutor(12) as pool:
        ended = list(pool.map(lambda name: drive(stage, name, SOLVE).ended, names))
    seconds = round(time.monotonic() - began, 1)
    print(json.dumps({"bench": "twelve at once", "finished": ended.count(("", "")), "seconds": seconds}))


def runs(_stage: Stage) -> None:
    """Time the command itself, from the prompt to the first request, on a task that is prepared."""
    for agent in AGENTS:
        taken = []
        for _ in range(4):
            with tempfile.TemporaryDirectory() as folder, StubModel(SOLVE) as stub:
                began = time.time()
                suite(Path(folder), stub, "--harness", agent, "--tasks", "ehr_data_quality/impossible_value")
                taken.append(stub.answered[0].at - began)
        first = round(statistics.median(taken[1:]), 2)
        print(json.dumps({"bench": "command to first request", "agent": agent, "seconds": first}))


def main() -> None:
    """Run what was asked for."""
    with tempfile.TemporaryDirectory() as folder:
        stage = make_stage(Path(folder))
        for part in sys.argv[1:] or ["requests", "clis", "twelve", "runs"]:
            {"requests": requests, "clis": clis, "twelve": twelve, "runs": runs}[part](stage)


if __name__ == "__main__":
    main()
