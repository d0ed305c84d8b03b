#!/usr/bin/env python3
"""Reads WARC, ARC and WACZ files with warcio, FastWARC and webtwin, and reports where they differ.

    usage: compare.py WEBTWIN OUT FILE...      (needs: pip install warcio fastwarc pyarrow xxhash brotli)

Every record that warcio reads must be a page of webtwin or a row of `rejected`, so both count the
same records. webtwin must count at least the records that FastWARC reads, and its kept and rejected
records must add up to its records read. A record that webtwin rejects as damaged (`garbage`,
`bad_...`) but one of the others reads at its offset is reported as LOST. A page that webtwin keeps
must have the URL, the status and the decoded body of warcio's record at its offset; a revisit must
have the body of the record that the table `revisits` names. Each file is a run of its own into OUT.
Prints one line per file. The exit code is 1 if any file differs.
"""

import bz2
import collections
import io
import json
import lzma
import pathlib
import subprocess
import sys
import urllib.parse
import zipfile

import pyarrow.parquet
import brotli
import xxhash
from fastwarc.warc import ArchiveIterator as FastArchiveIterator
from warcio.archiveiterator import ArchiveIterator


def streams(file):
    """Yields the WARC or ARC streams in a file, each with the suffix of the file's name in the
    column `source`."""
    if file.suffix == ".wacz":
        with zipfile.ZipFile(file) as package:
            for name in package.namelist():
                if name.startswith("archive/"):
                    yield f"!/{name}", io.BytesIO(package.read(name))
        return
    opened = {".xz": lzma.open, ".bz2": bz2.open}.get(file.suffix, open)
    with opened(file, "rb") as stream:
        yield "", stream


def read_by_warcio(file):
    """Returns the records by stream and offset: lists of (type, URL, status, hash of the decoded
    body)."""
    records = collections.defaultdict(list)
    for place, stream in streams(file):
        iterator = ArchiveIterator(stream, arc2warc=True)
        for record in iterator:
            kind = record.rec_type
            status = record.http_headers and record.http_headers.get_statuscode()
            try:
                head = record.http_headers
                if head and (head.get_header("Content-Encoding") or "").strip().lower() == "br" and not head.get_header("Transfer-Encoding"):
                    body = brotli.decompress(record.raw_stream.read())  # warcio knows another library for it
                else:
                    body = record.content_stream().read()
            except Exception as error:  # what warcio cannot decode, it says by many classes
                body = str(error).encode()
            url = record.rec_headers.get_header("WARC-Target-URI") or ""
            # This skips the unread rest of the record.
            offset = iterator.get_record_offset()
            records[place, offset].append((kind, url.strip("<>"), status, xxhash.xxh3_64_intdigest(body) if body else 0))
    return records


def read_by_fastwarc(file):
    """Returns the offsets of the records that FastWARC reads, by stream, and the error that ended
    the reading, if any."""
    offsets, broke = set(), ""
    for place, stream in streams(file):
        try:
            for record in FastArchiveIterator(stream, parse_http=False):
                offsets.add((place, record.stream_pos))
        except Exception as error:
            broke = f"; FastWARC ends with: {type(error).__name__}"
    return offsets, broke


def table(out, name):
    parts = sorted((out / name).glob("part-*.parquet"))
    return [row for part in parts for row in pyarrow.parquet.read_table(part).to_pylist()]


def same_url(theirs, ours):
    """Returns a URL without the parts that webtwin canonicalises: fragment, user, empty path, case
    of the host."""
    parts = urllib.parse.urlsplit(theirs)
    return ours == parts._replace(netloc=parts.netloc.lower().rpartition("@")[2], path=parts.path or "/", fragment="").geturl()


def compare(webtwin, out, file):
    arguments = [webtwin, "run", "--input", str(file), "--output", str(out)]
    arguments += ["--max-bad", "1", "--set", 'input.digests="check"', "--workers", "2"]
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode != 0:
        return f"exit {done.returncode}: {done.stderr.strip().splitlines()[-1]}", True
    summary = json.loads((out / "summary.json").read_text())["records"]
    theirs, broke, lost = {}, "", []
    try:
        theirs = read_by_warcio(file)
    except Exception as error:
        broke = f"; warcio ends with: {type(error).__name__}: {error}"
    count = sum(map(len, theirs.values()))
    wrong = []
    fast, fast_broke = read_by_fastwarc(file)
    if len(fast) > summary["read"]:
        wrong.append(f"FastWARC reads {len(fast)}")
    if summary["read"] != summary["kept"] + sum(summary["rejected"].values()):
        wrong.append("read is not kept and rejected")
    damage = ("garbage", "truncated", "gzip_crc")
    for row in table(out, "rejected"):
        at = (row["source"].removeprefix(str(file)), row["offset"])
        is_read = [name for name, offsets in (("warcio", theirs), ("FastWARC", fast)) if at in offsets]
        if is_read and (row["reason"].startswith("bad_") or row["reason"] in damage):
            lost.append(f"at {at[1]}: {row['reason']} ({row['detail'][:60]}), read by {' and '.join(is_read)}")
    if not broke and count != summary["read"]:
        wrong.append(f"warcio reads {count}")
    originals = {row["url"]: row for row in table(out, "revisits")} if (out / "revisits").exists() else {}
    for page in table(out, "pages") if not broke else []:
        original = originals.get(page["url"])
        at = (page["source"].removeprefix(str(file)), page["offset"])
        body_at = (original["original_source"].removeprefix(str(file)), original["original_offset"]) if original else at
        heads = [record for record in theirs.get(at, []) if same_url(record[1], page["url"])]
        bodies = [record[3] for record in theirs.get(body_at, [])]
        if not heads:
            wrong.append(f"no such record: {page['url']} at {page['offset']}")
        elif page["body"] not in bodies:
            wrong.append(f"other body: {page['url']}")
        elif heads[0][0] == "response" and heads[0][2] not in (None, str(page["status"])):
            wrong.append(f"other status: {page['url']}")
    reasons = ", ".join(f"{n} {reason}" for reason, n in sorted(summary["rejected"].items()))
    mended = ", ".join(f"{n} {reason}" for reason, n in sorted(summary["mended"].items()))
    said = f"{summary['read']} records, {summary['kept']} pages ({len(originals)} revisits)"
    said += f"; rejected: {reasons or 'none'}" + (f"; mended: {mended}" if mended else "") + broke.split("\n")[0] + fast_broke
    said += "".join(f"\n    LOST {what}" for what in lost[:10])
    return said + "".join(f"\n    DIFFERS {what}" for what in wrong[:10]), bool(wrong)


def main():
    webtwin, out, *files = sys.argv[1:]
    differs = False
    for number, file in enumerate(sorted(map(pathlib.Path, files))):
        said, wrong = compare(webtwin, pathlib.Path(out) / f"{number:02}", file)
        differs |= wrong
        print(f"{file.name}: {said}", flush=True)
    sys.exit(1 if differs else 0)


if __name__ == "__main__":
    main()
