#!/usr/bin/env python3
"""Tests several runs into one output, and runs that are killed while they write. See README.md next
to this file."""

import argparse
import atexit
import collections
import re
import signal
import subprocess
import sys
import time

from stores import STORES

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("sweep", choices=["two-writers", "kill", "two-writers-kill", "writers", "same-writers"])
parser.add_argument("--webtwin", default="target/release/webtwin")
parser.add_argument("--rounds", type=int, default=100)
parser.add_argument("--pages", type=int, default=300)
parser.add_argument("--writers", type=int, default=16, help="of `writers` and `same-writers`")
parser.add_argument("--store", choices=STORES, default="disk")
given = parser.parse_args()

JOBS = [f"synth://?pages={given.pages}&seed={seed}" for seed in (1, 2)]
place = STORES[given.store]()
atexit.register(place.close)


def start(job, name):
    command = [given.webtwin, "run", "--input", JOBS[job], "--output", place.url(name), "--workers", "1"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def end(run):
    told = run.communicate(timeout=300)[1].strip().splitlines()
    return run.returncode, told[-1] if told else ""


def result(name):
    """Returns the files of a folder except the manifest, which has times; and true if there is a
    manifest."""
    files = place.files(name)
    return files, files.pop("manifest.json", None) is not None


whole = []
for job in (0, 1):
    began = time.monotonic()
    code, told = end(start(job, f"whole-{job}"))
    took = time.monotonic() - began
    assert code == 0, told
    whole.append(result(f"whole-{job}")[0])
assert whole[0] != whole[1]

outcomes = collections.Counter()
failed = 0
for round in range(given.rounds):
    name = f"round-{round}"
    # The second run starts between immediately and one run duration later, with a different delay
    # in each round.
    later = took * ((round * 37) % given.rounds) / given.rounds
    if given.sweep == "kill":
        first = start(0, name)
        # A run spends most of its time on reading and computing, and writes nothing then.
        time.sleep(0.5 * took + 0.6 * later)
        first.send_signal(signal.SIGKILL)
        first.communicate()
        files_left = "nothing" if not place.files(name) else "files"
        code, told = end(start(0, name))
        files, manifest = result(name)
        good = code in (0, 4) and manifest and files == whole[0]
        outcome = f"killed ({first.returncode}) with {files_left} left; again: {code}"
    elif given.sweep == "two-writers":
        runs = [start(0, name)]
        time.sleep(later)
        runs.append(start(1, name))
        ends = [end(run) for run in runs]
        codes = [code for code, _ in ends]
        files, manifest = result(name)
        good = sorted(codes) == [0, 4] and manifest and files == whole[codes.index(0)]
        told = "; ".join(told for _, told in ends)
        outcome = f"ends {codes}"
    elif given.sweep in ("writers", "same-writers"):
        jobs = [writer % 2 * (given.sweep == "writers") for writer in range(given.writers)]
        runs = []
        for job in jobs:
            runs.append(start(job, name))
            time.sleep(later / given.writers / 4)
        ends = [end(run) for run in runs]
        codes = [code for code, _ in ends]
        files, manifest = result(name)
        winners = [job for job, code in zip(jobs, codes) if code == 0]
        good = len(winners) == 1 and set(codes) == {0, 4} and manifest and files == whole[winners[0]]
        told = "; ".join(sorted({told for _, told in ends}))
        outcome = f"{codes.count(0)} won, {codes.count(4)} of {len(codes)} told so"
    else:
        runs = [start(0, name), start(1, name)]
        time.sleep(later * 1.5)
        runs[round % 2].send_signal(signal.SIGKILL)
        codes = [end(run)[0] for run in runs]
        code, told = end(start(0, name))
        files, manifest = result(name)
        # A run that was killed too late to commit may leave staged files, and an incomplete
        # decision under a name of its own.
        left = re.compile(r"_attempt-|\._commit\.json\.[0-9a-f]{16}\.tmp$")
        files = {path: text for path, text in files.items() if not left.match(path)}
        good = manifest and files in whole and code in (0, 4) and codes[1 - round % 2] in (0, 4)
        outcome = f"ends {codes}, then {code}"
    outcomes[outcome] += 1
    if not good:
        failed += 1
        like = min(whole, key=lambda of: sum(files.get(path) != text for path, text in of.items()))
        differ = sorted(path for path in files.keys() | like.keys() if files.get(path) != like.get(path))
        print(f"FAILED round {round}: {outcome}; manifest {manifest}; files of another job: {' '.join(differ)}; {told}")
print(f"{given.sweep}, {place.name}, {given.rounds} rounds, {took:.2f} s per run")
for outcome, rounds in sorted(outcomes.items()):
    print(f"{rounds:5}  {outcome}")
print(f"{given.rounds - failed} held, {failed} failed")
sys.exit(failed > 0)
