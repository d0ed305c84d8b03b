#!/usr/bin/env python3
"""Measures the cost of a kill during a run with --resume, by the moment of the kill. See README.md
next to this file."""

import argparse
import hashlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--webtwin", default="target/release/webtwin")
parser.add_argument("--input", default="synth://?pages=20000&seed=1")
parser.add_argument("--set", action="append", default=[], help="a setting of the job as KEY=VALUE; repeatable")
parser.add_argument("--workers", default="2")
parser.add_argument("--at", nargs="+", type=float, default=[*range(10, 100, 10), 97], help="moments of the kills in %% of the run")
parser.add_argument("--most", type=float, default=0.25, help="maximum cost of a kill as a fraction of the run")
given = parser.parse_args()

folder = pathlib.Path(tempfile.mkdtemp(prefix="kill-cost-"))
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(process):
    """Returns the processor seconds of a running process."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def has_ended(process):
    """True if a child has ended but has not been waited for."""
    return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def run(name, kill_at=None):
    """Runs a command; returns wall-clock seconds, processor seconds and the exit code. Kills it
    once it has used the given processor seconds."""
    command = [given.webtwin, "run", "--input", given.input, "--output", str(folder / name), "--resume"]
    command += ["--workers", given.workers] + [word for setting in given.set for word in ("--set", setting)]
    began = time.monotonic()
    with open(folder / f"{name}.log", "a") as log:
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
    while kill_at is not None and not has_ended(child.pid):
        if cpu_seconds(child.pid) >= kill_at:
            child.send_signal(signal.SIGKILL)
            break
        time.sleep(0.005)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return time.monotonic() - began, used.ru_utime + used.ru_stime, child.returncode


def digests(name):
    files = (path for path in (folder / name).rglob("*") if path.is_file() and path.name != "manifest.json")
    return {str(path.relative_to(folder / name)): hashlib.sha256(path.read_bytes()).digest() for path in files}


# The first run warms the page cache.
run("warm")
whole_clock, whole, code = run("whole")
assert code == 0, (folder / "whole.log").read_text()
answer = digests("whole")
print(f"{given.input}, {given.workers} workers: {whole:.2f} s of the processors, {whole_clock:.2f} s by the clock")
print("killed at | second run, processors | cost, processors | second run, clock | cost, clock", flush=True)
failed = 0
for percent in given.at:
    name = f"killed-{percent:g}"
    first_clock, first, code = run(name, percent / 100 * whole)
    second_clock, second, again = run(name)
    cost = (first + second - whole) / whole
    cost_clock = (first_clock + second_clock - whole_clock) / whole_clock
    # A run that had committed before it was killed has nothing left to do.
    good = again in ((0, 4) if code else (4,)) and digests(name) == answer and cost <= given.most
    failed += not good
    print(
        f"{first / whole:9.0%} | {second / whole:22.0%} | {cost:16.0%} | {second_clock / whole_clock:17.0%} | {cost_clock:11.0%}"
        + ("" if good else f"   FAILED ({code}, then {again})"),
        flush=True,
    )
    shutil.rmtree(folder / name)
shutil.rmtree(folder)
print(f"{len(given.at) - failed} held, {failed} failed")
sys.exit(failed > 0)
