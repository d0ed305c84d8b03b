#!/usr/bin/env python3
"""Measures the cost of additional processes: runs of 2, 4, 8, 16 processes over loopback.

Prints one row per run: the anonymous memory of a process while it has the most threads, and the
number of threads, median and maximum, read from /proc every 20 ms; processor seconds of all
processes; and the MB per additional process relative to the first row.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

from loopback import calls

parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
parser.add_argument("--webtwin", default="target/release/webtwin")
parser.add_argument("--processes", default="2,4,8,16", help="numbers of processes, in turn")
parser.add_argument("--pages", type=int, default=2_000, help="pages of a synthetic crawl for all processes together")
parser.add_argument("--weak", action="store_true", help="the same number of pages for each process")
parser.add_argument("--workers", type=int, default=1, help="worker threads of each process")
parser.add_argument("--key", help="file with a key for encrypted connections")
parser.add_argument("--set", action="append", default=[], help="a setting of the job; repeatable")
given = parser.parse_args()
given.webtwin = os.path.abspath(given.webtwin)


def look(pid):
    """Returns the bytes of anonymous memory, and the number of threads."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0, 0
    number = lambda name: int((re.search(rf"^{name}:\s+(\d+)", status, re.M) or [0, 0])[1])
    return number("RssAnon") * 1024, number("Threads")


def run(processes, folder):
    pages = given.pages * (processes if given.weak else 1)
    key = f'key_file = "{os.path.abspath(given.key)}"\n' if given.key else ""
    words = [given.webtwin, "run", "--input", f"synth://?pages={pages}&seed=1", "--set", f"effort.spill={folder}"]
    words += [word for setting in given.set for word in ("--set", setting)] + ["--output", str(folder / "out")]
    started = [
        subprocess.Popen(call, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for call in calls(words, processes, given.workers, folder, key)
    ]
    began, memory, threads = time.monotonic(), [0] * processes, [0] * processes
    ended, spent = {}, 0.0
    while len(ended) < processes:
        for n, one in enumerate(started):
            if n in ended:
                continue
            seen = look(one.pid)
            if seen[1] > threads[n]:
                memory[n], threads[n] = 0, seen[1]
            if seen[1] == threads[n]:
                memory[n] = max(memory[n], seen[0])
            pid, status, usage = os.wait4(one.pid, os.WNOHANG)
            if pid:
                ended[n], spent = os.waitstatus_to_exitcode(status), spent + usage.ru_utime + usage.ru_stime
                if status:
                    sys.exit(one.stderr.read().decode(errors="replace"))
        time.sleep(0.02)
    return memory, threads, time.monotonic() - began, spent


heads = ("processes", "seconds", "CPU s", "MB", "largest", "threads", "largest", "MB a peer")
print(" ".join(f"{head:>9}" for head in heads), flush=True)
before = None
for processes in map(int, given.processes.split(",")):
    with tempfile.TemporaryDirectory() as folder:
        memory, threads, seconds, spent = run(processes, pathlib.Path(folder))
    middle = statistics.median(memory) / 1e6
    slope = f"{(middle - before[1]) / (processes - before[0]):.2f}" if before else ""
    before = before or (processes, middle)
    cells = (processes, f"{seconds:.1f}", f"{spent:.1f}", f"{middle:.1f}", f"{max(memory) / 1e6:.1f}")
    cells += (f"{statistics.median(threads):.0f}", max(threads), slope)
    print(" ".join(f"{cell:>9}" for cell in cells), flush=True)
