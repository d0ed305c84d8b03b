#!/usr/bin/env python3
"""Tests runs in several processes of which one is killed, stopped, disconnected or slow. See
README.md next to this file."""

import argparse
import atexit
import collections
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from stores import free_port

FAULTS = ["kill", "stop", "term", "cut", "mute", "slow", "full"]

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--webtwin", default="target/release/webtwin")
parser.add_argument("--rounds", type=int, default=70)
parser.add_argument("--faults", default=",".join(FAULTS), help="of " + ", ".join(FAULTS))
parser.add_argument("--processes", type=int, default=2)
parser.add_argument("--pages", type=int, default=4000)
parser.add_argument("--deadline", type=float, default=2.0, help="seconds")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--set", action="append", default=[], help="a setting of the job; repeatable")
given = parser.parse_args()
given.webtwin = os.path.abspath(given.webtwin)

folder = pathlib.Path(tempfile.mkdtemp(prefix="faults-"))
atexit.register(shutil.rmtree, folder, ignore_errors=True)


def call(*words, check=True):
    return subprocess.run(words, check=check, capture_output=True, text=True)


class Hosts:
    """A network namespace for each process, all on one bridge; loopback if namespaces cannot be
    created."""

    def __init__(self):
        self.names = []
        self.hub = f"wt{os.getpid()}h"
        try:
            call("ip", "netns", "add", self.hub)
        except (OSError, subprocess.CalledProcessError):
            self.addresses = [f"127.0.0.1:{free_port()}" for _ in range(given.processes)]
            return
        atexit.register(self.remove)
        call("ip", "-n", self.hub, "link", "add", "hub", "type", "bridge")
        call("ip", "-n", self.hub, "link", "set", "hub", "up")
        for number in range(given.processes):
            name = f"wt{os.getpid()}n{number}"
            call("ip", "netns", "add", name)
            self.names.append(name)
            call("ip", "-n", name, "link", "add", "net", "type", "veth", "peer", "name", f"p{number}", "netns", self.hub)
            call("ip", "-n", self.hub, "link", "set", f"p{number}", "master", "hub", "up")
            call("ip", "-n", name, "addr", "add", f"10.77.0.{number + 1}/24", "dev", "net")
            for link in ("net", "lo"):
                call("ip", "-n", name, "link", "set", link, "up")
        self.addresses = [f"10.77.0.{number + 1}:2101" for number in range(given.processes)]

    def remove(self):
        for name in [*self.names, self.hub]:
            call("ip", "netns", "del", name, check=False)

    def within(self, number):
        return ["ip", "netns", "exec", self.names[number]] if self.names else []

    def link(self, number, state):
        call("ip", "-n", self.hub, "link", "set", f"p{number}", state)

    def mute(self, number):
        """Drops all packets that this host sends; it still receives those of the others."""
        call("ip", "-n", self.names[number], "route", "add", "blackhole", "10.77.0.0/25")
        call("ip", "-n", self.names[number], "route", "add", "blackhole", "10.77.0.128/25")

    def slow(self, number):
        words = ["root", "tbf", "rate", "8mbit", "burst", "64kbit", "latency", "50ms"]
        call("tc", "-n", self.names[number], "qdisc", "add", "dev", "net", *words)

    def mend(self, number):
        if self.names:
            call("tc", "-n", self.names[number], "qdisc", "del", "dev", "net", "root", check=False)
            for half in ("10.77.0.0/25", "10.77.0.128/25"):
                call("ip", "-n", self.names[number], "route", "del", "blackhole", half, check=False)
            self.link(number, "up")


hosts = Hosts()
key = folder / "key"
key.write_text("k" * 40)
key.chmod(0o600)
cluster = folder / "cluster.toml"
cluster.write_text(
    f'workers = 1\ndeadline = "{int(given.deadline * 1000)}ms"\nkey_file = "key"\n'
    + "".join(f'[[process]]\naddress = "{address}"\n' for address in hosts.addresses)
)
job = ["run", "--input", f"synth://?pages={given.pages}&seed=5", "--set", f"effort.spill={folder}"]
job += [word for setting in given.set for word in ("--set", setting)]


def start(number, out, *more):
    words = [*hosts.within(number), given.webtwin, *job, "--output", out, "--resume", *more]
    words += ["--cluster", str(cluster), "--process", str(number)]
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def files(out):
    """Returns hashes of the files of a result without its manifest, attempts and checkpoints."""
    found = {}
    for path in sorted(pathlib.Path(out).rglob("*")):
        name = str(path.relative_to(out))
        if path.is_file() and name != "manifest.json" and not name.startswith("_"):
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def end(processes, until):
    """Waits for all processes. Returns their exit codes, `None` for those that have not ended in
    time, and their last messages."""
    while time.monotonic() < until and any(one.poll() is None for one in processes):
        time.sleep(0.01)
    codes = [one.poll() for one in processes]
    for one in processes:
        if one.poll() is None:
            one.send_signal(signal.SIGCONT)
            one.kill()
    said = [one.communicate()[1].decode(errors="replace").strip().rsplit("\n", 1)[-1] for one in processes]
    return codes, said


def together(out, *more):
    began = time.monotonic()
    codes, said = end([start(number, out, *more) for number in range(given.processes)], began + 600)
    return codes, said, time.monotonic() - began


call(given.webtwin, *job, "--output", str(folder / "one"), "--workers", "1")
reference = files(folder / "one")
codes, said, usual = together(str(folder / "undisturbed"))
if codes != [0] * given.processes or files(folder / "undisturbed") != reference:
    sys.exit(f"an undisturbed run ends with {codes}: {said}")

dice = random.Random(given.seed)
faults = [fault for fault in given.faults.split(",") if hosts.names or fault not in ("cut", "mute", "slow")]
if not hosts.names:
    print("no network namespaces: faults of the network are not tested")
counts = {fault: collections.Counter() for fault in faults}
wrong = []
for turn in range(given.rounds):
    fault = faults[turn % len(faults)]
    out = str(folder / f"round-{turn}")
    victim, moment = dice.randrange(given.processes), dice.uniform(0.02, 1.0) * usual
    if fault == "full":
        # A file size limit simulates a full disk or quota: every write beyond it fails.
        limit = dice.choice([4096, 65536, 1 << 20])
        processes = []
        for number in range(given.processes):
            process = start(number, out)
            if number == victim:
                call("prlimit", f"--fsize={limit}", "--pid", str(process.pid), check=False)
            processes.append(process)
        happened, began = True, time.monotonic()
        codes, said = end(processes, began + usual * 3 + given.deadline * 1.5 + 2)
        happened = any(code not in (0, None) for code in codes)
    else:
        processes = [start(number, out) for number in range(given.processes)]
        time.sleep(moment)
        # A fault counts only if every process is still working.
        happened = all(one.poll() is None for one in processes)
        struck = processes[victim]
        if fault in ("kill", "stop", "term") and happened:
            struck.send_signal({"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "term": signal.SIGTERM}[fault])
        elif fault == "cut":
            hosts.link(victim, "down")
        elif fault == "mute":
            hosts.mute(victim)
        elif fault == "slow":
            hosts.slow(victim)
        patience = given.deadline * 1.5 + 1 + usual * (20 if fault == "slow" else 1)
        if fault == "stop" and happened:
            others = [one for one in processes if one is not struck]
            until = time.monotonic() + patience
            while time.monotonic() < until and any(one.poll() is None for one in others):
                time.sleep(0.01)
            struck.send_signal(signal.SIGCONT)
        codes, said = end(processes, time.monotonic() + patience)
        hosts.mend(victim)
    tally = counts[fault]
    tally["rounds"] += 1
    tally["happened"] += happened
    tally["ended as " + ",".join(str(code) for code in sorted(codes, key=str))] += 1
    allowed = {"kill": {0, 7, -9}, "stop": {0, 7}, "term": {0, 7, 143}, "cut": {0, 7}, "mute": {0, 7}, "slow": {0}}
    if None in codes:
        wrong.append((turn, fault, "hang", codes, said))
    elif fault in allowed and not set(codes) <= allowed[fault]:
        wrong.append((turn, fault, "exit codes", codes, said))
    # A run that was killed while it published its result leaves its decision. The next run
    # completes that result and exits with 4.
    published, decision = ((pathlib.Path(out) / name).exists() for name in ("manifest.json", "_commit.json"))
    decided = published or decision
    if published and files(out) != reference:
        wrong.append((turn, fault, "torn", codes, said))
    again, said, _ = together(out)
    if set(again) != ({4} if decided else {0}) or files(out) != reference:
        wrong.append((turn, fault, "not mended", again, said))
    shutil.rmtree(out, ignore_errors=True)

for fault, tally in counts.items():
    print(fault, json.dumps(tally))
for one in wrong:
    print("WRONG", *one)
print(f"{given.rounds} rounds in {given.processes} processes, {usual:.2f} s undisturbed: {len(wrong)} wrong")
sys.exit(bool(wrong))
