"""Gzip files whose members do not correspond to records. Only the decoded bytes matter, not the
member boundaries."""

from made import Case, arc_pages, blocks, html, http, member, pages, record

# The end of a file written by bgzip: an empty member with an extra field.
BGZIP_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")


def bgzip_member(content):
    """Returns a member with the extra field of bgzip, which states the length of the member."""
    plain = member(content)
    length = len(plain) + 8
    return plain[:3] + b"\x04" + plain[4:10] + b"\x06\x00BC\x02\x00" + (length - 1).to_bytes(2, "little") + plain[10:]


def at_heads(content):
    """Returns a record in three parts: its header, the HTTP header, and the page."""
    warc = content.index(b"\r\n\r\n") + 4
    page = content.index(b"\r\n\r\n", warc) + 4
    return [content[:warc], content[warc:page], content[page:]]


def cases():
    all_pages = pages(200, length=300)
    few = pages(12)
    whole = b"".join(all_pages)
    joined = lambda pieces: b"".join(member(piece) for piece in pieces)

    def kept(name, content, count, file="a.warc.gz", **more):
        return Case(name, {file: content}, {"read": count, "kept": count, "rejected": {}}, **more)

    yield kept("a member for each record", joined(all_pages), 200)
    yield kept("one member", member(whole), 200)
    yield kept("plain records after two members", joined(all_pages[:2]) + b"".join(all_pages[2:]), 200)
    yield kept("plain records before members", b"".join(all_pages[:100]) + joined(all_pages[100:]), 200, "a.warc")
    yield kept("members, plain, members", joined(few[:4]) + b"".join(few[4:8]) + joined(few[8:]), 12)
    in_turn = b"".join(member(page) if number % 2 else page for number, page in enumerate(few))
    yield kept("a plain record and a member in turn", in_turn, 12)
    yield kept("plain, then a member with many records", b"".join(few[:6]) + member(b"".join(few[6:])), 12)
    yield kept("bgzip", b"".join(map(bgzip_member, blocks(whole, 65280))) + BGZIP_END, 200)
    yield kept("blocks of 700 bytes", joined(blocks(b"".join(few), 700)), 12)
    yield kept("blocks of 1 byte", joined(blocks(b"".join(few[:2]), 1)), 2)
    yield kept("blocks of 1 MiB and a huge record", joined(blocks(
        b"".join([*few[:6], record("http://a.example/huge", http(html("huge", 300_000))), *few[6:]]), 1 << 20)), 13)
    yield kept("heads and bodies in members of their own", joined(part for page in few for part in at_heads(page)), 12)
    yield kept("the head of the record, and the rest", joined(
        part for page in few for part in (at_heads(page)[0], b"".join(at_heads(page)[1:]))), 12)
    yield kept("the line ends after a record in members of their own", joined(
        part for page in few for part in (page[:-4], page[-4:])), 12)
    yield kept("members for records, then blocks", joined(few[:6]) + joined(blocks(b"".join(few[6:]), 900)), 12)
    yield kept("blocks, then members for records", joined(blocks(b"".join(few[:6]), 900)) + joined(few[6:]), 12)
    yield kept("two files, one after the other", joined(few[:6]) + member(b"".join(few[6:])) + BGZIP_END, 12)
    yield kept("zeros between members", b"\0\0\0\0".join(map(member, few)), 12)
    yield kept("empty members between members", member(b"").join(joined([page]) for page in few), 12)

    arc = arc_pages(40)
    arc_result = {"read": 41, "kept": 40, "rejected": {"not_a_page_record": 1}}
    yield Case("ARC in blocks", {"a.arc.gz": joined(blocks(b"".join(arc), 3000))}, arc_result)
    yield Case("ARC, members and then plain", {"a.arc.gz": joined(arc[:5]) + b"".join(arc[5:])}, arc_result)

    torn = b"".join(map(bgzip_member, blocks(whole, 65280)))
    yield Case("bgzip whose end is missing", {"a.warc.gz": torn[:-5000]},
               {"lost most": False, "torn": 1}, measure={
                   "lost most": lambda outcome: outcome.summary["records"]["kept"] < 170,
                   "torn": lambda outcome: len(outcome.summary["records"]["torn"])})
