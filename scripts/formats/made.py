"""Builds small inputs from scratch, with the expected results of a run. For the generators in
`kinds/`."""

import base64
import dataclasses
import gzip
import hashlib
import random
import struct
import typing
import uuid


@dataclasses.dataclass
class Case:
    """One input and its right result.

    files      content by path, below a folder of the case's own; paths are str, or bytes that are not UTF-8
    expect     `exit` (0 if not given), and any of: `read`, `kept`, `rejected` and `mended` (counts by reason, all of
               them), `says` (a part of stderr), and the names in `measure`
    options    more arguments of `webtwin run`
    inputs     inputs below the folder; all of `files`, if not given
    measure    functions of the run's `Outcome`, by the name of what they return
    """

    name: str
    files: dict
    expect: dict
    options: list = dataclasses.field(default_factory=list)
    inputs: typing.Optional[list] = None
    measure: dict = dataclasses.field(default_factory=dict)


def words(seed, count):
    """Returns sentences of ten synthetic words. Different seeds have different words."""
    draw = random.Random(f"words {seed}")
    syllable = lambda: draw.choice("bdfgklmnprstvz") + draw.choice("aeiou")
    made = ["".join(syllable() for _ in range(draw.randint(2, 4))) for _ in range(count)]
    return "\n".join(" ".join(made[at:at + 10]).capitalize() + "." for at in range(0, count, 10))


def html(seed, count=120, body="", head=""):
    """Returns a page with the given number of words."""
    paragraphs = "".join(f"<p>{line}</p>\n" for line in words(seed, count).split("\n"))
    return f"<!doctype html><html><head><title>{seed}</title>{head}</head><body>\n{paragraphs}{body}</body></html>\n".encode()


def http(body, fields="Content-Type: text/html; charset=utf-8", status="200 OK"):
    """Returns a response as a server sends it."""
    return f"HTTP/1.1 {status}\r\n".encode() + (f"{fields}\r\n" if fields else "").encode() + b"\r\n" + body


def record(uri, block, kind="response", media="application/http; msgtype=response", date="2026-01-01T00:00:00Z",
           name=None, fields=(), version="WARC/1.1"):
    """Returns a WARC record. `name` is its WARC-Record-ID without brackets; `fields` are additional
    header lines."""
    name = name or f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{kind} {uri} {date}')}"
    lines = [version, f"WARC-Type: {kind}", f"WARC-Record-ID: <{name}>", f"WARC-Date: {date}"]
    lines += [f"WARC-Target-URI: {uri}"] if uri else []
    lines += [f"Content-Type: {media}"] if media else []
    lines += [*fields, f"Content-Length: {len(block)}", "", ""]
    return "\r\n".join(lines).encode() + block + b"\r\n\r\n"


def pages(count, host="a.example", length=120):
    """Returns the given number of records of pages without copies."""
    return [record(f"http://{host}/{number}", http(html(f"{host} {number}", length))) for number in range(count)]


def arc_pages(count, host="arc.example"):
    """Returns the records of an ARC file: the header of the file, and the given number of pages."""
    about = b"1 0 made\nURL IP-address Archive-date Content-type Archive-length\n"
    records = [f"filedesc://made.arc 0.0.0.0 20260101000000 text/plain {len(about)}\n".encode() + about + b"\n"]
    for number in range(count):
        block = http(html(f"{host} {number}"))
        line = f"http://{host}/{number} 192.0.2.1 20260101000000 text/html {len(block)}\n"
        records.append(line.encode() + block + b"\n")
    return records


def member(content, level=6):
    """Returns a gzip member."""
    return gzip.compress(content, level, mtime=0)


def blocks(content, length):
    """Cuts content into pieces of a length."""
    return [content[at:at + length] for at in range(0, len(content), length)]


def raw_frame(content, window_byte):
    """Returns a zstd frame of raw blocks with the given window descriptor byte. Needs neither a
    compressor nor its memory."""
    pieces = blocks(content, 100_000) or [b""]
    heads = [struct.pack("<I", len(piece) << 3 | (piece is pieces[-1]))[:3] for piece in pieces]
    return b"\x28\xb5\x2f\xfd\x00" + bytes([window_byte]) + b"".join(h + p for h, p in zip(heads, pieces))


def skippable(content, number=0):
    """Returns a skippable zstd frame. Number 13 is that of a dictionary."""
    return struct.pack("<II", 0x184D2A50 + number, len(content)) + content


def sha1(content):
    """Returns a digest as in a record header."""
    return "sha1:" + base64.b32encode(hashlib.sha1(content).digest()).decode()
