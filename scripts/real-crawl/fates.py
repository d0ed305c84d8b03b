#!/usr/bin/env python3
"""Holds what `webtwin diff` says of mirrors against what was planted.

usage: fates.py CRAWLS N DIFF [--webtwin PROGRAM]

CRAWLS has mirrors.tsv (target, kind, crawl, base, version, pages: what each mirror of each target showed in each crawl) and
truth-N.tsv (url, target, version, ...: every page); DIFF is the comparison of crawl N - 1 with crawl N, which knows of all crawls
before. Prints what is wrong, then the counts as a table of tab-separated values.

Left out: mirrors of one target that were given the same host and path, and so are one. Of two mirrors of one target that vanish
with equal pages when a third appears, content cannot say which one moved: either answer counts as right, and is told as `swapped`.
"""
import argparse, collections, csv, json, subprocess, sys

# What a kind of mirror plants beside its number of pages. `drifts` has paragraphs of its own on 0, 40, 80 % of its pages.
DRIFTED_IN = 2


def table(name):
    with open(name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def changed_size(old, new):
    return "grew" if 10 * new > 11 * old else "shrank" if 10 * old > 11 * new else "lives"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("crawls")
    parser.add_argument("number", type=int)
    parser.add_argument("diff")
    parser.add_argument("--webtwin", default="webtwin")
    args = parser.parse_args()
    n = args.number

    shown = [args.webtwin, "show", f"{args.diff}/mirrors_changed", "--json", "--limit", "0"]
    rows = [json.loads(line) for line in subprocess.run(shown, check=True, capture_output=True, text=True).stdout.splitlines()]
    by_new = {row["prefix"]: row for row in rows if row["has_new"] and row["what"] not in ("joined",)}
    by_old = {row["prefix"]: row for row in rows if not row["has_new"]}

    mirrors = collections.defaultdict(dict)  # (target, kind) -> crawl -> (base, version, pages)
    for row in table(f"{args.crawls}/mirrors.tsv"):
        if row["base"]:
            mirrors[row["target"], row["kind"]][int(row["crawl"])] = (row["base"], row["version"], int(row["pages"]))
    times = collections.Counter((crawl, shown[0]) for history in mirrors.values() for crawl, shown in history.items())
    twice = {base for (_, base), count in times.items() if count > 1}
    originals = collections.defaultdict(dict)  # target -> crawl -> version
    for crawl in range(n + 1):
        pages = collections.Counter()
        for row in table(f"{args.crawls}/truth-{crawl}.tsv"):
            if row["variant"] == "original":
                originals[row["target"]][crawl] = row["version"]
                pages[row["target"]] += 1
        for target, count in pages.items():
            mirrors[target, "original"][crawl] = (f"http://www.{target}.example/", originals[target][crawl], count)

    counts = collections.Counter()

    def judge(what, right, message):
        counts[what] += 1
        counts[what + " right"] += right
        if not right:
            print(f"wrong {what}: {message}")

    vanished = collections.defaultdict(list)  # target -> mirrors that stood elsewhere before, or nowhere now
    for (target, kind), history in mirrors.items():
        old, new = history.get(n - 1), history.get(n)
        if old and (not new or new[0] != old[0]) and old[0] not in twice:
            vanished[target].append((kind, old))
    for (target, kind), history in sorted(mirrors.items()):
        old, new = history.get(n - 1), history.get(n)
        if any(shown and shown[0] in twice for shown in (old, new)):
            counts["left out"] += 1
            continue
        name = f"{target} {kind} {old and old[0]} -> {new and new[0]}"
        if not old and not new:
            continue
        if not new:
            expected = {"missing", "died"}
        elif not old:
            expected = {"born"}
        elif old[0] != new[0]:
            expected = {"moved"}
        elif kind == "drifts" and n == DRIFTED_IN:
            expected = {"drifted"}
        else:
            expected = {changed_size(old[2], new[2])}
        row = by_new.get(new[0]) if new else by_old.get(old[0])
        told = row["what"] if row else "nothing"
        # Which of several that vanished has moved?
        others = [gone for gone in vanished[target] if gone[1] != old]
        if not new and told == "nothing":
            movers = [row for row in rows if row["what"] == "moved" and f"http://{row['host_old']}/{target}/" == old[0]]
            if movers and others:
                told = "missing"
                counts["swapped"] += 1
        if expected == {"moved"} and told == "moved":
            from_host = f"http://{row['host_old']}/{target}/"
            if from_host != old[0] and from_host not in [gone[1][0] for gone in others]:
                told = f"moved from {from_host}"
        judge("fate", told in expected, f"{name}: {told}, planted {' or '.join(sorted(expected))}")
        if expected == {"moved"}:
            judge("moved host", told == "moved", name)
        if new and kind != "original" and originals[target].get(n):
            want = next((back for back in range(n + 1) if originals[target].get(n - back) == new[1]), None)
            lag = int(row["lag_crawls"]) if row and row["has_lag"] else None
            judge("lag", lag == want, f"{name} {new[1]}: {lag}, planted {want}")

    print("what\tright\tof\tshare")
    for what in ("lag", "fate", "moved host"):
        of = counts[what]
        print(f"{what}\t{counts[what + ' right']}\t{of}\t{counts[what + ' right'] / of if of else 1:.4f}")
    print(f"swapped\t{counts['swapped']}\t\t")
    print(f"left out\t{counts['left out']}\t\t")


if __name__ == "__main__":
    sys.exit(main())
