#!/usr/bin/env python3
"""Measures weak scaling: runs in 1, 2, 4, 8 processes with a proportional number of pages, on this
machine over loopback.

Prints one row per run: the totals of all its processes per page, from its manifest. Processor
seconds include user mode and the kernel, so they show the cost of distribution even if processes
share cores, unlike the wall clock. With --plan, a second row has the prediction of `webtwin plan`
for the same run. With --apart, a preceding row has the given number of independent runs of one
process each at the same time, and ratios are relative to that row, whose processes also share cores
and caches. "all" is the kernel's count for the processes from start to end, which includes the
first one's comparison with the planted truth after the run. "by one" is the number of bytes sent by
the process that sends most.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from loopback import calls

parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
parser.add_argument("--webtwin", default="target/release/webtwin")
parser.add_argument("--processes", default="1,2,4,8", help="numbers of processes, in turn")
parser.add_argument("--pages", type=int, default=50_000, help="pages of a synthetic crawl for each process")
parser.add_argument("--strong", action="store_true", help="the same total number of pages for all numbers of processes")
parser.add_argument("--workers", type=int, default=1, help="worker threads of each process")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--set", action="append", default=[], help="a setting of the job; repeatable")
parser.add_argument("--plan", nargs="?", const="", help="add the prediction below each run, by another program if given")
parser.add_argument("--apart", action="store_true", help="add simultaneous independent runs of one process each above each run")
parser.add_argument("--json", help="output file for all figures")
given = parser.parse_args()
given.webtwin = os.path.abspath(given.webtwin)
settings = [word for setting in given.set for word in ("--set", setting)]


def wait_for(commands, pages):
    """Runs these commands simultaneously. Returns wall-clock seconds, and their seconds in user
    mode and in the kernel."""
    began = time.monotonic()
    started = [subprocess.Popen(call, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for call in commands]
    user = system = 0.0
    for one in started:
        said = one.stderr.read().decode(errors="replace")
        _, status, usage = os.wait4(one.pid, 0)
        if os.waitstatus_to_exitcode(status) != 0:
            for other in started:
                other.kill()
            sys.exit(f"{len(commands)} processes, {pages} pages: {said}")
        user, system = user + usage.ru_utime, system + usage.ru_stime
    return time.monotonic() - began, user, system


def run(processes, pages, folder):
    """Returns the totals of a run, from its manifest and from the kernel."""
    words = [given.webtwin, "run", "--input", f"synth://?pages={pages}&seed={given.seed}", *settings]
    words += ["--set", f"effort.spill={folder}", "--output", str(folder / "out")]
    seconds, user, system = wait_for(calls(words, processes, given.workers, folder), pages)
    manifest = json.loads((folder / "out" / "manifest.json").read_text())
    return figures_of([manifest], (seconds, user, system))


def apart(count, pages, folder):
    """Returns the same for the given number of simultaneous runs of one process, each with the
    given number of pages."""
    words = [given.webtwin, "run", "--input", f"synth://?pages={pages}&seed={given.seed}", *settings]
    words += ["--set", f"effort.spill={folder}", "--workers", str(given.workers)]
    outputs = [folder / f"out-{number}" for number in range(count)]
    took = wait_for([[*words, "--output", str(output)] for output in outputs], pages)
    return figures_of([json.loads((output / "manifest.json").read_text()) for output in outputs], took)


def figures_of(manifests, took):
    """Returns the totals of these runs."""
    each = [process for manifest in manifests for process in manifest["processes"]]
    return {
        "pages": sum(manifest["counts"]["pages"] for manifest in manifests),
        **dict(zip(("seconds", "user", "system"), took)),
        "cpu": sum(sum(one["cpu_seconds"].values()) for one in each),
        "stages": {stage: sum(one["cpu_seconds"][stage] for one in each) for stage in each[0]["cpu_seconds"]},
        "memory": max(one["peak_memory_bytes"] for one in each),
        "exchanged": sum(one["exchanged_bytes"] for one in each),
        "sent": sum(one["sent_bytes"] for one in each),
        "most sent": max(one["sent_bytes"] for one in each),
        "spilled": sum(one["spilled_bytes"] for one in each),
        "rounds": max(manifest["rounds"] for manifest in manifests),
        "counts": manifests[0]["counts"],
    }


def plan(processes, pages):
    """Returns the prediction for that run."""
    words = [os.path.abspath(given.plan) if given.plan else given.webtwin, "plan", "--json", "--input", f"synth://?pages={pages}&seed={given.seed}", *settings]
    words += ["--machines", str(processes), "--workers", str(given.workers)]
    told = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    told["cpu"] = sum(told["cpu_seconds"].values())
    return {
        "pages": told["expected"]["pages"],
        "cpu": told["cpu"],
        "stages": told["cpu_seconds"],
        "memory": told["memory_bytes"],
        "exchanged": told["exchanged_bytes"],
        "sent": told["sent_bytes"],
        "most sent": told["most_sent_bytes"],
        "spilled": told["spilled_bytes"],
        "rounds": told["rounds"],
    }


def row(name, of, first):
    pages = max(of["pages"], 1)
    by_page = 1e6 * of["cpu"] / pages
    stages = " ".join(f"{1e6 * seconds / pages:8.1f}" for _, seconds in sorted(of["stages"].items()))
    clock = f"{of['seconds']:8.1f}" if "seconds" in of else " " * 8
    whole = f"{1e6 * (of['user'] + of['system']) / pages:8.1f}" if "user" in of else " " * 8
    ratio = f"{by_page / first:6.2f}" if first else " " * 6
    print(
        f"{name:>9} {of['pages']:>9} {clock} {whole} {by_page:8.1f} {ratio} {stages} {of['exchanged'] / pages:10.0f} "
        f"{of['sent'] / pages:10.0f} {of['most sent'] / pages:10.0f} {of['spilled'] / pages:8.0f} {of['memory'] / 1e6:8.1f} {of['rounds']:>6}",
        flush=True,
    )


print(
    f"{'processes':>9} {'pages':>9} {'seconds':>8} {'us all':>8} {'us CPU/p':>8} {'ratio':>6} {'read':>8} {'find':>8} {'write':>8} "
    f"{'exch. B/p':>10} {'sent B/p':>10} {'by one':>10} {'spilled':>8} {'peak MB':>8} {'rounds':>6}"
)
first, figures = None, []
for processes in map(int, given.processes.split(",")):
    pages = given.pages * (1 if given.strong else processes)
    figures.append({"processes": processes, "workers": given.workers})
    if given.apart:
        with tempfile.TemporaryDirectory(prefix="scale-") as folder:
            alone = apart(processes, pages // processes, pathlib.Path(folder))
        first = 1e6 * alone["cpu"] / alone["pages"]
        row("apart", alone, None)
        figures[-1]["apart"] = alone
    with tempfile.TemporaryDirectory(prefix="scale-") as folder:
        measured = run(processes, pages, pathlib.Path(folder))
    first = first or 1e6 * measured["cpu"] / measured["pages"]
    row(str(processes), measured, first)
    figures[-1]["measured"] = measured
    if given.plan is not None:
        predicted = plan(processes, pages)
        row("plan", predicted, None)
        figures[-1]["predicted"] = predicted
if given.json:
    pathlib.Path(given.json).write_text(json.dumps(figures, indent=1) + "\n")
