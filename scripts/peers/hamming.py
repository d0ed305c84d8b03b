#!/usr/bin/env python3
"""Fingerprints within 3 bits: compares webtwin hamming with the crate mih-rs on the same files, in
turn.

    hamming.py WEBTWIN FOLDER [RUNS]      (3 runs; FOLDER keeps the fingerprints, 0.6 GB)

Generates 8 million fingerprints of 64 bits and a million queries, one in a hundred of which is near
another one. `join` compares F with the queries, `self` compares F with itself. webtwin's time
includes building F, which can be reused, and writing the pairs, which mih-rs only counts. Both use
two threads. Prints a JSON object for each run with the wall-clock seconds and the processor seconds
in user mode and in the kernel, and then medians and ratios. Ends with an error if the two find
different numbers of pairs at any distance.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def timed(command):
    begun = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    told = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{command} ended with {status}")
    return told, {"clock": time.monotonic() - begun, "user": used.ru_utime, "kernel": used.ru_stime,
                  "mb": used.ru_maxrss / 1000}


def added(one, other):
    return {key: max(one[key], other[key]) if key == "mb" else one[key] + other[key] for key in one}


def webtwin(program, folder, name, queries):
    f, pairs = os.path.join(folder, "f"), os.path.join(folder, "pairs")
    for old in (f, pairs):
        shutil.rmtree(old, ignore_errors=True)
    two = ["--workers", "2"]
    _, build = timed([program, "hamming", "build", "--from", os.path.join(folder, name), "--output", f] + two)
    queries = ["--queries", os.path.join(folder, queries)] if queries else []
    _, batch = timed([program, "hamming", "batch", "--fingerprints", f, "--output", pairs] + queries + two)
    with open(os.path.join(pairs, "summary.json")) as file:
        return json.load(file)["pairs_by_distance"], added(build, batch), build


def main():
    program, folder, runs = sys.argv[1], sys.argv[2], int((sys.argv + ["3"])[3])
    subprocess.check_call(["cargo", "build", "--release", "--quiet", "--target-dir", os.path.join(folder, "target"),
                           "--manifest-path", os.path.join(HERE, "mih", "Cargo.toml")])
    mih = os.path.join(folder, "target", "release", "mih")
    f, q, s = (os.path.join(folder, name) for name in ("f.u64", "q.u64", "s.u64"))
    subprocess.check_call([mih, "make", f, "8000000", "1"])
    subprocess.check_call([mih, "make", q, "1000000", "2", f])
    subprocess.check_call([mih, "make", s, "8000000", "3"])
    for what, name, queries, peer in (("join", "f.u64", "q.u64", [mih, "join", f, q]),
                                      ("self", "s.u64", None, [mih, "self", s])):
        ours, theirs = [], []
        for _ in range(runs):
            found, used, build = webtwin(program, folder, name, queries)
            told, peers = timed(peer)
            if json.loads(told) != found:
                sys.exit(f"{what}: webtwin finds {found}, mih-rs {told.decode()}")
            ours.append(used)
            theirs.append(peers)
            print(json.dumps({"what": what, "pairs": sum(found.values()), "webtwin": used, "of it the build": build,
                              "mih-rs": peers}), flush=True)
        def median(of, key):
            return statistics.median(one["user"] + one["kernel"] if key == "processors" else one[key] for one in of)
        ratios = {key: round(median(theirs, key) / median(ours, key), 2) for key in ("clock", "user", "processors")}
        print(json.dumps({"what": what, "mih-rs takes, times": ratios}), flush=True)


if __name__ == "__main__":
    main()
