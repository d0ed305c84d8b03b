#!/usr/bin/env python3
"""Kills a run at each of its system calls, or injects an error there. See README.md next to this
file."""

import argparse
import collections
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--webtwin", default="target/debug/webtwin")
parser.add_argument("--input", default="synth://?pages=100&seed=1")
parser.add_argument("--resume", action="store_true", help="the runs write checkpoints and are resumed from them")
parser.add_argument("--kinds", nargs="+", default=["KILL", "ENOSPC", "EIO"])
parser.add_argument("--most", type=int, default=40, help="maximum number of places per call and kind, spread evenly [40]")
parser.add_argument("--calls", nargs="+", help="test only these system calls")
parser.add_argument("--set", action="append", default=[], help="a setting of the job; repeatable")
given = parser.parse_args()

folder = pathlib.Path(tempfile.mkdtemp(prefix="syscalls-"))
out = folder / "out"

# Calls into which an error is injected: those that can report a full or broken disk.
FAILING = {"write", "pwrite64", "writev", "fsync", "fdatasync", "rename", "renameat", "renameat2", "openat", "linkat", "link"}
# Calls without an effect on a disk or network.
HARMLESS = {"close", "fcntl", "dup", "dup2", "lseek", "mmap", "poll", "epoll_wait", "epoll_ctl", "epoll_create1", "ioctl"}
# The first call of Rust's runtime. Earlier calls belong to the loader, whose failures the program
# cannot handle.
STARTED = "sigaltstack"
# Files of an unfinished run, which must not be mistaken for a result.
UNFINISHED = re.compile(r"_attempt-|_records-|_commit\.json|\.[^/]*\.tmp$")


def run(strace=()):
    command = [given.webtwin, "run", "--input", given.input, "--output", str(out), "--workers", "1"]
    command += ["--resume"] if given.resume else []
    command += [word for setting in given.set for word in ("--set", setting)]
    done = subprocess.run([*strace, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=300)
    told = done.stderr.strip().splitlines()
    return done.returncode, told[-1] if told else ""


def files():
    """Returns the files of the result by name, except the manifest, which has times."""
    found = (path for path in out.rglob("*") if path.is_file())
    names = {str(path.relative_to(out)): path for path in found}
    return {name: path.read_bytes() for name, path in names.items() if not UNFINISHED.search(name)}


def is_whole(found):
    """True if the manifest agrees with all files; None without a manifest."""
    if "manifest.json" not in found:
        return None
    named = json.loads(found["manifest.json"])["files"]
    return all(len(found.get(file["path"], b"-")) == file["bytes"] for file in named) and answer(found) == whole


def answer(found):
    return {name: hashlib.sha256(data).digest() for name, data in found.items() if name != "manifest.json"}


def calls_of(log):
    """Returns thread and name of each call in order."""
    for line in log.read_text(errors="replace").splitlines():
        if match := re.match(r"(\d+) +(\w+)\(", line):
            yield match[1], match[2]


def places_of(calls):
    """Returns each call as the n-th of its name in its thread, which is what strace counts. If
    another thread reaches its own n-th call earlier, that one is hit instead: returns the number of
    these unreachable calls, too."""
    in_thread, places, out_of_reach = collections.Counter(), collections.defaultdict(list), 0
    for thread, call in calls:
        in_thread[thread, call] += 1
        if in_thread[thread, call] == len(places[call]) + 1:
            places[call].append(in_thread[thread, call])
        else:
            out_of_reach += 1
    return places, out_of_reach


log = folder / "log"
code, told = run(["strace", "-f", "-y", "-o", str(log), "-e", f"trace=%file,%desc,%network,{STARTED}"])
assert code == 0, told
whole = answer(files())
calls = list(calls_of(log))
main = [call for thread, call in calls if thread == calls[0][0]]
of_loader = collections.Counter(main[: main.index(STARTED)])
places, out_of_reach = places_of(call for call in calls if call[1] not in (*HARMLESS, STARTED))

outcomes = collections.Counter()
failed = 0


def sample(call, kind):
    """Returns the places of a call, or if there are many, some of them, including the first and the
    last."""
    all_places = [place for place in places[call] if kind == "KILL" or place > of_loader[call]]
    if len(all_places) <= given.most:
        return all_places
    step = (len(all_places) - 1) / (given.most - 1)
    return [all_places[number] for number in sorted({round(number * step) for number in range(given.most)})]


print(
    f"{given.input}{', --resume' if given.resume else ''}: {sum(map(len, places.values()))} places in {len(places)} calls of"
    f" {len({thread for thread, _ in calls})} threads; {out_of_reach} are out of reach"
)
for kind in given.kinds:
    for call in sorted(given.calls or places):
        if kind != "KILL" and call not in FAILING:
            continue
        for number in sample(call, kind):
            shutil.rmtree(out, ignore_errors=True)
            what = "signal=KILL" if kind == "KILL" else f"error={kind}"
            inject = ["-e", f"trace={call}", "-e", f"inject={call}:{what}:when={number}"]
            code, told = run(["strace", "-f", "-y", "-o", str(log), *inject])
            struck = [line for line in log.read_text(errors="replace").splitlines() if "(INJECTED)" in line]
            found = files()
            state = is_whole(found)
            has_decided = state or (out / "_commit.json").exists()
            again, told_again = run()
            good = state is not False and answer(files()) == whole and is_whole(files())
            good = good and again in ((0, 4) if has_decided else (0,))
            if kind == "KILL":
                good = good and code in (-9, 137, 0)
                outcome = f"killed with {'a result' if state else 'a decision' if has_decided else 'nothing'}; again {again}"
            else:
                on_disk = any(re.search(rf"{re.escape(str(folder))}|{re.escape(str(given.webtwin))}", line) for line in struck)
                good = good and (code in (0, 8, 9) if on_disk or not struck else code < 128)
                good = good and (code != 0 or state)
                outcome = f"{'a file of the run' if on_disk else 'elsewhere' if struck else 'not reached'}: {code}; again {again}"
            outcomes[kind, call, outcome] += 1
            if not good:
                failed += 1
                print(f"FAILED {kind} at {call} {number}: {code} ({told}), then {again} ({told_again}), {state=}; {struck}", flush=True)
for (kind, call, outcome), count in sorted(outcomes.items()):
    print(f"{count:5}  {kind:6} {call:12} {outcome}")
print(f"{sum(outcomes.values()) - failed} held, {failed} failed")
shutil.rmtree(folder)
sys.exit(failed > 0)
