#!/usr/bin/env python3
"""Compares the pages of `webtwin diff` with the truth about two crawls.

    recrawl-pages.py DIFF truth-OLD.tsv truth-NEW.tsv

A truth lists the URLs of a crawl with the page of a manual that each shows (`target`, `page`), the
reason why it exists (`variant`) and the SHA-1 of its bytes. Prints tab-separated values: pages by
`what`, of webtwin next to the truth; and for moved pages, the fraction of the reported ones that
were planted (precision) and the fraction of the planted ones that were reported (recall). A page is
planted as moved if its mirror moved (variant `moves` or one that begins so) and has the page at
both hosts. For reported pages that were not planted, it prints how many show the same page of the
same manual nevertheless: a mirror that ends while another one begins looks like one that moves.
"""
import csv
import json
import subprocess
import sys
from collections import Counter

diff, old_file, new_file = sys.argv[1:4]
program = sys.argv[4] if len(sys.argv) > 4 else "webtwin"


def truth(file):
    with open(file, newline="") as lines:
        return {row["url"]: row for row in csv.DictReader(lines, delimiter="\t")}


old, new = truth(old_file), truth(new_file)
shown = subprocess.run([program, "show", f"{diff}/pages_changed", "--limit", "0", "--json"], check=True, stdout=subprocess.PIPE)
rows = [json.loads(row) for row in shown.stdout.splitlines()]

moves = lambda row: row["variant"].startswith("moves")
of_mirror = lambda row: (row["target"], row["variant"], row["page"])
moved_to = {of_mirror(row): url for url, row in new.items() if moves(row) and url not in old}
planted = {
    (url, moved_to[of_mirror(row)])
    for url, row in old.items()
    if moves(row) and url not in new and of_mirror(row) in moved_to
}
said = {(row["url"], row["other_url"]) for row in rows if row["what"] == "moved_from"}
both = old.keys() & new.keys()
ours = Counter(row["what"] for row in rows)
ours["same"] = len(both) - sum(ours[what] for what in ("bytes", "near", "changed", "rewritten"))
same = sum(old[url]["sha1"] == new[url]["sha1"] for url in both)
true = {
    "same": same,
    "other bytes": len(both) - same,
    "gone or moved_from": len(old.keys() - new.keys()),
    "new or moved_to": len(new.keys() - old.keys()),
}
mine = {
    "same": ours["same"],
    "other bytes": sum(ours[what] for what in ("bytes", "near", "changed", "rewritten")),
    "gone or moved_from": ours["gone"] + ours["moved_from"],
    "new or moved_to": ours["new"] + ours["moved_to"],
}
print("what\tours\ttruth")
for what, count in true.items():
    print(f"{what}\t{mine[what]}\t{count}")
for what in ("bytes", "near", "changed", "rewritten", "gone", "new", "moved_from"):
    print(f"  {what}\t{ours[what]}\t")
page = lambda row: (row["target"], row["page"])
others = said - planted
alike = sum(page(old[was]) == page(new[now]) for was, now in others if was in old and now in new)
arrived = {now: was for was, now in said}
told = sum(now in arrived and page(old[arrived[now]]) == page(new[now]) for _, now in planted)
print(f"moved, planted\t{len(said & planted)}\t{len(planted)}")
print(f"moved, not planted, the same page of the same manual\t{alike}\t")
print(f"moved, not planted, another page\t{len(others) - alike}\t")
if said and planted:
    print(f"precision {len(said & planted) / len(said):.3f}, or {(len(said & planted) + alike) / len(said):.3f} with those alike")
    print(f"recall {len(said & planted) / len(planted):.3f}, or {told / len(planted):.3f} with those alike")
