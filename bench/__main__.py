"""CPU per request and per stream event, Outlast beside the bare relay, A B A B, medians.

The gateway has a core of its own; provider and callers share the other. What counts is the
gateway's own user and system time between two marks, so only ratios are quoted: absolute times
belong to the machine. `--rounds N` sets how often each side runs.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BAR_REQUEST = 1.8
BAR_EVENT = 1.5
CALLERS_WHOLE = 8
CALLERS_STREAM = 100
GAP_S = 0.010
_TICKS = os.sysconf("SC_CLK_TCK")


def _pinned(command: list[str], core: int) -> subprocess.Popen[str]:
    def pin() -> None:
        if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > core:
            os.sched_setaffinity(0, {core})

    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, preexec_fn=pin
    )


def _port(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def _outlast_port(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    for line in process.stdout:
        if "http://127.0.0.1:" in line:
            return int(line.split("http://127.0.0.1:")[1].split("/")[0].split()[0])
    raise SystemExit("outlast did not start")


def _cpu_s(pid: int) -> float:
    """User and system seconds of one process so far."""
    schedstat = Path(f"/proc/{pid}/schedstat")
    if schedstat.exists():
        return int(schedstat.read_text().split()[0]) / 1e9
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _load(port: int, callers: int, each: int, kind: str) -> tuple[int, int]:
    load = _pinned(
        [sys.executable, "-m", "bench.load", str(port), str(callers), str(each), kind], 1
    )
    assert load.stdout is not None
    out = load.stdout.read()
    if load.wait() != 0:
        raise SystemExit("the load failed")
    requests, events = map(int, out.split())
    return requests, events


def _config(directory: str, upstream_port: int) -> str:
    path = Path(directory) / "outlast.yaml"
    path.write_text(
        f"""
version: 1
server: {{listen: "127.0.0.1:0"}}
providers:
  p: {{dialect: openai, base_url: "http://127.0.0.1:{upstream_port}/v1", api_key: sk-bench}}
  q: {{dialect: openai, base_url: "http://127.0.0.1:{upstream_port}/v1", api_key: sk-bench}}
deployments:
  a: {{provider: p, upstream_model: bench}}
  b: {{provider: q, upstream_model: bench-b}}
pools:
  bench-pool: {{members: [{{deployment: a}}, {{deployment: b}}]}}
"""
    )
    return str(path)


def _sides(directory: str, upstream_port: int) -> list[tuple[str, subprocess.Popen[str], int]]:
    relay = _pinned([sys.executable, "-m", "bench.relay", str(upstream_port)], 0)
    config = _config(directory, upstream_port)
    outlast = _pinned([sys.executable, "-m", "outlast", "--config", config, "serve"], 0)
    return [("relay", relay, _port(relay)), ("outlast", outlast, _outlast_port(outlast))]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often each side runs")
    rounds = parser.parse_args().rounds
    provider = _pinned([sys.executable, "-m", "bench.upstream", str(GAP_S)], 1)
    running = [provider]
    request_us: dict[str, list[float]] = {"relay": [], "outlast": []}
    event_us: dict[str, list[float]] = {"relay": [], "outlast": []}
    try:
        with tempfile.TemporaryDirectory() as directory:
            sides = _sides(directory, _port(provider))
            running += [process for _, process, _ in sides]
            for _, _, port in sides:
                _load(port, CALLERS_WHOLE, 200, "whole")
                _load(port, CALLERS_STREAM, 1, "stream")
            for _ in range(rounds):
                for name, process, port in sides:
                    before = _cpu_s(process.pid)
                    requests, _ = _load(port, CALLERS_WHOLE, 600, "whole")
                    between = _cpu_s(process.pid)
                    _, events = _load(port, CALLERS_STREAM, 2, "stream")
                    after = _cpu_s(process.pid)
                    request_us[name].append((between - before) / requests * 1e6)
                    event_us[name].append((after - between) / events * 1e6)
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(timeout=10)
    _table("CPU µs per request", request_us, BAR_REQUEST)
    _table("CPU µs per stream event", event_us, BAR_EVENT)


def _table(what: str, figures: dict[str, list[float]], bar: float) -> None:
    relay, outlast = (statistics.median(figures[side]) for side in ("relay", "outlast"))
    ratios = [o / r for r, o in zip(figures["relay"], figures["outlast"], strict=True)]
    verdict = "met" if outlast / relay <= bar else "NOT MET"
    print(
        f"{what:26} relay {relay:7.1f}   outlast {outlast:7.1f}   ratio {outlast / relay:.2f} "
        f"(rounds {min(ratios):.2f}-{max(ratios):.2f}; bar {bar}: {verdict})"
    )


if __name__ == "__main__":
    main()
