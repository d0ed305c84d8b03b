#!/usr/bin/env python3
"""Writes the initial corpus of each fuzz target in a folder of its own: small synthetic inputs in
the formats of the tests."""

import gzip
import json
import pathlib
import struct
import sys

folder = pathlib.Path(sys.argv[1])


def put(target, *inputs):
    (folder / target).mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(inputs):
        (folder / target / f"{number:03}").write_bytes(data)


def changes(*rows):
    """Returns changes to a file: the action (0 flip, 1 set, 2 cut, 3 insert, 4 remove), the offset
    and the value."""
    return b"".join(struct.pack("<BHB", what, at, value) for what, at, value in rows)


def warc(kind, url, payload, more=(), length=None, media="application/http; msgtype=response"):
    fields = [f"WARC-Type: {kind}", f"WARC-Target-URI: {url}", "WARC-Date: 2020-02-03T04:05:06Z", f"Content-Type: {media}"]
    fields += [*more, f"Content-Length: {len(payload) if length is None else length}"]
    return ("WARC/1.0\r\n" + "\r\n".join(fields) + "\r\n\r\n").encode() + payload + b"\r\n\r\n"


def response(body, *fields, status="200 OK"):
    return ("HTTP/1.1 " + "\r\n".join([status, *fields]) + "\r\n\r\n").encode() + body


HTML = "Content-Type: text/html; charset=utf-8"
page = response(b"<title>A page</title><p>Some <a href=/two>words</a>.", HTML)
chunked = response(b"3\r\nabc\r\n004;x=y\r\ndefg\r\n0\r\n\r\n", HTML, "Transfer-Encoding: chunked")
packed = response(gzip.compress(b"<p>packed", 9, mtime=0), HTML, "Content-Encoding: gzip")
responses = [
    page,
    chunked,
    packed,
    response(b"", "Location: http://a.example/new", status="301 Moved"),
    response(b"not found", HTML, status="404 Not Found"),
    b"HTTP/1.1 100 Continue\r\n\r\n" + page,
    response(b"%PDF-1.4", "Content-Type: application/pdf"),
    response(b"x", "Content-Type: text/plain", "Content-Encoding: br, zstd, x-none"),
    b"HTTP/1.0 200\nContent-Type: text/html\n\n<p>old",
    b"no status",
]
archive = b"".join(
    [
        warc("warcinfo", "", b"software: none\r\n", media="application/warc-fields"),
        warc("response", "http://a.example/", page, ["WARC-Record-ID: <urn:uuid:1>"]),
        warc("revisit", "http://a.example/", b"", ["WARC-Refers-To: <urn:uuid:1>"]),
        warc("response", "http://b.example/", chunked, ["WARC-Segment-Number: 1"]),
        warc("request", "http://b.example/", b"GET / HTTP/1.1\r\n\r\n"),
        warc("resource", "http://c.example/", b"<p>text", media="text/html"),
        warc("conversion", "http://d.example/", b"only text", media="text/plain"),
    ]
)
arc = b"filedesc://x 0.0.0.0 20200203040506 text/plain 20\n1 0 none\nURL IP-addr\n\n" + (
    f"http://a.example/ 1.2.3.4 20200203040506 text/html {len(page)}\n".encode() + page + b"\n"
)
put(
    "warc",
    *[bytes([how]) + data for how in (0, 1, 200) for data in (archive, arc, archive[:-100], b"\0" * 9 + archive)],
    bytes([2]) + archive.replace(b"WARC/1.0", b"\xffWARC/1.0"),
    bytes([3]) + archive,
    bytes([251]) + archive,
    bytes([40]) + warc("response", "http://e.example/", archive, length=300) + archive,
    bytes([0]) + warc("response", "http://e.example/", page, length=9999999) + archive,
)
put(
    "html",
    *[
        bytes([how]) + text.encode()
        for how in range(6)
        for text in (
            "<!doctype html><title>T &amp; u</title><base href=/x/><a href=one>1</a><a href='two?q=1#f'>2</a><br><br>x",
            "<meta charset=windows-1252><p>a<p>b<table><tr><td>c<td>d</table><pre> e\n\n\nf </pre><ul><li>g<li>h</ul>",
            "<meta http-equiv=refresh content='3; url=/next'><link rel=canonical href=http://a.example/c><frame src=f>",
            "<script>if (a < b) '</scr' </script><style>p{}</style><!-- --><textarea><p></textarea><![CDATA[x]]>&#x20;&nbsp;&notit;",
            "<p\x00 <a href=\"unended>text &#99999999; &zwnj; \xad",
        )
    ],
)
rows = [
    {"url": "http://a.example/", "html": "<p>x", "fetch_time": "2020-02-03T04:05:06Z"},
    {"url": "http://b.example/", "text": "words", "fetch_time": 1580702706},
    {"url": 5},
    {"other": [{"a": None}]},
]
lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
put("jsonl", b"\0" + lines, b"\x09" + lines.replace(b"\n", b"\r\n"), b"\x40\xef\xbb\xbf" + lines + b"{", b"\x20\n\n[1]\n" + lines + b"\xff\n{\"url\":")
put(
    "parquet",
    b"\0",
    b"\1PAR1" + b"\0" * 20 + b"PAR1",
    *[b"\0" + changes((0, at, 1)) for at in range(0, 3000, 150)],
    b"\0" + changes((2, 500, 0)),
    b"\0" + changes((3, 100, 7), (4, 300, 20)),
)
heads = [
    b"GET /v1/page?url=http://a.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /v1/pages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 33\r\n\r\n"
    b'{"urls":["http://a.example/", ""]}',
    b"GET / HTTP/1.0\r\n\r\nGET /sets HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Type: text/html\r\n\r\n4\r\n<p>x\r\n0\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\n\r\n",
]
parts = [
    b"url=http://a.example/%20",
    b'\0{"urls":["http://a.example/","x"],"fields":["action"]}',
    b"\0http://a.example/\nhttp://b.example/x\n",
    b"url=http%3A//a.example/\0<p>Some text that nobody has",
    b'\0{"fingerprints":["0123456789abcdef"],"k":2,"limit":3}',
    b"0123456789abcdef?k=1&limit=9",
    b"0123456789abcdef?from=1&limit=2",
    b"0123456789abcdef",
    b"http://a.example/&b=http://b.example/",
    b"http://a.example/&newest=1&elsewhere=true&limit=3",
    b"http://a.example/",
    b"from=3&sort=size",
    b"0123456789abcdef",
    b"javascript:alert(1)",
    b"http://a.example/&b=x",
    b"openapi.json",
]
put(
    "http",
    *[b"\0" + data for data in responses],
    *[b"\1" + data for data in heads],
    *[bytes([3 * number + 2]) + data for number, data in enumerate(parts)],
)
hello = b"webtwin\n" + struct.pack("<II", 3, 1)
put(
    "handshake",
    *[bytes([how]) + data for how in (0, 1, 4, 5) for data in (hello, hello + b"x" * 300, b"webtwin\n" + b"\3\0\0\0" + b"\0" * 290, b"GET / HTTP/1.1\r\n\r\n")],
    *[bytes([how]) + bytes(data) for how in (2, 8) for data in ([], [0, 0, 1], [1, 20, 255], [2, 50, 1], [1, 12, 1], [0, 8, 2])],
)
put(
    "frames",
    *[bytes([how]) + data for how in (0, 1) for data in (b"", b"\0" * 30, b"\5\0\0\0" + b"x" * 40)],
    *[bytes([how]) + bytes(sent) + bytes(len(sent)) for how in (2, 3) for sent in ([9, 1, 7, 0], [2, 3, 1, 255, 9, 1])],
    *[bytes([how]) + bytes([9, 1, 7, 0]) + changes((what, at, 3)) for how in (2, 3) for what in range(5) for at in (2, 9, 40)],
)
numbers = b"".join(struct.pack("<Q", n * n * 0x9E3779B97F4A7C15 % 2**64) for n in range(40))
put(
    "fingerprint_file",
    *[bytes([6 + coder + more, width]) + numbers + changes((0, at, 1)) * 12 for coder in range(3) for more in (0, 126) for width in (63, 31, 5) for at in (3, 90, 700)],
    *[bytes([3 + coder, 63, 16, 4, 1]) + b"\0" * 4 + struct.pack("<QIII", 15, 16, 12, 0) + numbers for coder in range(3)],
    b"\0\0wt-fprnt" + struct.pack("<II", 1, 2) + b"{}",
)
put("index", *[bytes([which]) + changes((what, at, 1)) for which in range(30) for what in (0, 2) for at in (0, 40, 700)])
generation = {
    "number": 1, "id": "1f", "reading": "ab", "ghostscript": None, "job": "cd", "result": "/out", "diff": "x", "inputs": ["a.warc.gz"],
    "originals": [], "working_folder": "/", "files": [{"name": f"{63:032x}", "bytes": 9, "records": [{"key": "7", "offset": 0, "bytes": 9, "checksum": "00"}]}],
}
text = json.dumps(generation).encode()
put(
    "state",
    b"\0" + json.dumps({"format": 1, "checksum": "00", "generation": generation}).encode(),
    b"\0" + b'{"format":2}',
    b"\1" + text + changes((0, 60, 1)).ljust(len(text), b"\0"),
    b"\2" + b"\0" * 200,
    *[bytes([how, which]) + changes((what, at, 1)) for how in (3, 4) for which in (0, 1) for what in range(5) for at in (8, 60, 140)],
)
