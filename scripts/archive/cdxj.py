#!/usr/bin/env python3
"""Compares index.cdxj of an archive with the output of cdxj-indexer for the same files.

    python3 -m venv /tmp/replay && /tmp/replay/bin/pip install cdxj-indexer
    webtwin archive CRAWL/*.warc.gz --cdxj --output ARCHIVE
    /tmp/replay/bin/python scripts/archive/cdxj.py ARCHIVE

The comparison is line by line. Prints the lines that only one of them has, and the counts. The exit
code is 1 if anything differs.
"""
import argparse, glob, os, subprocess, sys

BIN = os.path.dirname(sys.executable)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('archive')
    archive = parser.parse_args().archive
    found = glob.glob(os.path.join(archive, '**', '*.warc*'), recursive=True)
    files = sorted(path for path in found if '/_' not in path[len(archive):])
    command = [os.path.join(BIN, 'cdxj-indexer'), '--sort', '--dir-root', archive, *files]
    theirs = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.splitlines()
    with open(os.path.join(archive, 'index.cdxj'), 'rb') as file:
        ours = file.read().splitlines()
    only_ours, only_theirs = sorted(set(ours) - set(theirs)), sorted(set(theirs) - set(ours))
    for name, lines in [('webtwin', only_ours), ('cdxj-indexer', only_theirs)]:
        for line in lines[:20]:
            print('only %s: %s' % (name, line.decode()))
    print('lines: webtwin %d, cdxj-indexer %d; only webtwin %d, only cdxj-indexer %d; ascending: %s'
          % (len(ours), len(theirs), len(only_ours), len(only_theirs), ours == sorted(ours)))
    sys.exit(0 if ours == sorted(theirs) else 1)


if __name__ == '__main__':
    main()
