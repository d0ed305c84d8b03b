#!/usr/bin/env python3
"""Measures the cost of a delay between two processes: runs with and without it, in turn.

Each process is in a network namespace of its own (needs root and Linux). A packet from one to the
other passes two tun devices and is forwarded after the delay.
"""
import argparse
import atexit
import fcntl
import collections
import json
import os
import pathlib
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000


def relay(end, delay):
    """Forwards packets of this namespace's device to the one behind `end`, and packets from there
    to the device, `delay` seconds late."""
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", b"far", IFF_TUN | IFF_NO_PI))
    os.set_blocking(tun, False)
    end.setblocking(False)
    waiting = collections.deque()
    print("ready", flush=True)
    while True:
        left = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for ready in select.select([tun, end], [], [], left)[0]:
            try:
                for _ in range(64):
                    if ready is end:
                        packet = end.recv(1 << 16)
                        if not packet:
                            return
                        waiting.append((time.monotonic() + delay, packet))
                    else:
                        # A packet that does not fit into the queue is lost, as on any link.
                        end.send(os.read(tun, 1 << 16))
            except BlockingIOError:
                pass
        while waiting and waiting[0][0] <= time.monotonic():
            try:
                os.write(tun, waiting.popleft()[1])
            except OSError:
                pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webtwin", default="target/release/webtwin")
    parser.add_argument("--pages", type=int, default=36000)
    parser.add_argument("--delay", type=float, default=50.0, help="round-trip delay in milliseconds [50]")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--most", type=float, help="exit with 1 if the median with the delay exceeds this multiple of the one without")
    parser.add_argument("--relay", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.relay is not None:
        return relay(socket.socket(fileno=0), given.relay)

    folder = pathlib.Path(tempfile.mkdtemp(prefix="latency-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    names = [f"wt{os.getpid()}n{number}" for number in range(2)]
    addresses = [f"10.78.0.{number + 1}:2101" for number in range(2)]

    def within(number, *words):
        return ["ip", "netns", "exec", names[number], *words]

    for name in names:
        subprocess.run(["ip", "netns", "add", name], check=True)
        atexit.register(subprocess.run, ["ip", "netns", "del", name])
    (folder / "key").write_text("k" * 40)
    (folder / "key").chmod(0o600)
    cluster = folder / "cluster.toml"
    processes = "".join(f'[[process]]\naddress = "{address}"\n' for address in addresses)
    cluster.write_text(f'workers = 1\nkey_file = "key"\n{processes}')

    children = []

    def end_all():
        for child in children:
            child.kill()
            child.wait()
        children.clear()

    atexit.register(end_all)

    def measured(delay):
        """Runs a job; returns its seconds and its rounds."""
        ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in ends:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        relays = [
            subprocess.Popen(
                within(number, sys.executable, __file__, "--relay", str(delay / 2000)), stdin=ends[number], stdout=subprocess.PIPE
            )
            for number in range(2)
        ]
        children.extend(relays)
        [end.close() for end in ends]
        for number, one in enumerate(relays):
            if one.stdout.readline() != b"ready\n":
                sys.exit("the relay did not start; check that /dev/net/tun exists")
            for words in (["addr", "add", addresses[number].split(":")[0] + "/24", "dev", "far"], ["link", "set", "far", "up"]):
                subprocess.run(["ip", "-n", names[number], *words], check=True)
            subprocess.run(["ip", "-n", names[number], "link", "set", "lo", "up"], check=True)
        output = folder / "out"
        shutil.rmtree(output, ignore_errors=True)
        words = [os.path.abspath(given.webtwin), "run", "--input", f"synth://?pages={given.pages}&seed=1"]
        words += ["--output", str(output), "--cluster", str(cluster)]
        begun = time.monotonic()
        said = [open(folder / f"said-{n}", "w+b") for n in range(2)]
        runs = [subprocess.Popen(within(n, *words, "--process", str(n)), stderr=said[n]) for n in range(2)]
        children.extend(runs)
        for n, run in enumerate(runs):
            if run.wait():
                said[n].seek(0)
                sys.exit(said[n].read().decode())
        took = time.monotonic() - begun
        end_all()
        return took, json.loads((output / "manifest.json").read_text())["rounds"]

    runs = []
    for _ in range(given.times):
        (without, rounds), (delayed, _) = measured(0.0), measured(given.delay)
        runs.append((delayed / without, without, delayed))
        print(f"{given.pages} pages, {rounds} rounds: {without:.2f} s, {delayed:.2f} s with {given.delay:g} ms, {delayed / without:.2f} times", flush=True)
    median = sorted(runs)[len(runs) // 2][0]
    print(f"median {median:.2f} times")
    if given.most and median > given.most:
        sys.exit(1)


if __name__ == "__main__":
    main()
