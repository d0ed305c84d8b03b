"""PDF files whose cross-reference table is wrong, missing or damaged, with bytes before and after
them."""

import re
import zlib

from made import Case, http, record, words


def text(seed):
    """Returns the content stream that draws lines of words."""
    line = words(seed, 60).replace("\n", " ")
    lines = "".join(f"({line[at:at + 70]}) Tj T* " for at in range(0, len(line), 70))
    return f"BT /F1 12 Tf 14 TL 50 700 Td {lines}ET".encode()


def stream(entries, content):
    return b"<<%s/Length %d>>\nstream\n%s\nendstream" % (entries, len(content), content)


def objects(seed, pages=1, content=lambda data: stream(b"", data)):
    kids = b" ".join(b"%d 0 R" % (4 + 2 * page) for page in range(pages))
    made = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, pages),
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"]
    for page in range(pages):
        made += [b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents %d 0 R/Resources<</Font<</F1 3 0 R>>>>>>"
                 % (5 + 2 * page), content(text(f"{seed} {page}"))]
    return made


def table(made, shift=0, first=0, start=0, info=b"", head=b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", end=b"%%EOF\n"):
    """Returns a file with a cross-reference table."""
    file, entries = bytearray(head), b"0000000000 65535 f \n"
    for number, item in enumerate(made, 1):
        entries += b"%010d 00000 n \n" % (len(file) + shift)
        file += b"%d 0 obj\n%s\nendobj\n" % (number, item)
    at = len(file) + start
    count = len(made) + 1
    return bytes(file) + b"xref\n%d %d\n%strailer\n<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n" % (
        first, count, entries, count, info, at) + end


def streams(made, start=0):
    """Returns a file with a cross-reference stream, whose other objects without a stream are in an
    object stream."""
    packed = [(number, item) for number, item in enumerate(made, 1) if b"stream\n" not in item]
    index, body = b"", b""
    for number, item in packed:
        index += b"%d %d " % (number, len(body))
        body += item + b" "
    holder, last = len(made) + 1, len(made) + 2
    container = stream(b"/Type/ObjStm/N %d/First %d/Filter/FlateDecode" % (len(packed), len(index)), zlib.compress(index + body))
    file, offsets = bytearray(b"%PDF-1.5\n"), {}
    for number, item in [*((n, i) for n, i in enumerate(made, 1) if b"stream\n" in i), (holder, container)]:
        offsets[number] = len(file)
        file += b"%d 0 obj\n%s\nendobj\n" % (number, item)
    at = len(file)
    offsets[last] = at
    in_stream = {number: place for place, (number, _) in enumerate(packed)}
    rows = b"".join(
        b"\x01" + offsets[n].to_bytes(4, "big") + b"\0\0" if n in offsets
        else b"\x02" + holder.to_bytes(4, "big") + in_stream[n].to_bytes(2, "big") if n in in_stream else bytes(7)
        for n in range(last + 1))
    entries = b"/Type/XRef/W[1 4 2]/Size %d/Root 1 0 R/Filter/FlateDecode" % (last + 1)
    file += b"%d 0 obj\n%s\nendobj\n" % (last, stream(entries, zlib.compress(rows)))
    return bytes(file) + b"startxref\n%d\n%%%%EOF\n" % (at + start)


def flate(data):
    return stream(b"/Filter/FlateDecode", zlib.compress(data))


def files():
    """Yields names, files, and true if they are repaired."""
    plain = table(objects("a"))
    yield "as it should be", plain, False
    yield "as it should be, streams", streams(objects("a")), False
    yield "start too small by one", table(objects("b"), start=-1), True
    yield "start too large", table(objects("c"), start=40), True
    yield "start beyond the end", table(objects("d"), start=10**6), True
    yield "start is 0", re.sub(rb"startxref\n\d+", b"startxref\n0", plain), True
    yield "start is no number", re.sub(rb"startxref\n\d+", b"startxref\nnone", plain), True
    yield "start of streams is wrong", streams(objects("e", 3), start=-7), True
    yield "no end mark", table(objects("f"), end=b""), True
    yield "no startxref", re.sub(rb"startxref.*", b"", plain, flags=re.S), True
    yield "no table", re.sub(rb"xref.*", b"trailer\n<</Size 6/Root 1 0 R>>\n%%EOF\n", plain, flags=re.S), True
    yield "no trailer", re.sub(rb"xref.*", b"", plain, flags=re.S), True
    yield "cut within the table", table(objects("g", 2))[:-150], True
    packed = streams(objects("h", 2))
    yield "cut behind the object stream", packed[:packed.rindex(b"/Type/XRef")], True
    yield "entries too large by 3", table(objects("i"), shift=3), True
    yield "entries too large by 3, pages in flate", table(objects("j", 4, flate), shift=3), True
    three = table(objects("p", 3))
    last = three.rindex(b" 00000 n")
    yield "the last entry is wrong", three[:last - 10] + b"0000000003" + three[last:], True
    yield "table begins at 1", table(objects("k"), first=1), False
    yield "2,000 bytes behind", plain + b"\n" + b"<!-- tracker -->" * 125, True
    yield "3,000 zeros behind", plain + bytes(3000), True
    yield "a page behind", plain + b"<html>" + b"<p>more</p>\n" * 500 + b"</html>", True
    yield "line ends before", b"\r\n\r\n" + plain, False
    yield "a comment before", b"<!-- made -->\n" * 4 + plain, False
    yield "2,000 bytes before", b"<!-- made -->\n" * 150 + plain, False
    yield "bytes before, which offsets count", table(objects("l"), shift=7, start=7), True
    yield "line ends made longer", table(objects("m")).replace(b"\n", b"\r\n"), True
    yield "a wrong length of a stream", table([re.sub(rb"/Length \d+", b"/Length 12", item) for item in objects("n")]), True
    update = table(objects("o"))
    newer = b"5 0 obj\n" + stream(b"", text("newer")) + b"\nendobj\n"
    yield "an update without a table", update + newer + b"trailer\n<</Size 8/Root 1 0 R/Prev 99999>>\nstartxref\n3\n%%EOF\n", True


def cases():
    for name, file, is_repaired in files():
        page = record("http://pdf.example/a.pdf", http(file, "Content-Type: application/pdf"))
        count = lambda outcome: [row["text_bytes"] > 300 for row in outcome.table("pages")]
        yield Case(name, {"a.warc": page}, {
            "kept": 1, "rejected": {}, "mended": {"pdf_damaged": 1} if is_repaired else {}, "has text": [True],
        }, measure={"has text": count})
    for name, file, reason in [
        ("no object", b"%PDF-1.4\n" + b"nothing at all " * 300, "pdf_damaged"),
        ("a page of the web", b"<html><p>not found</p></html>", "pdf_damaged"),
        ("objects that are none", b"%PDF-1.4\n" + b"1 0 obj " * 5000, "pdf_damaged"),
        ("streams that do not end", b"%PDF-1.4\n" + b"1 0 obj<</Length 9>>stream\nx " * 5000, "pdf_damaged"),
        ("trailers that do not end", b"%PDF-1.4\n1 0 obj null endobj\n" + b"trailer<</Root " * 5000, "pdf_damaged"),
    ]:
        page = record("http://pdf.example/a.pdf", http(file, "Content-Type: application/pdf"))
        yield Case(name, {"a.warc": page}, {"kept": 0, "rejected": {reason: 1}})
