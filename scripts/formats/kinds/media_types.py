"""Media types as servers write them. A response that a browser would show as HTML is a page."""

from made import Case, html, http, record

RIGHT = [
    "text/html", "TEXT/HTML", "text/html;;charset=UTF-8", "*/*, text/html", "text/html, text/html",
    "text/html, */*", "text/html; charset=utf-8, text/html", "text/html;charset", "text/html charset=utf-8",
    "text/html:charset=utf-8", "html", "HTML", "text/htm", "application/xhtml+xml", "text/html ;charset=utf-8;",
    "\"text/html\"", "'text/html'", "text/html; charset=utf-8; boundary=x", "text/html,", ",text/html",
    "text/html\\n", "application/html", "text/html; profile=\"a;b, c/d\"; charset=utf-8", "text",
    "unknown/unknown", "unknown", "*/*", "*", "None", "null", "application/unknown",
    "application/x-unknown-content-type", "content/unknown", "text/plain, text/html", "text/xml",
    "application/xml; charset=utf-8", "application/xml+xhtml", "application/vnd.wap.xhtml+xml",
    "text/x-server-parsed-html", "charset=utf-8", "text/html; Charset=utf-8", "/", "text/", "a/b/c", "",
]
WRONG = ["application/octet-stream", "image/png", "application/json", "text/css", "text/vnd.wap.wml", "multipart/mixed",
         "application/rss+xml", "text/html, application/json", "text/javascript", "application/x-httpd-php"]


def cases():
    title = {"titles": lambda outcome: sorted(row["title"] for row in outcome.table("pages"))}
    kept = {"kept": 1, "rejected": {}, "mended": {}, "titles": ["Café"]}
    lost = {"kept": 0, "rejected": {"not_text": 1}}
    page = html("Café")

    def of(body, fields, more=()):
        return {"a.warc": record("http://a.example/", http(body, fields), fields=more)}

    for media in RIGHT:
        yield Case(f"HTML under {media or 'an empty type'}", of(page, f"Content-Type: {media}"), kept, measure=title)
    for media in WRONG:
        yield Case(f"HTML under {media}", of(page, f"Content-Type: {media}"), lost)
    yield Case("HTML without a type", of(page, ""), kept, measure=title)
    yield Case("two types", of(page, "Content-Type: text/plain\r\nContent-Type: text/html"), kept, measure=title)
    latin = page.decode().encode("latin-1")
    for fields in ["text/html\r\nContent-Type: text/html; charset=latin1", "text/html charset=latin1",
                   "text/html; charset=latin1, text/html"]:
        name = f"a charset in {fields}".replace("\r\n", " ")
        yield Case(name, of(latin, f"Content-Type: {fields}"), kept, measure=title)
    for media in ["", "*/*", "unknown/unknown"]:
        for name, body in [("a script", b"function f() { return 1 }"), ("a feed", b"<?xml version='1.0'?><rss></rss>"),
                           ("a drawing", b"<svg xmlns='http://www.w3.org/2000/svg'/>"),
                           ("JSON", b"{\"a\": \"<html>\"}")]:
            yield Case(f"{name} under {media or 'no type'}", of(body, f"Content-Type: {media}" if media else ""), lost)
    yield Case("a feed under text/xml", of(b"<?xml version='1.0'?><rss></rss>", "Content-Type: text/xml"), lost)

    pictures = {"PNG": b"\x89PNG\r\n\x1a\n", "JPEG": b"\xff\xd8\xff\xe0", "GIF": b"GIF89a",
                "WebP": b"RIFF\x10\0\0\0WEBPVP8 ", "AVIF": b"\0\0\0\x20ftypavif", "an icon": b"\0\0\x01\0\x01\0", "TIFF": b"II*\0",
                "a bitmap": b"BM\x36\0\x0c\0\0\0\0\0\x36\0\0\0\x28\0\0\0"}
    for name, mark in pictures.items():
        yield Case(f"{name} under text/html", of(mark + bytes(300), "Content-Type: text/html"), lost)
    text = of(b"BM, a text. " * 20, "Content-Type: text/plain")
    yield Case("a text that begins with BM", text, {"kept": 1, "rejected": {}})

    identified = lambda media: [f"WARC-Identified-Payload-Type: {media}"]
    yield Case("identified as a picture", of(page, "Content-Type: text/html", identified("image/png")), lost)
    yield Case("identified as HTML", of(page, "Content-Type: text/html", identified("text/html")), kept, measure=title)
    for media in ["", "Content-Type: application/octet-stream", "Content-Type: */*"]:
        fields = of(page.replace(b"<!doctype html>", b"x"), media, identified("application/xhtml+xml"))
        yield Case(f"identified as XHTML, with {media or 'no type'}", fields, kept, measure=title)
    yield Case("a picture identified as HTML", of(page, "Content-Type: image/png", identified("text/html")), lost)
    for media in ["text/html, text/html", "unknown/unknown", "html"]:
        resource = record("http://a.example/", page, kind="resource", media=media)
        yield Case(f"a resource of {media}", {"a.warc": resource}, kept, measure=title)
