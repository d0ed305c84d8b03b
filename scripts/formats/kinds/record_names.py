"""Records that share an id, a second or a URL: revisits, conversions and captures, in any order and any files."""

import itertools

from made import Case, http, html, record, sha1, words

NULL = "urn:uuid:null"
PROFILE = "WARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest"


def page(number, host="a", second=0, name=NULL, fields=(), status="200 OK", seed=None):
    seed = number if seed is None else seed
    links = "".join(f'<a href="/{n}">{n}</a>' for n in range(4))
    return record(f"http://{host}.example/{number}", http(html(seed, body=links), status=status), name=name, fields=fields,
                  date=f"2026-01-01T00:00:{second:02}Z")


def revisit(number, host="b", second=30, name=NULL, refers=None, place=None, digest=None):
    fields = [PROFILE]
    fields += [f"WARC-Refers-To: <{refers}>"] if refers else []
    fields += [f"WARC-Refers-To-Target-URI: http://a.example/{place}", "WARC-Refers-To-Date: 2026-01-01T00:00:00Z"] if place is not None else []
    fields += [f"WARC-Payload-Digest: {sha1(html(digest))}"] if digest is not None else []
    return record(f"http://{host}.example/{number}", http(b""), kind="revisit", name=name, fields=fields,
                  date=f"2026-01-01T00:00:{second:02}Z")


def conversion(number, host="a", second=0, of=None, seed=None):
    fields = [f"WARC-Refers-To: <{of}>"] if of else []
    return record(f"http://{host}.example/{number}", words(f"conversion {seed or number}", 80).encode(), kind="conversion",
                  media="text/plain", fields=fields, date=f"2026-01-01T00:00:{second:02}Z",
                  name=f"urn:conversion:{host}:{number}:{second}:{seed}")


def ways(records):
    """Returns the records in one file and in several, in their order and in reverse."""
    for order, word in [(records, "in order"), (records[::-1], "backwards")]:
        yield word, {"a.warc": b"".join(order)}
        yield f"{word}, a file each", {f"{n:02}.warc": one for n, one in enumerate(order)}


def titles(outcome):
    return {row["url"][7:].replace(".example", ""): row["title"] for row in outcome.table("pages")}


def links(outcome):
    return len(outcome.table("links"))


def cases():
    four = [page(n) for n in range(4)]
    own = [page(n, name=f"urn:a:{n}") for n in range(4)]
    all_four = {f"a/{n}": str(n) for n in range(4)}
    for name, records, expected, rejected in [
        ("one id, URL and date", four + [revisit(1, refers=NULL, place=1)], {"b/1": "1"}, {}),
        ("the id of another record, URL and date", own + [revisit(1, refers="urn:a:2", place=1)], {"b/1": "1"}, {}),
        ("the id of another record, URL and date of a third, digest of a fourth",
         own + [revisit(1, refers="urn:a:2", place=1, digest=3)], {"b/1": "1"}, {}),
        ("an id alone", own + [revisit(1, refers="urn:a:1")], {"b/1": "1"}, {}),
        ("one id alone", four + [revisit(1, refers=NULL)], {}, {"revisit": 1}),
        ("one id alone, and the URL before", four + [revisit(1, "a", refers=NULL)], {"a/1": "1"}, {"older_capture": 1}),
        ("URL and date of no record, an id", own + [revisit(1, refers="urn:a:2", place=9)], {"b/1": "2"}, {}),
        ("a digest", [page(n, fields=[f"WARC-Payload-Digest: sha1:{'ABCD'[n] * 32}"]) for n in range(4)] + [
            record("http://b.example/1", http(b""), kind="revisit", name=NULL, date="2026-01-02T00:00:00Z",
                   fields=[PROFILE, f"WARC-Refers-To: <{NULL}>", f"WARC-Payload-Digest: sha1:{'C' * 32}"])], {"b/1": "2"}, {}),
    ]:
        for way, files in ways(records):
            yield Case(f"{name}, {way}", files, {"titles": {**all_four, **expected}, "rejected": rejected},
                       measure={"titles": titles})

    both = [page(n, second=5, name=f"urn:a:{n}") for n in range(4)]
    texts = {
        "at the same time": [conversion(n, second=5, of=f"urn:a:{n}") for n in range(4)],
        "later": [conversion(n, second=50, of=f"urn:a:{n}") for n in range(4)],
        "later, of no named record": [conversion(n, second=50) for n in range(4)],
        "at the same time, of records not there": [conversion(n, second=5, of="urn:none") for n in range(4)],
        "several of each": [conversion(n, second=s, of=f"urn:a:{n}", seed=f"{n} {s}") for n in range(4) for s in (5, 9)],
    }
    for name, made in texts.items():
        for way, files in ways(both + made):
            yield Case(f"conversions {name}, {way}", files, {
                "titles": all_four, "links": 12, "rejected": {"conversion": len(made)},
            }, measure={"titles": titles, "links": links})
    alone = [conversion(n) for n in range(3)]
    yield Case("conversions alone", {"a.warc": b"".join(alone)}, {"kept": 3, "rejected": {}})
    newer = [page(0, name="urn:a:0"), conversion(0, second=9, of="urn:elsewhere")]
    yield Case("a conversion of a newer record that is not there", {"a.warc": b"".join(newer)},
               {"titles": {"a/0": ""}, "rejected": {"older_capture": 1}}, measure={"titles": titles})

    # The counts of captures in the same second must not depend on the order.
    rivals = [page(0, seed="x", name="urn:x"), page(0, seed="y", name="urn:y"), page(0, seed="z", name="urn:z"), page(1),
              revisit(0, "c", refers="urn:x", place=0), revisit(1, "c", second=31, refers="urn:none", place=0)]
    first = []

    def same_as_first(outcome):
        first.append((titles(outcome), outcome.summary["records"], outcome.table("hosts")))
        return first[-1] == first[0]

    for order in itertools.islice(itertools.permutations(rivals), 0, None, 97):
        for way, files in itertools.islice(ways(list(order)), 0, 2):
            yield Case(f"captures in one second {len(first)}, {way}", files, {"same": True}, measure={"same": same_as_first})
