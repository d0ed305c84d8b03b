#!/usr/bin/env python3
"""Writes a WARC file of synthetic pages. Each page comes with a request, a metadata record and an
image, which are not kept.

Each record is one gzip member, as crawlers write them.
"""

import argparse
import random
import zlib

parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
parser.add_argument("--pages", type=int, default=300_000)
parser.add_argument("--revisits", type=int, default=0, help="revisits of the first pages, at the end")
parser.add_argument("--host-pages", type=int, default=50, help="number of pages per host")
parser.add_argument("--others", type=int, default=3, help="records per page that are not kept, up to 3")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--out", required=True, help="the file, .warc.gz")
given = parser.parse_args()
rng = random.Random(given.seed)
words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9))) for _ in range(5000)]


def url_of(n):
    return f"http://h{n // given.host_pages}.example/d{n % given.host_pages // 100}/{n % given.host_pages}"


def record(kind, url, number, body, more=()):
    head = ["WARC/1.1", f"WARC-Type: {kind}", f"WARC-Record-ID: <urn:uuid:{number:032x}>", f"WARC-Target-URI: {url}"]
    head += ["WARC-Date: 2026-11-25T00:00:00Z", *more, f"Content-Length: {len(body)}"]
    packer = zlib.compressobj(1, wbits=31)
    return packer.compress("\r\n".join(head).encode() + b"\r\n\r\n" + body + b"\r\n\r\n") + packer.flush()


def response(kind, body):
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


http = ("Content-Type: application/http; msgtype=response",)
with open(given.out, "wb") as out:
    for n in range(given.pages):
        url, next_url = url_of(n), url_of(n - n % given.host_pages + (n + 1) % given.host_pages)
        # Every tenth page repeats the text of the previous one.
        text = text if n % 10 == 9 else " ".join(rng.choices(words, k=60))
        html = f'<html><title>{n}</title><body><p>{text}</p><a href="{next_url}">next</a></body></html>'
        others = [
            record("request", url, 4 * n, b"GET / HTTP/1.1\r\n\r\n", ("Content-Type: application/http; msgtype=request",)),
            record("metadata", url, 4 * n + 2, b"via: none\r\n", ("Content-Type: application/warc-fields",)),
            record("response", url + ".png", 4 * n + 3, response("image/png", b"\x89PNG" + bytes(40)), http),
        ]
        out.write(record("response", url, 4 * n + 1, response("text/html", html.encode()), http))
        out.writelines(others[: given.others])
    for n in range(given.revisits):
        profile = "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/server-not-modified"
        refers = f"WARC-Refers-To: <urn:uuid:{4 * n + 1:032x}>"
        not_modified = b"HTTP/1.1 304 Not Modified\r\n\r\n"
        out.write(record("revisit", url_of(n), 4 * (given.pages + n), not_modified, (*http, profile, refers)))
