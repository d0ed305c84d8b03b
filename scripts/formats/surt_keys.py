#!/usr/bin/env python3
"""Checks the column pages.surt of a run against the Python library surt; --made FILE writes test
URLs as a corpus.

    surt_keys.py RUN            prints URLs whose keys differ; exit code 1 if there are any
    surt_keys.py --made FILE    20,000 synthetic URLs as JSONL for `webtwin run --input FILE`

Needs surt and pyarrow.
"""

import json
import random
import sys


def made(path):
    rng = random.Random(7)
    hosts = ["example.com", "www.example.com", "www3.Example.co.uk:8080", "a.b.c.example", "10.1.2.3", "wwwx.example", "bücher.example"]
    parts = ["a", "B", "%41", "%2541", "%20", "ü", "x y", "(", ")", "..", ".", "", "~u", "index.html", "%2f", "%23", "a+b", "[x]", "a;b=c",
             "(S(abcdefghij0123456789klmn))", "(abcdefghij0123456789klmn)", "X.aspx", "100%", "'q'", "a,b", "|", "%7c", "a:b", "a@b"]
    values = ["a=1", "B=2", "a", "a=", "", "=", "b=%26", "x=y=z", "sid=" + "0aZ9" * 8, "jsessionid=" + "ABCD" * 8, "PHPSESSID=" + "01ef" * 8,
              "ASPSESSIONIDQQABCDEF=" + "ABCD" * 6, "cfid=12&cftoken=34", "q=ü", "q=a+b", "asid=" + "0" * 32, "z=%2541", "sid=1"]
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(20_000):
            url = rng.choice(["http://", "https://"]) + rng.choice(hosts) + "/" + "/".join(rng.choices(parts, k=rng.randint(0, 4)))
            if rng.random() < 0.6:
                url += "?" + "&".join(rng.choices(values, k=rng.randint(0, 4)))
            file.write(json.dumps({"url": url, "text": url}) + "\n")


def main():
    if sys.argv[1] == "--made":
        return made(sys.argv[2])
    import pyarrow.dataset as dataset
    import surt

    pages = dataset.dataset(f"{sys.argv[1]}/pages", format="parquet").to_table().select(["url", "surt"]).to_pydict()
    differ = [(url, key, surt.surt(url)) for url, key in zip(pages["url"], pages["surt"]) if surt.surt(url) != key]
    for url, key, expected in differ[:20]:
        print(f"{url}\n    {key}\n    {expected}")
    print(f"{len(pages['url'])} URLs, {len(differ)} keys differ")
    sys.exit(1 if differ else 0)


main()
