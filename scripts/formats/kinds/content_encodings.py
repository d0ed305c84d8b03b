"""Values of `Content-Encoding` that are not an encoding, or not that of the body. The body is a
page nevertheless."""

import zlib

from made import Case, html, http, member, record


def cases():
    def one(name, value, expected, encode=lambda body: body, media="text/html; charset=utf-8", **more):
        block = http(encode(html("encoded")), f"Content-Type: {media}\r\nContent-Encoding: {value}")
        pages = [record("http://a.example/", block), record("http://a.example/other", http(html("other")))]
        return Case(name, {"a.warc": b"".join(pages)}, {"read": 2, **expected}, **more)

    right = {"kept": 2, "rejected": {}, "mended": {}}
    none = {"kept": 2, "rejected": {}, "mended": {"unknown_encoding": 1}}
    lie = {"kept": 2, "rejected": {}, "mended": {"encoding_lie": 1}}
    text = {"titles": lambda outcome: sorted(row["title"] for row in outcome.table("pages"))}
    both = ["encoded", "other"]
    words = ["none", "None", "utf-8", "UTF-8", "binary", "text/html", "7bit", "8bit", "plain", "ISO-8859-1",
             "windows-1252", "*", "x-none", "null", "rot13", "quoted-printable", "none, none", "UTF-8, none",
             "text/html; charset=utf-8"]
    for word in words:
        yield one(f"plain, {word}", word, {**none, "titles": both}, measure=text)
    for word in ["", "identity", "Identity", "identity, identity", ","]:
        yield one(f"plain, {word or 'empty'}", word, {**right, "titles": both}, measure=text)
    for word in ["gzip", "GZIP", "deflate", "br", "zstd", "x-brotli", "gzip, deflate, br, zstd", "chunked"]:
        yield one(f"plain, {word}", word, {**lie, "titles": both}, measure=text)
    for word in ["gzip", "GZIP", "x-gzip", "gzip;q=1.0", "\"gzip\"", "gzip,", ", gzip", "identity, gzip"]:
        yield one(f"gzip, {word}", word, {**right, "titles": both}, encode=member, measure=text)
    for word in ["none, gzip", "gzip, none", "utf-8, gzip", "none", "x-none"]:
        yield one(f"gzip, {word}", word, {**none, "titles": both}, encode=member, measure=text)
    many = "gzip, " * 50 + "gzip"
    for word in ["gzip, gzip", "gzip, deflate", "gzip, br", "gzip, deflate, br, zstd", "br, gzip", many]:
        yield one(f"gzip, {word[:40]}", word, {**lie, "titles": both}, encode=member, measure=text)
    yield one("deflate, DEFLATE", "DEFLATE", {**right, "titles": both}, encode=zlib.compress, measure=text)
    yield one("twice in gzip", "gzip, gzip", right, encode=lambda body: member(member(body)))
    yield one("six times in gzip", ", ".join(["gzip"] * 6), {"kept": 1, "rejected": {"too_many_encodings": 1}},
              encode=lambda body: member(member(member(member(member(member(body)))))))
    yield one("no text", "exi", {"kept": 1, "rejected": {"unknown_encoding": 1}}, encode=lambda _: bytes(range(256)))
    yield one("a picture", "none", {"kept": 1, "rejected": {"not_text": 1}}, encode=lambda _: b"GIF89a" + bytes(99))
    yield one("UTF-16", "utf-16", {**none, "titles": both}, media="text/html", measure=text,
              encode=lambda body: b"\xff\xfe" + body.decode().encode("utf-16-le"))
