"""XHTML, in which any element may be self-closing: no content is lost."""

import re

from made import Case, http, record, words

NAMESPACE = "http://www.w3.org/1999/xhtml"
EMPTY = ["script", "style", "iframe", "title", "textarea", "a", "noscript", "noframes", "noembed", "xmp", "plaintext", "pre",
         "template", "svg", "math", "p", "div", "i", "select", "button", "object", "canvas"]


COMMON = ["script", "title", "textarea"]
DECLARATION = "<?xml version='1.0' encoding='UTF-8'?>\n"


def document(head="", body="", root="html", namespace=f"xmlns='{NAMESPACE}'", declaration=DECLARATION):
    text = "".join(f"<p>{line}</p>" for line in words("xhtml", 60).split("\n"))
    return f"{declaration}<{root} {namespace}><head>{head}</head><body>{body}{text}<a href='next'>n</a></body></{root}>"


def cases():
    measure = {"bytes": lambda outcome: [row["text_bytes"] > 300 for row in outcome.table("pages")],
               "titles": lambda outcome: [row["title"] for row in outcome.table("pages")],
               "links": lambda outcome: len(outcome.table("links"))}
    next_page = record("http://a.example/next", http(b"<html><p>" + words("next", 60).encode()))

    def whole(name, page, media="application/xhtml+xml", title=""):
        warc = record("http://a.example/page", http(page.encode(), f"Content-Type: {media}")) + next_page
        expect = {"kept": 2, "rejected": {}, "bytes": [True, True], "links": 1, "titles": [title, ""]}
        ordered = dict(measure, titles=lambda outcome: sorted(measure["titles"](outcome), reverse=True))
        return Case(name, {"a.warc": warc}, expect, measure=ordered)

    for name in EMPTY:
        tag = f"<{name} class='x'/>"
        head, body = (tag, "") if name in ("script", "style", "title") else ("", tag)
        yield whole(name, document(head, body))
        for media in ["text/html", "text/xml", "application/vnd.wap.xhtml+xml", "*/*"] if name in COMMON else []:
            yield whole(f"{name} under {media}", document(head, body), media)
    yield whole("without a declaration", document("<script src='a'/>", declaration=""))
    doctype = "<?xml version='1.0'?><!DOCTYPE html PUBLIC 'a' 'b'>"
    yield whole("with a doctype", document("<title/>", declaration=doctype), "text/html")
    yield whole("with a doctype that declares", document("<title/>", declaration="<!DOCTYPE html [<!ENTITY a '<b>'>]>"))
    yield whole("with a byte order mark", document("<title/>", declaration="\ufeff<?xml version='1.0'?>"), "text/html")
    prefixed = document("<h:title/><h:script/>", namespace=f"xmlns:h='{NAMESPACE}'", root="h:html")
    for name in ["head", "body", "p", "a"]:
        prefixed = re.sub(rf"<(/?){name}\b", rf"<\1h:{name}", prefixed)
    yield whole("a prefix", prefixed, "text/html")
    yield whole("CDATA in a script", document("<script><![CDATA[ '</script><!--' ]]></script>"))
    yield whole("CDATA in a title", document("<title><![CDATA[a & <b>]]></title>"), title="a & <b>")
    yield whole("CDATA that never ends", document("<script><![CDATA[ </script>"))
    yield whole("CDATA commented out", document("<script>//<![CDATA[\nif (a < b) c()\n//]]></script>"), "text/html")
    yield whole("tags that do not match", document(body="<b><i>a</b>&nbsp;&unknown;<br>"))

    site = {f"site/{name}.xhtml": document(f"<{name}/>") for name in ["script", "style", "title"]}
    yield Case("a folder", site, {"kept": 3, "rejected": {}, "bytes": [True] * 3}, inputs=["site"], measure=measure)
    shown = {"text": lambda outcome: [row["text_bytes"] for row in outcome.table("pages")]}
    cdata = "<html xmlns='http://www.w3.org/1999/xhtml'><p><![CDATA[a & <b>]]></p></html>"
    page = lambda text, media: {"a.warc": record("http://a.example/", http(text.encode(), f"Content-Type: {media}"))}
    yield Case("CDATA is text", page(cdata, "application/xhtml+xml"), {"kept": 1, "text": [len("a & <b>")]}, measure=shown)
    html = "<html><script/>swallowed</script><p>shown</p></html>"
    yield Case("HTML stays HTML", page(html, "text/html"), {"kept": 1, "text": [len("shown")]}, measure=shown)
