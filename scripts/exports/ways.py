#!/usr/bin/env python3
"""Counts, from the tables of a run only, the kept pages that a crawler which obeys the avoid list
can no longer reach.

    ways.py RUN [--show N]

Needs pyarrow. Four sets of entry points and links are tried: pages that another host links to;
pages without incoming links; the roots of all hosts; and the root of each host with links within
it. The exit code is 1 if a page becomes unreachable in any of these but the third, for which the
program does not guarantee pages that only another host links to.
"""

import argparse
import collections
import sys

import pyarrow.dataset as dataset


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("run")
    arguments.add_argument("--show", type=int, default=5)
    asked = arguments.parse_args()

    def table(name):
        return dataset.dataset(f"{asked.run}/{name}", format="parquet").to_table()

    pages = table("pages").select(["doc_id", "url"]).to_pydict()
    url = dict(zip(pages["doc_id"], pages["url"]))
    host = {page: text.split("/")[2].split("?")[0] for page, text in url.items()}
    path = {page: text.split("://", 1)[1][len(host[page]):] for page, text in url.items()}
    skip = set(table("avoid")["doc_id"].to_pylist())
    links = collections.defaultdict(list)
    linked, elsewhere = set(), set()
    both = table("links").to_pydict()
    for src, dst in zip(both["src"], both["dst"]):
        links[src].append(dst)
        linked.add(dst)
        if host[src] != host[dst]:
            elsewhere.add(dst)

    first = {}
    for page in sorted(url, key=lambda page: (len(path[page]), page)):
        first.setdefault(host[page], page)
    roots = set(first.values()) | {page for page in url if path[page] == "/"}
    not_linked = set(url) - linked

    def reached(entries, skip, within):
        seen = set(entries) - skip
        queue = list(seen)
        while queue:
            page = queue.pop()
            for target in links[page]:
                if target not in seen and target not in skip and (not within or host[target] == host[page]):
                    seen.add(target)
                    queue.append(target)
        return seen

    failed = False
    crawlers = [
        ("entry points and what other hosts link to", roots | not_linked | elsewhere, False, True),
        ("roots and pages that are not linked", roots | not_linked, False, True),
        ("roots, all links", roots, False, False),
        ("roots, links within a host", roots, True, True),
    ]
    for name, entries, within, promised in crawlers:
        before = reached(entries, set(), within) - skip
        after = reached(entries, skip, within)
        cut_off = sorted(before - after)
        print(f"{name}: {len(entries)} entry points, {len(before)} kept pages were reachable, {len(cut_off)} became unreachable")
        for page in cut_off[: asked.show]:
            print(f"    {url[page]}")
        failed |= promised and bool(cut_off)
    sys.exit(1 if failed else 0)


main()
