"""Bytes that are really lost. A run that loses most of a file exits with 5, whatever the number of
records is."""

import json

from made import Case, blocks, member, pages, record

JUNK = bytes(range(1, 256)) * 4000


def cases():
    all_pages = pages(60, length=300)
    joined = lambda pieces: b"".join(map(member, pieces))
    lost = {"exit": 5, "says": "lost"}
    yield Case("garbage that is most of a gzip file", {"a.warc.gz": joined(all_pages[:3]) + JUNK}, lost)
    yield Case("garbage that is most of a plain file", {"a.warc": b"".join(all_pages[:3]) + JUNK}, lost)
    yield Case("a little garbage between members", {"a.warc.gz": joined(all_pages[:30]) + JUNK[:20] + joined(all_pages[30:])},
               {"read": 61, "kept": 60, "rejected": {"garbage": 1}})
    one = bytearray(member(b"".join(all_pages)))
    one[200:260] = bytes(60)
    yield Case("one member, damaged near its start", {"a.warc.gz": joined(all_pages[:2]) + bytes(one)}, lost)
    half = member(b"".join(all_pages))
    yield Case("one member, half of it missing", {"a.warc.gz": half[:len(half) // 2]},
               {"torn": 1}, measure={"torn": lambda outcome: len(outcome.summary["records"]["torn"])},
               options=["--max-bad", "1"])
    damaged = [bytearray(member(block)) for block in blocks(b"".join(all_pages), 20_000)]
    damaged[3][500:540] = bytes(40)
    few_lost = {"kept at least 40": True, "bytes add up": True}
    yield Case("a damaged block of many", {"a.warc.gz": b"".join(damaged)}, few_lost, options=["--max-bad", "1"], measure={
        "kept at least 40": lambda outcome: outcome.summary["records"]["kept"] >= 40,
        "bytes add up": adds_up})
    torn = joined(all_pages)
    yield Case("a record for each member, the last one torn", {"a.warc.gz": torn[:-200]},
               {"read": 60, "kept": 59, "rejected": {"truncated": 1}})
    film = record("http://a.example/film", bytes(range(256)) * (70 << 10), media="video/mp4", kind="resource")
    yield Case("a film over the limit is not lost", {"a.warc": b"".join(all_pages) + film + all_pages[0]},
               {"exit": 0})
    lines = "".join(json.dumps({"url": f"http://lines.example/{n}", "text": f"text {n} " * 40}) + "\n" for n in range(900)).encode()
    packed = bytearray(member(lines))
    packed[len(packed) // 5:len(packed) // 5 + 50] = bytes(50)
    yield Case("lines whose rest is lost", {"a.jsonl.gz": bytes(packed)}, lost)


def adds_up(outcome):
    """True if the bytes read are the sum of those kept and those rejected, and not zero."""
    counted = outcome.summary["records"]["bytes"]
    return counted["read"] == counted["kept"] + counted["rejected"] > counted["rejected"] > 0
