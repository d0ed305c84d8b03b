#!/usr/bin/env python3
"""Builds real crawls over time: the same hosts once per Debian suite, with mirrors of known
history. See README.md.

A target of targets.tsv that every suite has shows its version of suite N in crawl N, and so does
each unrelated package. Mirrors of a target show it according to their history. Written to --out:

  crawl-N/crawl-NNNNN.warc.gz  WARC 1.1, one gzip member per record
  truth-N.tsv                  url target version page variant lag sha1: every page of crawl N
  mirrors.tsv                  target kind crawl base version pages: the contents of each mirror; no base if it was absent
  missing.tsv                  target package suite reason: packages that could not be fetched

One seed and one set of package versions yield the same bytes for any --jobs. Exit code 3: a client
or its registry is not available here.
"""
import argparse, collections, hashlib, multiprocessing, os, re, sys, tempfile, time

from fetch import FILE_BYTES, MIRRORS, PAGES_A_SINGLE, home_pages, read_table, record, response, write_table
from mirrors import draw, entry_order, partial, quote
from packages import Absent, Packages, read_pages

SUITES = {'bullseye': '2021-08-14', 'bookworm': '2023-06-10', 'trixie': '2025-08-09', 'forky': '2026-11-01'}
MIRRORS_A_TARGET = 6

# Contents of a kind of mirror in each crawl: the number of a version, or - for none. >: on another
# host from here on.
VERSIONS = {
    'fresh': '0 1 2 3', 'lag1': '0 0 1 2', 'lag2': '0 0 0 1', 'stuck': '0 0 0 0', 'catches-up': '0 0 0 3',
    'born': '- 1 2 3', 'born-behind': '- - 1 2', 'dies': '0 1 - -', 'dies-late': '0 0 1 -', 'returns': '0 - 2 3',
    'moves': '0 1 >2 3', 'moves-as-is': '0 1 1 >1', 'moves-early': '0 >0 1 2',
    'grows': '0 1 2 3', 'shrinks': '0 1 2 3', 'drifts': '0 1 2 3',
}
# Fraction of the pages that it has, and fraction of the pages to which it adds own paragraphs.
SHARES = {'grows': (0.4, 0.6, 0.8, 1.0), 'shrinks': (1.0, 0.8, 0.6, 0.4)}
OWN = {'drifts': (0.0, 0.4, 0.8, 0.8)}


def with_own_paragraphs(page, data, seed, host, share):
    """Returns the page. The given fraction of pages has a note of the mirror after every third
    paragraph and at the end."""
    if draw(seed, 'own', host, page) % 1000 >= 1000 * share:
        return data
    note = b'<p>Note %d of %s: see our page %d on this, and ask the staff of %s.</p>'

    def noted(at, end):
        words = draw(seed, 'note', host, page, at)
        return note % (at, host.encode(), words % 997, host.encode()) + end if at % 3 == 0 else end
    parts = re.split(rb'(?i)(</p>|</body)', data)
    if len(parts) == 1:
        return data + noted(0, b'')
    # Inserted after a </p>, but before </body.
    return b''.join(
        part if not at % 2 else part + noted(at // 2, b'') if part[-1:] == b'>' else noted(0, part)
        for at, part in enumerate(parts))


def shown(seed, target, base, version, pages, variant, lag, crawl):
    """Returns (base, title, address of its entry, [(record, row of the truth)]) of a collection in
    one crawl."""
    date, records = list(SUITES.values())[crawl], []
    for page in sorted(pages):
        url, data = base + quote(page), pages[page]
        truth = url, target, version, page, variant, lag, hashlib.sha1(data).hexdigest()
        records.append((response(url, data, date, 'crawl %d ' % crawl), truth))
    entry = base + quote(min(pages, key=entry_order))
    return base, '%s %s' % (target.split(':')[-1], version), entry, records


def build_target(job):
    """Returns (collections by crawl, rows of mirrors.tsv, rows of missing.tsv) of a target with its
    mirrors."""
    seed, target, fetched = job
    versions = [(row, *read_pages(row, file, reason)) for row, file, reason in fetched]
    lacking = [(target, row['package'], row['suite'], reason) for row, pages, reason in versions if not pages]
    if lacking:
        return [[] for _ in versions], [], lacking
    home, taken, mirrors = 'http://www.%s.example/' % target, set(), []
    crawls = [[shown(seed, target, home, row['version'], pages, 'original', 0, crawl)]
              for crawl, (row, pages, _) in enumerate(versions)]

    def free_host(*key):
        first = draw(seed, target, 'host', *key) % len(MIRRORS)
        host = next(x for x in MIRRORS[first:] + MIRRORS[:first] if x not in taken)
        taken.add(host)
        return host

    for kind in sorted(VERSIONS, key=lambda kind: draw(seed, target, 'kind', kind))[:MIRRORS_A_TARGET]:
        host = free_host(kind)
        for crawl, what in enumerate(VERSIONS[kind].split()[:len(versions)]):
            if what[0] == '>':
                host = free_host(kind, 'moved')
            if what == '-':
                mirrors.append((target, kind, crawl, '', '', ''))
                continue
            number = int(what.lstrip('>'))
            row, pages, _ = versions[number]
            share, own = (shares.get(kind, (default,) * 4)[crawl] for shares, default in ((SHARES, 1.0), (OWN, 0.0)))
            if share < 1:
                pages = partial(pages, share, home)
            if own > 0:
                pages = {page: with_own_paragraphs(page, data, seed, host, own) for page, data in pages.items()}
            base = 'http://%s/%s/' % (host, target)
            crawls[crawl].append(shown(seed, target, base, row['version'], pages, kind, crawl - number, crawl))
            mirrors.append((target, kind, crawl, base, row['version'], len(pages)))
    return crawls, mirrors, []


def build_single(job):
    """Returns the same for an unrelated package, which may be missing from some suites."""
    seed, target, fetched = job
    base = 'http://%s.site.example/' % re.sub(r'[^a-z0-9]+', '-', target.split(':')[1])
    crawls, missing = [], []
    for crawl, (row, file, reason) in enumerate(fetched):
        pages, reason = read_pages(row, file, reason)
        chosen = sorted(pages, key=lambda page: draw(seed, target, page))[:PAGES_A_SINGLE]
        pages = {page: pages[page] for page in chosen}
        crawls.append([shown(seed, target, base, row['version'], pages, 'single', 0, crawl)] if pages else [])
        missing += [] if pages else [(target, row['package'], row['suite'], reason)]
    return crawls, [], missing


class Crawl:
    """The written part of one crawl."""

    def __init__(self, folder, number):
        self.folder, self.number, self.files, self.file = os.path.join(folder, 'crawl-%d' % number), number, 0, None
        self.truth, self.hosts = [], collections.defaultdict(list)
        os.makedirs(self.folder)

    def write(self, member, row):
        if not self.file or self.file.tell() > FILE_BYTES:
            self.close()
            name = 'crawl-%05d.warc.gz' % self.files
            self.file, self.files = open(os.path.join(self.folder, name), 'wb'), self.files + 1
            fields = b'software: real-crawl/over-time.py\r\nformat: WARC File Format 1.1\r\n'
            date, crawl = list(SUITES.values())[self.number], 'crawl %d ' % self.number
            self.file.write(record('warcinfo', name, 'application/warc-fields', fields, date, 'WARC-Filename', crawl))
        self.file.write(member)
        self.truth.append(row)

    def add(self, base, title, entry, records):
        for member, row in records:
            self.write(member, row)
        self.hosts[base.split('/')[2]].append((title, entry))

    def finish(self, seed):
        """Writes a home page for each host without an original or single site at its root."""
        date, written = list(SUITES.values())[self.number], {row[0] for row in self.truth}
        for host, page in home_pages(seed, self.hosts):
            url = 'http://%s/' % host
            if url not in written:
                row = url, 'hub:' + host, '-', '', 'hub', 0, hashlib.sha1(page).hexdigest()
                self.write(response(url, page, date, 'crawl %d ' % self.number), row)
        self.close()

    def close(self):
        if self.file:
            self.file.close()


def chosen_targets(suites, only):
    """Returns target -> its row for each suite: that of the package which most of its rows name, or
    else the last one."""
    by_target = collections.defaultdict(list)
    for row in read_table('targets.tsv'):
        if row['kind'] == 'deb' and row['suite'] in suites and (not only or row['target'] in only):
            by_target[row['target']].append(row)
    chosen = {}
    for target, rows in by_target.items():
        names = collections.Counter(row['package'] for row in rows)
        of_suites = [[(names[row['package']], at, row) for at, row in enumerate(rows) if row['suite'] == suite]
                     for suite in suites]
        if all(of_suites):
            chosen[target] = [max(found, key=lambda row: row[:2])[2] for found in of_suites]
    return chosen


def build(o, suites, folder):
    """Fetches and builds all crawls. Returns them with the rows of mirrors.tsv and of
    missing.tsv."""
    start, mirrors, missing = time.time(), [], []
    targets = chosen_targets(suites, o.only.split(',') if o.only else None)
    singles = {'single:' + row['package']: [dict(row, suite=suite, version='?') for suite in suites]
               for row in [row for row in read_table('singles.tsv') if row['kind'] == 'deb'][:o.singles]}
    names = [*targets, *singles]
    rows = [dict(row, target=name) for name in names for row in (targets.get(name) or singles[name])]
    fetched = iter(Packages(os.path.abspath(folder), o.jobs, suites).fetch(rows))
    print('%d packages  %.0f s' % (len(rows), time.time() - start), flush=True)
    jobs = [(o.seed, name, [next(fetched) for _ in suites]) for name in names]
    crawls = [Crawl(o.out, number) for number in range(len(suites))]
    with multiprocessing.Pool(o.jobs) as pool:
        for builder, part in ((build_target, jobs[:len(targets)]), (build_single, jobs[len(targets):])):
            for (_, name, _), (found, shown_by, lacking) in zip(part, pool.imap(builder, part)):
                mirrors += shown_by
                missing += lacking
                for crawl, of_crawl in zip(crawls, found):
                    for one in of_crawl:
                        crawl.add(*one)
                if builder is build_target:
                    print('%-20s %6d pages  %4.0f s' % (name, len(crawls[-1].truth), time.time() - start), flush=True)
    for crawl in crawls:
        crawl.finish(o.seed)
    return crawls, mirrors, missing


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--out', required=True, help='folder of the crawls; must not exist, or be empty')
    p.add_argument('--cache', help='folder that keeps the packages; without it they are deleted')
    p.add_argument('--suites', default=','.join(SUITES), help='oldest first (default %(default)s)')
    p.add_argument('--only', help='only these targets: T1,T2')
    p.add_argument('--singles', type=int, default=120, help='number of unrelated packages (default %(default)s)')
    p.add_argument('--seed', default='1', help='seed of all random choices (default %(default)s)')
    p.add_argument('--jobs', type=int, default=os.cpu_count(), help='processes (default %(default)s, one per core)')
    o = p.parse_args()
    suites = o.suites.split(',')
    if suites != list(SUITES)[:len(suites)]:
        p.error('--suites: the first few of ' + ','.join(SUITES))
    for folder in filter(None, (o.out, o.cache)):
        os.makedirs(folder, exist_ok=True)
    if os.listdir(o.out):
        p.error('%s is not empty; name another folder, or remove it' % o.out)
    try:
        with tempfile.TemporaryDirectory() as dropped:
            crawls, mirrors, missing = build(o, suites, o.cache or dropped)
    except Absent as e:
        print('real-crawl: %s' % e, file=sys.stderr)
        sys.exit(3)
    for crawl in crawls:
        write_table(o.out, 'truth-%d.tsv' % crawl.number, 'url target version page variant lag sha1', crawl.truth)
        print('crawl %d: %d pages on %d hosts' % (crawl.number, len(crawl.truth), len(crawl.hosts)))
    write_table(o.out, 'mirrors.tsv', 'target kind crawl base version pages', mirrors)
    write_table(o.out, 'missing.tsv', 'target package suite reason', missing)


if __name__ == '__main__':
    main()
