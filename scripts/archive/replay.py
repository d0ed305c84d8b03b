#!/usr/bin/env python3
"""Compares the replay of an archive by pywb with that of the WARC files from which the archive was
made.

    python3 -m venv /tmp/replay && /tmp/replay/bin/pip install pywb cdxj-indexer 'setuptools<81'
    webtwin archive CRAWL/*.warc.gz --output ARCHIVE
    /tmp/replay/bin/python scripts/archive/replay.py CRAWL ARCHIVE [--against OLDER] [--sample 500] [--indexer cdxj-indexer]

Both folders are indexed and served by pywb. A sample of captures is fetched from both without
rewriting (id_): revisits that webtwin has written, and unchanged captures. An incremental archive
is served together with the older archives that it refers to. Status, body and the HTTP headers that
pywb forwards must be equal. Prints the counts. The exit code is 1 if anything differs.
"""
import argparse, collections, glob, json, os, random, socket, subprocess, sys, tempfile, time
import urllib.error, urllib.request

BIN = os.path.dirname(sys.executable)


def warcs(folder):
    found = glob.glob(os.path.join(folder, '**', '*.warc*'), recursive=True)
    return sorted(path for path in found if '/_' not in path[len(folder):])


def index(tool, folder, out, older=()):
    """Writes a sorted CDXJ of all files, with paths from the root. Returns the captures of `folder`
    as {(url, timestamp): fields}."""
    flags = ['-j', '-s'] if tool == 'cdx-indexer' else ['-s']
    files = [path for of in [folder, *older] for path in warcs(of)]
    command = [os.path.join(BIN, tool), *flags, '--dir-root', '/', *files]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    with open(out, 'wb') as file:
        file.write(text)
    captures = {}
    for line in text.decode().splitlines():
        if not line.startswith('!'):
            _, timestamp, fields = line.split(' ', 2)
            fields = json.loads(fields)
            if os.path.join('/', fields['filename']).startswith(folder + '/'):
                captures[fields['url'], timestamp] = fields
    return captures


def fetch(port, name, capture):
    url, timestamp = capture
    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_):
            return None
    opener = urllib.request.build_opener(Stay)
    try:
        answer = opener.open('http://127.0.0.1:%d/%s/%sid_/%s' % (port, name, timestamp, url), timeout=60)
    except urllib.error.HTTPError as error:
        answer = error
    passed_on = {key.lower(): value for key, value in answer.headers.items()
                 if key.lower().startswith('x-archive-orig') or key.lower() == 'content-type'}
    return answer.status, passed_on, answer.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('crawl')
    parser.add_argument('archive')
    parser.add_argument('--against', action='append', default=[], metavar='OLDER', help='an older archive that ARCHIVE refers to; repeatable')
    parser.add_argument('--sample', type=int, default=500, help='number of captures of each kind [500]')
    parser.add_argument('--indexer', default='cdx-indexer', choices=['cdx-indexer', 'cdxj-indexer'])
    args = parser.parse_args()
    crawl, archive = os.path.abspath(args.crawl), os.path.abspath(args.archive)
    with tempfile.TemporaryDirectory() as work:
        before = index(args.indexer, crawl, os.path.join(work, 'before.cdxj'))
        older = [os.path.abspath(folder) for folder in args.against]
        after = index(args.indexer, archive, os.path.join(work, 'after.cdxj'), older)
        kinds = collections.defaultdict(list)
        for capture, fields in sorted(after.items()):
            was = before.get(capture, {}).get('mime')
            is_ours = fields.get('mime') == 'warc/revisit' and was != 'warc/revisit'
            kinds['revisit' if is_ours else 'untouched'].append(capture)
        print('captures in the index before: %d, after: %d, of them revisits: %d, missing: %d'
              % (len(before), len(after), len(kinds['revisit']), len(before.keys() - after.keys())))
        with open(os.path.join(work, 'config.yaml'), 'w') as file:
            json.dump({'collections': {name: {'index': os.path.join(work, name + '.cdxj'), 'archive_paths': '/'}
                                       for name in ['before', 'after']}}, file)
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            port = free.getsockname()[1]
        server = subprocess.Popen([os.path.join(BIN, 'wayback'), '-d', work, '-b', '127.0.0.1', '-p', str(port)],
                                  stdout=subprocess.DEVNULL, stderr=open(os.path.join(work, 'log'), 'wb'))
        try:
            for _ in range(300):
                try:
                    socket.create_connection(('127.0.0.1', port), 1).close()
                    break
                except OSError:
                    time.sleep(0.2)
            wrong = 0
            for kind, captures in sorted(kinds.items()):
                sample = random.Random(1).sample(captures, min(args.sample, len(captures)))
                same, statuses, size = 0, collections.Counter(), 0
                for capture in sample:
                    old, new = fetch(port, 'before', capture), fetch(port, 'after', capture)
                    statuses[new[0]] += 1
                    size += len(new[2])
                    if old == new:
                        same += 1
                    else:
                        print('differs:', *capture, old[0], new[0], len(old[2]), len(new[2]))
                wrong += len(sample) - same
                print('%s: %d fetched, %d equal, %d bytes, by status %s'
                      % (kind, len(sample), same, size, dict(sorted(statuses.items()))))
        finally:
            server.terminate()
            server.wait()
    sys.exit(1 if wrong or before.keys() - after.keys() else 0)


if __name__ == '__main__':
    main()
