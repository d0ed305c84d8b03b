#!/usr/bin/env python3
"""Compares the text of PDF files by webtwin's helper process with that of pdftotext
(poppler-utils).

    usage: compare.py WEBTWIN FOLDER > documents.tsv      # WEBTWIN has the cargo feature `pdf`

Prints for each file of FOLDER: its bytes, the words of either text, the fraction of common words
(as multisets, of the larger one), the processor seconds of both, and the outcome of webtwin. A
summary is written to stderr.
"""
import collections
import json
import os
import re
import resource
import subprocess
import sys

LIMITS = ["10", str(1 << 30), str(16 << 20), "10000"]
WORD = re.compile(r"\w+")


def run(command, stdin):
    """Returns the output of a command and its processor seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def words(text):
    return collections.Counter(WORD.findall(text))


def main():
    program, folder = sys.argv[1:]
    print("file\tbytes\twords\tpdftotext_words\tshare\tseconds\tpdftotext_seconds\toutcome")
    shares, totals, outcomes = [], [0, 0.0, 0.0], collections.Counter()
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            ours, seconds = run([program, "print-text", "pdf", *LIMITS], file)
        theirs, other_seconds = run(["pdftotext", path, "-"], subprocess.DEVNULL)
        text, outcome = "", f"ended with {ours.returncode}"
        if ours.returncode == 0:
            answer = json.loads(ours.stdout)
            if "Document" in answer:
                text = answer["Document"]["text"]
                outcome = "whole" if answer["Document"]["is_whole"] else "partly"
            else:
                outcome = answer["Refused"][0]
        mine, other = words(text), words(theirs.stdout.decode("utf-8", "replace"))
        most = max(mine.total(), other.total())
        share = (mine & other).total() / most if most else 1.0
        size = os.path.getsize(path)
        for at, value in enumerate([size, seconds, other_seconds]):
            totals[at] += value
        outcomes[outcome] += 1
        if other.total() > 0:
            shares.append(share)
        print(name, size, mine.total(), other.total(), f"{share:.4f}", f"{seconds:.3f}", f"{other_seconds:.3f}", outcome, sep="\t")
    shares.sort()
    megabytes = totals[0] / 1e6
    print(
        f"{len(shares)} documents with text, {megabytes:.0f} MB: share of words median {shares[len(shares) // 2]:.3f}, "
        f"mean {sum(shares) / len(shares):.3f}, at least 0.9 in {sum(share >= 0.9 for share in shares)}; "
        f"{totals[1] / megabytes:.2f} s a MB, pdftotext {totals[2] / megabytes:.2f}; {dict(outcomes)}",
        file=sys.stderr,
    )


main()
