#!/usr/bin/env python3
"""Runs crawls of unusual shapes with the minimum memory that is accepted, in one process and in
several on this machine.

    scripts/scale/shapes.py --webtwin WEBTWIN --folder FOLDER [--shapes mirrors,long-urls] [--processes 1,4,16] [--scale 0.1]

Prints one row for each shape and number of processes, with one worker each: the bound that the
rejection of 1 MB leads to; the median and the largest peak of the processes with it; the excess of
the largest peak; the largest peak of a run without a bound next to that of `plan`; and whether both
runs have the same files. Crawls are generated once and kept in FOLDER; --scale makes them smaller.
"""

import argparse
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import zlib

from loopback import calls

WORDS = ["".join(random.Random(n).choices("abcdefghijklmnopqrstuvwxyz", k=3 + n % 7)) for n in range(5000)]
HTTP = "Content-Type: application/http; msgtype=response"


class Crawl:
    """A growing WARC file with one gzip member per record."""

    def __init__(self, path):
        self.out, self.rng, self.number = open(path, "wb"), random.Random(1), 0

    def record(self, kind, url, body, *more):
        self.number += 1
        head = ["WARC/1.1", f"WARC-Type: {kind}", f"WARC-Record-ID: <urn:uuid:{self.number:032x}>", f"WARC-Target-URI: {url}"]
        head += ["WARC-Date: 2026-11-25T00:00:00Z", *more, f"Content-Length: {len(body)}"]
        packer = zlib.compressobj(1, wbits=31)
        self.out.write(packer.compress("\r\n".join(head).encode() + b"\r\n\r\n" + body + b"\r\n\r\n") + packer.flush())

    def response(self, url, status, body, *headers):
        head = "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}"))
        self.record("response", url, head.encode() + b"\r\n" + body, HTTP)

    def page(self, url, text, links):
        anchors = "".join(f'<a href="{link}">{number}</a> ' for number, link in enumerate(links))
        html = f"<html><title>{url[-40:]}</title><body><p>{text}</p>{anchors}</body></html>"
        self.response(url, "200 OK", html.encode(), "Content-Type: text/html")

    def text(self):
        return " ".join(self.rng.choices(WORDS, k=80))

    def site(self, pages, url):
        """Yields pages that link to the next three. Every tenth page repeats the text of the
        previous one."""
        text = ""
        for n in range(pages):
            text = text if n % 10 == 9 else self.text()
            self.page(url(n), text, [url((n + step) % pages) for step in (1, 2, 3)])


def one_host(crawl, scale):
    crawl.site(int(200_000 * scale), lambda n: f"http://one.example/{n // 100}/{n}")


def page_a_host(crawl, scale):
    crawl.site(int(100_000 * scale), lambda n: f"http://h{n}.example/")


def mirrors(crawl, scale):
    pages = int(5_000 * scale)
    texts = [crawl.text() for _ in range(pages)]
    for host in range(16):
        for n, text in enumerate(texts):
            crawl.page(f"http://m{host}.example/d{n // 50}/{n}", text, [f"/d{to % pages // 50}/{to % pages}" for to in range(n + 1, n + 9)])


def same_text(crawl, scale):
    text = crawl.text()
    for n in range(int(100_000 * scale)):
        crawl.page(f"http://h{n % 100}.example/{n}", text, [f"/{n + 100}"])


def long_urls(crawl, scale):
    crawl.site(int(25_000 * scale), lambda n: f"http://h{n % 50}.example/{n}/" + "abcdefghi/" * 198)


def many_links(crawl, scale):
    pages = int(3_000 * scale)
    for n in range(pages):
        links = (f"http://h{to % 20}.example/{to}" for to in crawl.rng.choices(range(pages), k=1500))
        crawl.page(f"http://h{n % 20}.example/{n}", crawl.text(), links)


def few_pages(crawl):
    crawl.site(20_000, lambda n: f"http://h{n // 50}.example/{n}")


def rejected(crawl, scale):
    few_pages(crawl)
    for n in range(int(300_000 * scale)):
        crawl.response(f"http://h{n % 400}.example/gone/{n}", "404 Not Found", b"gone", "Content-Type: text/html")


def redirects(crawl, scale):
    few_pages(crawl)
    for n in range(int(200_000 * scale)):
        to = n % 20_000
        crawl.response(f"http://h{n % 400}.example/old/{n}", "301 Moved", b"", f"Location: http://h{to // 50}.example/{to}")


def revisits(crawl, scale):
    few_pages(crawl)
    profile = "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/server-not-modified"
    for n in range(int(150_000 * scale)):
        page = n % 20_000
        refers = f"WARC-Refers-To: <urn:uuid:{page + 1:032x}>"
        crawl.record("revisit", f"http://h{page // 50}.example/{page}", b"HTTP/1.1 304 Not Modified\r\n\r\n", HTTP, profile, refers)


SHAPES = {make.__name__.replace("_", "-"): make for make in
          (one_host, page_a_host, mirrors, same_text, long_urls, many_links, rejected, redirects, revisits)}


def run(given, crawl, processes, allowed, folder):
    """Returns the manifest of a run, or its error message."""
    out = folder / f"out-{allowed}"
    words = [given.webtwin, "run", "--input", str(crawl), "--set", f"effort.spill={folder}", "--set", f"effort.memory_bytes={allowed}", "--output", str(out)]
    said = [folder / f"said-{number}" for number in range(processes)]
    started = [subprocess.Popen(call, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=path.open("w")) for call, path in zip(calls(words, processes, 1, folder), said)]
    if any([one.wait() for one in started]):
        return None, "".join(path.read_text() for path in said)
    return json.loads((out / "manifest.json").read_text()), ""


def least(given, crawl, processes, folder):
    allowed = 1_000_000
    while True:
        manifest, said = run(given, crawl, processes, allowed, folder)
        if manifest:
            return allowed, manifest
        asked = max(map(int, re.findall(r"set effort\.memory_bytes to (\d+) or more", said)), default=0)
        if asked <= allowed:
            sys.exit(said)
        allowed = asked


def peaks(manifest):
    return sorted(process["peak_memory_bytes"] / 1e6 for process in manifest["processes"])


def planned(given, crawl, processes):
    words = [given.webtwin, "plan", "--json", "--input", str(crawl), "--machines", str(processes), "--workers", "1"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["memory_bytes"] / 1e6 if done.returncode == 0 else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webtwin", default="target/release/webtwin")
    parser.add_argument("--folder", required=True)
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--processes", default="1,4,16")
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--bound-only", action="store_true", help="omit the run without a bound")
    given = parser.parse_args()
    given.webtwin = os.path.abspath(given.webtwin)
    print("| shape | processes | least, MB | median, largest peak | beyond | without a bound, `plan` | same files |")
    print("|---|---|---|---|---|---|---|")
    for shape in given.shapes.split(","):
        crawl = pathlib.Path(given.folder, f"{shape}-{given.scale:g}.warc.gz")
        if not crawl.exists():
            made = Crawl(crawl.with_suffix(".new"))
            SHAPES[shape](made, given.scale)
            made.out.close()
            crawl.with_suffix(".new").rename(crawl)
        for processes in map(int, given.processes.split(",")):
            with tempfile.TemporaryDirectory(prefix="shapes-", dir=given.folder) as folder:
                folder = pathlib.Path(folder)
                allowed, manifest = least(given, crawl, processes, folder)
                within = peaks(manifest)
                row = f"| {shape} | {processes} | {allowed / 1e6:.0f} | {within[len(within) // 2]:.0f}, {within[-1]:.0f} | {1e6 * within[-1] / allowed - 1:+.0%} |"
                if given.bound_only:
                    print(row, "| |", flush=True)
                    continue
                free, said = run(given, crawl, processes, 0, folder)
                same = "yes" if free and free["files"] == manifest["files"] else f"NO {said}"
                foretold = planned(given, crawl, processes)
                print(row, f"{peaks(free)[-1] if free else 0:.0f}, {foretold:.0f} ({foretold / peaks(free)[-1] - 1 if free else 0:+.0%}) | {same} |", flush=True)


if __name__ == "__main__":
    main()
