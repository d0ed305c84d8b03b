"""Special cases that docs/input.md defines: bytes after a zip archive, ICY, dots of hosts,
tombstones, NaN."""

import io
import zipfile

from made import Case, arc_pages, html, http, member, pages, record


def wacz(count):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo("archive/data.warc.gz"), b"".join(map(member, pages(count))))
        archive.writestr(zipfile.ZipInfo("datapackage.json"), "{}")
    return file.getvalue()


def cases():
    five = {"read": 5, "kept": 5, "rejected": {}}
    ends = {"zeros": bytes(1000), "text": b"signed by nobody\n", "60 kB": b"x" * 60_000, "a mark": b"PK\x05\x06"}
    for name, after in ends.items():
        yield Case(f"{name} after a zip archive", {"a.wacz": wacz(5) + after}, five)
    yield Case("100 kB after a zip archive", {"a.wacz": wacz(5) + b"x" * 100_000}, {"exit": 3, "says": "more than 64 KiB"})

    def response(status, fields, body):
        return {"a.warc": record("http://a.example/", f"{status}\r\n{fields}\r\n\r\n".encode() + body)}

    kept = {"kept": 1, "rejected": {}}
    yield Case("ICY, HTML", response("ICY 200 OK", "Content-Type: text/html", html("icy")), kept)
    yield Case("ICY, a stream", response("ICY 200 OK", "content-type: audio/mpeg", bytes(99)),
               {"kept": 0, "rejected": {"not_text": 1}})
    yield Case("ICY, an error", response("ICY 401 Unavailable", "a: b", b""),
               {"kept": 0, "rejected": {"status_not_2xx": 1}})
    yield Case("HTTP in small letters", response("http/1.1 200 OK", "Content-Type: text/html", html("h")), kept)

    hosts = ["a.example", "a.example.", "a.example..", "a.example..."]
    captures = b"".join(record(f"http://{host}/", http(html("dots")), date=f"2026-01-0{number + 1}T00:00:00Z")
                        for number, host in enumerate(hosts))
    urls = {"urls": lambda outcome: [row["url"] for row in outcome.table("pages")]}
    yield Case("dots at the end of a host", {"a.warc": captures},
               {"kept": 1, "rejected": {"older_capture": 3}, "urls": ["http://a.example/"]}, measure=urls)

    arc = arc_pages(3)
    for name, line, content in [
        ("empty", "http://gone.example/ 0.0.0.0 20080101000000 text/html 0", b""),
        ("without a type", "http://gone.example/ 0.0.0.0 20080101000000 no-type 0", b""),
        ("zeros", "http://gone.example/ 192.0.2.1 20080101000000 text/html 300", bytes(300)),
        ("blanks", "http://gone.example/ 192.0.2.1 20080101000000 text/html 300", b" " * 299 + b"\n"),
        ("version 2", "http://gone.example/ 0.0.0.0 20080101000000 text/html 410 - - 0 made.arc 0", b""),
    ]:
        tombstone = line.encode() + b"\n" + content + b"\n"
        for form, join in [("plain", b"".join), ("gzip", lambda records: b"".join(map(member, records)))]:
            yield Case(f"a tombstone, {name}, {form}", {"a.arc": join([*arc[:2], tombstone, *arc[2:]])},
                       {"read": 5, "kept": 3, "rejected": {"not_a_page_record": 2}})

    values = ["NaN", "Infinity", "-Infinity", "[1, NaN]", '{"a": NaN}', "1.5", '"NaN"']
    lines = ['{"url": "http://a.example/%d", "text": "NaN %d %s", "score": %s}' % (number, number, "word " * 20, value)
             for number, value in enumerate(values)]
    yield Case("NaN in JSON", {"a.jsonl": "\n".join(lines)},
               {"read": 7, "kept": 7, "rejected": {}, "mended": {"bad_json": 5}})
    yield Case("NaN in place of a text", {"a.jsonl": '{"url": "http://a.example/", "text": NaN}\n' + lines[5]},
               {"read": 2, "kept": 1, "rejected": {"bad_field": 1}})
