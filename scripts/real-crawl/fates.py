#!/usr/bin/env python3
"""Compares the report of `webtwin diff` about mirrors with the planted history.

    usage: fates.py CRAWLS N DIFF [--webtwin PROGRAM]

CRAWLS has mirrors.tsv (target, kind, crawl, base, version, pages: the contents of each mirror of
each target in each crawl) and truth-N.tsv (url, target, version, ...: every page). DIFF is the
comparison of crawl N - 1 with crawl N, with the history of all earlier crawls. Prints the
differences, then the counts as a table of tab-separated values.

A mirror that is absent in one crawl is `missing`, and continues when it returns; one that is absent
in two crawls in a row has `died`. Mirrors of one target with the same host and path, which are
really one, are left out. If two mirrors of one target with equal pages vanish when a third one
appears, the content does not show which one has moved: either answer counts as right, and is
counted as `swapped`. Nor does the content show whether a mirror that ends while another one of its
target begins has moved. Such ends and births, and their consequences, count as wrong if they are
reported so, and `fate but for ends beside births` counts the others.
"""
import argparse, collections, csv, json, subprocess, sys

# Contents that a kind of mirror adds to its number of pages. `drifts` has own paragraphs on 0, 40
# and 80 % of its pages.
DRIFTED_IN = 2
# Number of crawls in which a mirror may be absent, as in the program.
PATIENCE = 2


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
    by_new = [row for row in rows if row["has_new"] and row["what"] not in ("joined",)]
    by_old = [row for row in rows if not row["has_new"]]

    def told_of(shown, rows, size):
        """Returns the row of a mirror: the largest row whose root page belongs to the mirror. A
        collection may include the home page of its host. Then its prefix is that of the host, and
        if the home page is its root, its size must be nearly that of the mirror."""
        base, _, pages = shown
        home = "/".join(base.split("/")[:3]) + "/"
        of_mirror = [row for row in rows if row["root_url"].startswith(base)]
        of_host = [row for row in rows if row["root_url"] == home and 10 * abs(row[size] - pages) <= pages]
        return max(of_mirror or of_host, key=lambda row: row[size], default=None)

    mirrors = collections.defaultdict(dict)  # (target, kind) -> crawl -> (base, version, pages)
    for row in table(f"{args.crawls}/mirrors.tsv"):
        if row["base"]:
            mirrors[row["target"], row["kind"]][int(row["crawl"])] = (row["base"], row["version"], int(row["pages"]))
    times = collections.Counter((crawl, shown[0]) for history in mirrors.values() for crawl, shown in history.items())
    twice = {base for (_, base), count in times.items() if count > 1}
    originals = collections.defaultdict(dict)  # target -> crawl -> version
    texts = collections.defaultdict(set)  # (target, version) -> the bytes of its pages
    for crawl in range(n + 1):
        pages = collections.Counter()
        for row in table(f"{args.crawls}/truth-{crawl}.tsv"):
            if row["variant"] == "original":
                originals[row["target"]][crawl] = row["version"]
                texts[row["target"], row["version"]].add((row["page"], row["sha1"]))
                pages[row["target"]] += 1
        for target, count in pages.items():
            mirrors[target, "original"][crawl] = (f"http://www.{target}.example/", originals[target][crawl], count)

    def presence(history):
        """Returns the crawls that have a mirror."""
        return [crawl for crawl in sorted(history) if crawl <= n]

    # (target, crawl) in which a mirror begins, in which one begins or moves in, and in which one
    # has left its location
    births, arrivals, ends = set(), set(), set()
    for (target, kind), history in mirrors.items():
        for crawl in range(1, n + 1):
            here, there = history.get(crawl), history.get(crawl - 1)
            if here and not any(crawl - back in history for back in range(1, PATIENCE + 1)):
                births.add((target, crawl))
                arrivals.add((target, crawl))
            if here and there and here[0] != there[0]:
                arrivals.add((target, crawl))
            if there and (not here or here[0] != there[0]):
                ends.add((target, crawl))

    def end_beside_birth(target, history):
        """True if the planted fate of a mirror in this crawl is an end next to a birth, or follows
        from one, or from one of several ends next to a move."""
        earlier = [crawl for crawl in presence(history) if crawl < n]
        if n in history and not any(n - back in history for back in range(1, PATIENCE + 1)):
            return (target, n) in ends
        if not earlier or n in history and earlier[-1] == n - 1:
            return False
        ended = earlier[-1] + 1
        return (target, ended) in (births if ended == n else arrivals)

    counts = collections.Counter()

    def judge(what, right, message):
        counts[what] += 1
        counts[what + " right"] += right
        if not right:
            print(f"wrong {what}: {message}")

    def last_seen(history):
        """Returns the last crawl before this one that has a mirror and is still in the history, or
        None."""
        return next((crawl for crawl in range(n - 1, max(n - 1 - PATIENCE, -1), -1) if crawl in history), None)

    def lag(target, crawl, version):
        """Returns the number of crawls since the original had a version that a mirror has in this
        crawl. Versions with the same bytes are one."""
        shown = texts[target, version]
        earlier = ((back, originals[target].get(crawl - back)) for back in range(crawl + 1))
        return next((back for back, was in earlier if was == version or shown and texts[target, was] == shown), None)

    vanished = collections.defaultdict(list)  # target -> mirrors that stood elsewhere before, or nowhere now
    for (target, kind), history in mirrors.items():
        old, new = history.get(last_seen(history)), history.get(n)
        if old and (not new or new[0] != old[0]) and old[0] not in twice:
            vanished[target].append((kind, old))
    for (target, kind), history in sorted(mirrors.items()):
        seen = last_seen(history)
        old, new = history.get(seen), history.get(n)
        if any(shown and shown[0] in twice for shown in (old, new)):
            counts["left out"] += 1
            continue
        name = f"{target} {kind} {old and old[0]} -> {new and new[0]}"
        if not old and not new:
            continue
        if not new:
            expected = {"died" if n - seen == PATIENCE else "missing"}
        elif not old:
            expected = {"born"}
        elif old[0] != new[0]:
            expected = {"moved"}
        elif kind == "drifts" and n == DRIFTED_IN:
            expected = {"drifted"}
        elif kind != "original" and lag(target, seen, old[1]) and lag(target, n, new[1]) == 0:
            expected = {"caught_up"}
        else:
            expected = {changed_size(old[2], new[2])}
        row = told_of(new, by_new, "size_new") if new else told_of(old, by_old, "size_old")
        told = row["what"] if row else "nothing"
        # Determine which of several vanished mirrors has moved.
        others = [gone for gone in vanished[target] if gone[1] != old]
        if not new and told == "nothing":
            movers = [row for row in rows if row["what"] == "moved" and f"http://{row['host_old']}/{target}/" == old[0]]
            if movers and others:
                told = min(expected)
                counts["swapped"] += 1
        if not new and told == "nothing":
            elsewhere = [row["what"] for row in rows if row["what"] == "joined" and f"http://{row['host_old']}/" in old[0]]
            told = (elsewhere or [told])[0]
        if expected == {"moved"} and told == "moved":
            from_host = f"http://{row['host_old']}/{target}/"
            if from_host != old[0] and from_host not in [gone[1][0] for gone in others]:
                told = f"moved from {from_host}"
        if not end_beside_birth(target, history):
            counts["fate but for ends beside births"] += 1
            counts["fate but for ends beside births right"] += told in expected
        judge("fate", told in expected, f"{name}: {told}, planted {' or '.join(sorted(expected))}")
        if expected == {"moved"}:
            judge("moved host", told == "moved", name)
        if new and kind != "original" and originals[target].get(n):
            want = lag(target, n, new[1])
            told = int(row["lag_crawls"]) if row and row["has_lag"] else None
            judge("lag", told == want, f"{name} {new[1]}: {told}, planted {want}")

    print("what\tright\tof\tshare")
    for what in ("lag", "fate", "fate but for ends beside births", "moved host"):
        of = counts[what]
        print(f"{what}\t{counts[what + ' right']}\t{of}\t{counts[what + ' right'] / of if of else 1:.4f}")
    print(f"swapped\t{counts['swapped']}\t\t")
    print(f"left out\t{counts['left out']}\t\t")


if __name__ == "__main__":
    sys.exit(main())
