"""Folders of HTML files whose names are not UTF-8: one page per file, with the bytes of its name
percent-encoded."""

from made import Case, html


def cases():
    names = [b"caf\xe9.html", b"caf\xe8.html", "café.html".encode(), b"caf%E9.html", b"caf\\xE9.html",
             b"d\xfcr/\xff\xfe.htm", b"\x8a\xbf\x8e\x9a.html", "漢字.html".encode(), b"a\xe9", b"\xe9.xhtml"]
    files = {b"site/" + name: html(f"page {number}") for number, name in enumerate(names)}
    urls = ["%8A%BF%8E%9A.html", "%E6%BC%A2%E5%AD%97.html", "%E9.xhtml", "a%E9", "caf%25E9.html", "caf%5CxE9.html",
            "caf%C3%A9.html", "caf%E8.html", "caf%E9.html", "d%FCr/%FF%FE.htm"]
    measure = {"urls": lambda outcome: sorted(row["url"] for row in outcome.table("pages"))}
    expect = {"read": 10, "kept": 10, "rejected": {}, "urls": sorted(f"http://localhost/{url}" for url in urls)}
    yield Case("a folder", files, expect, inputs=["site"], measure=measure)
    others = {b"site/a.html": html("a"), b"site/\xe9.gif": b"GIF89a", b"site/\xe8.gif": b"GIF89a"}
    yield Case("other files", others, {"read": 3, "kept": 1, "rejected": {"not_text": 2}}, inputs=["site"])
