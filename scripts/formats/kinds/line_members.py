"""Lines of JSON in several members, frames or streams, and plain lines next to them."""

import bz2
import json
import lzma

from made import Case, blocks, member, pages


def cases():
    lines = [json.dumps({"url": f"http://lines.example/{n}", "text": f"line {n} of many"}).encode() + b"\n" for n in range(90)]
    whole = b"".join(lines)
    warc = pages(30)

    def kept(name, file, content, count=90):
        return Case(name, {file: content}, {"read": count, "kept": count, "rejected": {}})

    for ending, pack in [("gz", member), ("bz2", bz2.compress), ("xz", lzma.compress)]:
        joined = lambda pieces: b"".join(map(pack, pieces))
        yield kept(f"a member for each line, {ending}", f"a.jsonl.{ending}", joined(lines))
        yield kept(f"blocks, {ending}", f"a.jsonl.{ending}", joined(blocks(whole, 1000)))
        yield kept(f"plain lines after a member, {ending}", f"a.jsonl.{ending}", pack(b"".join(lines[:20])) + b"".join(lines[20:]))
        yield kept(f"member, plain lines, member, {ending}", f"a.jsonl.{ending}",
                   pack(b"".join(lines[:20])) + b"".join(lines[20:50]) + pack(b"".join(lines[50:])))
        if ending != "gz":
            yield kept(f"WARC in blocks, {ending}", f"a.warc.{ending}", joined(blocks(b"".join(warc), 5000)), 30)
            yield kept(f"plain WARC records after, {ending}", f"a.warc.{ending}",
                       pack(b"".join(warc[:10])) + b"".join(warc[10:]), 30)
