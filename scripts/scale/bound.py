#!/usr/bin/env python3
"""Runs with the minimum memory that is accepted, and reports the peaks.

    scripts/scale/bound.py --webtwin WEBTWIN --pages 100000 --workers 1,2,4
    scripts/scale/bound.py --webtwin WEBTWIN --input 'crawl/*.warc.gz' --set similar.by=minhash --set simhash.recipe=weighted

For each number of workers, and each --set on its own (none first), prints: the bound that the
rejection of 1 MB names, or the value of --allow; the peak of the process with this bound
(`manifest.json`); the rounds next to those of `plan`; processor time per page; and whether all
files have the bytes of a run without a bound (unless --bound-only).
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webtwin", required=True)
    parser.add_argument("--pages", type=int, help="number of pages of a synthetic crawl")
    parser.add_argument("--input", help="a crawl instead of a synthetic one")
    parser.add_argument("--workers", default="2", help="numbers of workers, separated by commas")
    parser.add_argument("--set", action="append", default=[], help="adds a job with this setting; repeatable")
    parser.add_argument("--with", dest="always", action="append", default=[], help="a setting of all jobs; repeatable")
    parser.add_argument("--allow", type=int, help="memory bound in bytes instead of the minimum")
    parser.add_argument("--bound-only", action="store_true", help="omit the run without a bound")
    return parser.parse_args()


def webtwin(given, command, settings, *more):
    source = given.input or f"synth://?pages={given.pages}&seed=1"
    every = [f"--set={setting}" for setting in [*given.always, *settings]]
    return subprocess.run(
        [given.webtwin, command, "--input", source, *every, *more], capture_output=True, text=True, check=False)


def run(given, settings, workers, folder, allowed):
    out = pathlib.Path(folder, f"out-{allowed}")
    bound = ["--set", f"effort.memory_bytes={allowed}"] if allowed else []
    done = webtwin(given, "run", settings, "--workers", str(workers), "--output", str(out), *bound)
    if done.returncode:
        return None, done.stderr
    return json.loads((out / "manifest.json").read_text()), ""


def least(given, settings, workers, folder):
    """Returns the bytes that are accepted. A rejection may come late in a run, and require more
    than an earlier one."""
    allowed = given.allow or 1_000_000
    while True:
        manifest, said = run(given, settings, workers, folder, allowed)
        if manifest:
            return allowed, manifest
        asked = re.search(r"set effort\.memory_bytes to (\d+) or more", said)
        if not asked or int(asked[1]) <= allowed:
            sys.exit(said)
        allowed = int(asked[1])


def main():
    given = options()
    print("| job | workers | least, MB | peak, MB | beyond | rounds, `plan` | disk at once, `plan`, MB | us a page | same bytes |")
    print("|---|---|---|---|---|---|---|---|---|")
    for settings in [[]] + [[one] for one in given.set]:
        for workers in map(int, given.workers.split(",")):
            with tempfile.TemporaryDirectory() as folder:
                allowed, manifest = least(given, settings, workers, folder)
                same = "not asked"
                if not given.bound_only:
                    free, said = run(given, settings, workers, folder, 0)
                    same = "yes" if free and free["files"] == manifest["files"] else f"NO {said}"
            bound = ["--workers", str(workers), "--json", "--set", f"effort.memory_bytes={allowed}"]
            told = json.loads(webtwin(given, "plan", settings, *bound).stdout or "{}")
            peak, pages = manifest["peak_memory_bytes"], manifest["counts"].get("pages", 1)
            disk, of_plan = manifest["processes"][0]["spilled_at_once_bytes"] / 1e6, told.get("spilled_at_once_bytes", 0) / 1e6
            spent = sum(manifest["processes"][0]["cpu_seconds"].values()) / pages * 1e6
            print(f"| {' '.join(settings) or 'default'} | {workers} | {allowed / 1e6:.0f} | {peak / 1e6:.0f} "
                  f"| {peak / allowed - 1:+.0%} | {manifest['rounds']}, {told.get('rounds')} | {disk:.0f}, {of_plan:.0f} | {spent:.0f} | {same} |", flush=True)


if __name__ == "__main__":
    main()
