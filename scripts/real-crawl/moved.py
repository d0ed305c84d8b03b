#!/usr/bin/env python3
"""Names pages of versions whose folders have moved as the other versions do.

usage: moved.py TRUTH > MENDED

A page is known by its path below a version's doc_root. Where a version puts folders between, or leaves them out, no page of it would
have a copy, and every pair with it would be false. moved.tsv says what is replaced in such names (target, version, from: a
regular expression, to); fetch.py asks for it, and this program mends a truth.tsv that was made without it. How paths of the
crawl's pages look is not changed.
"""
import csv, os, re, sys


def moved_pages():
    """(target, version) -> what is replaced, and by what."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'moved.tsv'), encoding='utf-8', newline='') as file:
        rows = csv.DictReader(file, delimiter='\t', quoting=csv.QUOTE_NONE)
        return {(row['target'], row['version']): (re.compile(row['from']), row['to']) for row in rows}


def page_name(moved, target, version, page):
    """The name of a page in all versions of its target."""
    if (target, version) in moved:
        old, new = moved[target, version]
        page = old.sub(new, page)
    return page


if __name__ == '__main__':
    moved = moved_pages()
    with open(sys.argv[1], encoding='utf-8', newline='') as file:
        head = next(file)
        target, version, page = (head.rstrip('\n').split('\t').index(name) for name in ('target', 'version', 'page'))
        sys.stdout.write(head)
        for line in file:
            row = line.rstrip('\n').split('\t')
            row[page] = page_name(moved, row[target], row[version], row[page])
            sys.stdout.write('\t'.join(row) + '\n')
