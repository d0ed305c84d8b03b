"""Zstd files: frames that do not correspond to records, files with dictionaries, windows of any
size, skippable frames."""

import json

import zstandard

from made import Case, blocks, member, pages, raw_frame, skippable


def with_dictionary(records):
    """Returns records in frames that need the preceding dictionary, as in `.warc.zst` files."""
    dictionary = zstandard.train_dictionary(4000, records)
    compressor = zstandard.ZstdCompressor(dict_data=dictionary)
    return skippable(dictionary.as_bytes(), 13) + b"".join(map(compressor.compress, records))


def packed_dictionary(records):
    """Returns the same with a compressed dictionary."""
    dictionary = zstandard.train_dictionary(4000, records)
    compressor = zstandard.ZstdCompressor(dict_data=dictionary)
    packed = zstandard.ZstdCompressor().compress(dictionary.as_bytes())
    return skippable(packed, 13) + b"".join(map(compressor.compress, records))


def cases():
    all_pages = pages(400)
    whole = b"".join(all_pages)
    frame = zstandard.ZstdCompressor(write_checksum=True).compress
    joined = lambda pieces: b"".join(map(frame, pieces))
    half = len(all_pages) // 2

    def kept(name, content, count=400, file="a.warc.zst", **more):
        return Case(name, {file: content}, {"read": count, "kept": count, "rejected": {}}, **more)

    yield kept("a frame for each record", joined(all_pages))
    yield kept("one frame", frame(whole))
    yield kept("blocks", joined(blocks(whole, 10_000)))
    yield kept("a dictionary", with_dictionary(all_pages))
    yield kept("a compressed dictionary", packed_dictionary(all_pages))
    yield kept("two files with dictionaries", with_dictionary(all_pages[:half]) + with_dictionary(all_pages[half:]))
    yield kept("a dictionary in the middle", joined(all_pages[:half]) + packed_dictionary(all_pages[half:]))
    yield kept("a dictionary, and frames without", with_dictionary(all_pages[:half]) + joined(all_pages[half:]))
    yield kept("three dictionaries, plain records and gzip members", b"".join([
        with_dictionary(all_pages[:100]), b"".join(all_pages[100:120]), packed_dictionary(all_pages[120:240]),
        b"".join(map(member, all_pages[240:260])), with_dictionary(all_pages[260:])]))
    yield kept("plain records after frames", joined(all_pages[:2]) + b"".join(all_pages[2:]))
    yield kept("plain records before frames", b"".join(all_pages[:half]) + joined(all_pages[half:]), file="a.warc")
    yield kept("skippable frames between frames", skippable(b"x" * 300, 3).join(map(frame, all_pages)))

    few = pages(5)
    rows = [{"url": f"http://lines.example/{number}", "text": f"line number {number}"} for number in range(14)]
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    for log in (27, 28):
        window = (log - 10) << 3
        yield kept(f"a window of 2^{log}", raw_frame(b"".join(few), window), 5)
        yield kept(f"lines in a window of 2^{log}", raw_frame(lines, window), 14, "a.jsonl.zst")
    for log in (30, 31):
        window, gib = (log - 10) << 3, 1 << (log - 30)
        refused = {"exit": 3, "says": f"window of {gib}.0 GiB, but input.limits.window_bytes allows 256.0 MiB; set "
                                      f"input.limits.window_bytes (of dedup: --max-window) to {gib << 30}"}
        raised = ["--set", f"input.limits.window_bytes={gib << 30}"]
        for file, content, count in [("a.warc.zst", b"".join(few), 5), ("a.jsonl.zst", lines, 14)]:
            yield Case(f"a window of {gib} GiB, {file}", {file: raw_frame(content, window)}, refused)
            yield kept(f"the same, allowed: {gib} GiB, {file}", raw_frame(content, window), count, file, options=raised)
    yield Case("a window of 2 GiB behind others", {"a.warc.zst": joined(few[:4]) + raw_frame(few[4], 21 << 3)},
               {"exit": 3, "says": "input.limits.window_bytes"})
    yield Case("a window of 2 TiB", {"a.warc.zst": raw_frame(b"".join(few), 31 << 3)},
               {"exit": 3, "says": "window of"})
