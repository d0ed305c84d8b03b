"""Writes a crawl whose pages say hostile things, twice each so that they are copies: hostile.py FILE."""

import sys

TITLES = [
    "</script><img src=x onerror=document.title='broken'>",
    "</title></bdi></td></table></main><h1>broken out</h1>",
    "\u202eright to left\u2066 and no end",
    "line\u2028separator\u2029paragraph separator",
    "x" * 10_000,
    "words " * 2_000,
    "{{7*7}} ${7*7} <%= 7*7 %> \x00\x1b[31m",
]
WORDS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split()


def record(url, title, number):
    escaped = title.replace("&", "&amp;").replace("<", "&lt;")
    lines = [" ".join(WORDS[(number * 5 + row * 3 + k * (row + 1)) % 16] + str(number) for k in range(12)) for row in range(8)]
    links = "".join(f"<a href='{other}.html'>page {other}</a> <a href='javascript:alert(1)'>{escaped}</a>" for other in range(len(TITLES)))
    body = f"<meta charset=utf-8><title>{escaped}</title><p>{escaped}</p>" + "".join(f"<p>{line}</p>" for line in lines) + links
    http = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}".encode()
    head = (
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-%012d>\r\n"
        "WARC-Date: 2026-01-01T00:00:00Z\r\nWARC-Target-URI: %s\r\nContent-Type: application/http; msgtype=response\r\n"
        "Content-Length: %d\r\n\r\n" % (record.count, url, len(http))
    )
    record.count += 1
    return head.encode() + http + b"\r\n\r\n"


record.count = 0

with open(sys.argv[1], "wb") as out:
    for host in ["a", "b", "c"]:
        for number, title in enumerate(TITLES):
            # In the path: characters that a browser would normalise, and characters that it would not.
            out.write(record(f"http://{host}.example/%3Cimg%20src=x%3E'\"&lt;/{number}.html", title, number))
