#!/usr/bin/env python3
"""Builds a real crawl with known replicas from package registries. README.md next to this file
explains why and how.

targets.tsv (or the file of --targets) lists real versions of real manuals, and singles.tsv lists
unrelated packages with HTML pages. The packages are fetched by the ordinary clients (apt-get, npm,
pip); nothing else here uses the network. Written to --out:

  crawl-NNNNN.warc.gz  WARC 1.1, one gzip member per record
  truth.tsv            url target version page variant linked source path origin perhaps: see names.py
  hosts.tsv            host kind linked collections
  missing.tsv          target package version reason: packages that could not be fetched

One seed and one set of package versions yield the same bytes for any --jobs. Exit code 3: a client
or its registry is not available here.
"""
import argparse, bisect, collections, csv, glob, html, multiprocessing, os, posixpath, random, re, sys, tempfile, time
import uuid, zlib

from mirrors import draw, dressed, entry_order, partial, quote, renamed
from names import HEADER, mended, tell
from packages import Absent, Packages, read_pages

HERE = os.path.dirname(os.path.abspath(__file__))
MIRRORS = ['mirror%02d.example' % i for i in range(60)] + ['ftp%02d.campus.example' % i for i in range(20)]
MADE = ['exact', 'dressed', 'partial', 'renamed', 'dressed-partial']
COLLECTIONS = 7         # a target gets made mirrors up to this many; Cho, Shivakumar and Garcia-Molina had 5 to 10
PAGES_A_SINGLE = 25     # more would let a few large packages be most of the unrelated pages
FILE_BYTES = 100 << 20  # a WARC file is closed beyond this, so that there are several to read side by side


def host_of(url):
    return url.split('/')[2]


def kind_of(host):
    return 'primary' if host.startswith('www.') else 'single' if host.endswith('.site.example') else 'mirror'


def is_linked(seed, host):
    """True if another host links here. One in ten mirrors and single sites is an island; a primary
    site never is."""
    return kind_of(host) == 'primary' or draw(seed, 'island', host) % 10 > 0


def date_of(day):
    """Returns the date that a drawn number determines."""
    return '%d-%02d-%02d' % (2010 + day % 16, 1 + day % 12, 1 + day % 28)


def record(kind, key, content_type, block, date=date_of(0), named='WARC-Target-URI', crawl=''):
    """Returns a WARC record as one gzip member without time or name, whose bytes depend on the
    arguments only. Its id is derived from key, and from crawl if there are several."""
    head = ('WARC/1.1\r\nWARC-Type: %s\r\nWARC-Record-ID: <urn:uuid:%s>\r\nWARC-Date: %sT00:00:00Z\r\n'
            '%s: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n'
            % (kind, uuid.uuid5(uuid.NAMESPACE_URL, crawl + key), date, named, key, content_type, len(block))).encode()
    gzip = zlib.compressobj(6, zlib.DEFLATED, 31)
    return gzip.compress(head + block + b'\r\n\r\n') + gzip.flush()


def response(url, data, date=date_of(0), crawl=''):
    http = b'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n' % len(data)
    return record('response', url, 'application/http; msgtype=response', http + data, date, crawl=crawl)


def collection(seed, target, row, variant, base, pages, origin):
    """Returns (host, title, [(record, row of truth.tsv up to source)]). origin: page -> its path in
    the real version, if that differs. It is the name of the page until the whole crawl is known."""
    linked, source = int(is_linked(seed, host_of(base))), ':'.join((row['kind'], row['suite'], row['package']))
    date, records = date_of(draw(seed, target, row['version'])), []
    for page in sorted(pages):
        truth = base + quote(page), target, row['version'], origin.get(page, page), variant, linked, source
        records.append((response(truth[0], pages[page], date), truth))
    return host_of(base), '%s %s' % (target.split(':')[-1], row['version']), records


def build_target(job):
    """Returns the collections of one target, and its rows of missing.tsv."""
    seed, target, fetched = job
    home, taken, real, done, missing = 'http://www.%s.example/' % target, set(), [], [], []

    def free_mirror(*key):
        first = draw(seed, target, *key) % len(MIRRORS)
        host = next(x for x in MIRRORS[first:] + MIRRORS[:first] if x not in taken)
        taken.add(host)
        return 'http://%s/' % host

    for row, file, reason in reversed(fetched):     # a target's newest version is its last row
        key = row['package'], row['version'], row['doc_root']
        pages, reason = read_pages(row, file, reason) if key not in taken else ({}, 'another row has this version now')
        if not pages:
            missing.append((target, row['package'], row['version'], reason))
            continue
        base = home + 'old/%s/' % re.sub(r'[^\w.]+', '-', row['version'].split(':')[-1])
        if not real:
            base = home
        elif draw(seed, target, 'old', *key) % 5 or base in taken:
            prefix = ('pub', 'doc', 'mirrors', 'manuals/html')[draw(seed, target, 'prefix', *key) % 4]
            base = free_mirror(*key) + '%s/%s/' % (prefix, target)
        taken.update((key, base))
        real.append((row, base, pages))
        done.append(collection(seed, target, row, 'real', base, pages, {}))

    sources = [x for x in real if is_linked(seed, host_of(x[1]))]   # a mirror links back, and nobody links to an island
    for n in range(COLLECTIONS - len(real) if real else 0):
        variant, origin = MADE[(draw(seed, target) + n) % len(MADE)], {}
        row, source, pages = sources[draw(seed, target, 'source', n) % len(sources)]
        base = free_mirror('made', n) + target + ('', '-mirror', '/docs')[n % 3] + '/'
        if 'partial' in variant:
            pages = partial(pages, 0.3 + draw(seed, target, 'share', n) % 50 / 100, source)
        if 'dressed' in variant:
            pages = dressed(pages, seed, host_of(base), target, source)
        if variant == 'renamed':
            pages, origin = renamed(pages, n)
        done.append(collection(seed, target, row, variant, base, pages, origin))
    return done, missing


def build_single(job):
    """Returns a few pages of one unrelated package as a site of their own, or its row of
    missing.tsv."""
    seed, (row, file, reason) = job
    target, (pages, reason) = 'single:' + row['package'], read_pages(row, file, reason)
    if not pages:
        return [], [(target, row['package'], row['version'], reason)]
    chosen = sorted(pages, key=lambda p: draw(seed, target, p))[:PAGES_A_SINGLE]
    top = len(os.path.commonprefix([posixpath.dirname(p) + '/' for p in chosen]).rpartition('/')[0]) + 1
    base = 'http://%s.site.example/' % re.sub(r'[^a-z0-9]+', '-', row['package'])
    return [collection(seed, target, row, 'single', base, {p[top:]: pages[p] for p in chosen}, {})], []


def home_pages(seed, hosts):
    """Yields (host, HTML) of a page for every host. It links to its own collections, to up to 6
    primary sites, to a heavy-tailed number of other hosts, and to the next linked host: a ring that
    gives each linked host an incoming link."""
    linked = [x for x in sorted(hosts) if is_linked(seed, x)]
    primary = [x for x in linked if x.startswith('www.')]
    for host in sorted(hosts):
        choose = random.Random(draw(seed, 'home', host))
        others = choose.sample(primary, min(len(primary), choose.randint(0, 6)))
        others += choose.sample(linked, min(len(linked), 3 + int(choose.paretovariate(1.2))))
        others.append(linked[bisect.bisect(linked, host) % len(linked)])
        links = hosts[host] + [(x, 'http://%s/' % x) for x in dict.fromkeys(others) if x != host]
        items = ''.join('<li><a href="%s">%s</a></li>\n' % (html.escape(url), html.escape(text)) for text, url in links)
        page = '<html><head><title>%s</title></head><body><h1>Welcome to %s</h1>\n<ul>\n%s</ul></body></html>\n'
        yield host, (page % (host, host, items)).encode()


class Crawl:
    """The crawl built so far: the records are in files of the folder, and the rows of the tables
    are in memory."""

    def __init__(self, folder):
        self.folder, self.files, self.file, self.bytes = folder, 0, None, 0
        self.truth, self.missing, self.hosts = [], [], collections.defaultdict(list)

    def write(self, member, row):
        if not self.file or self.file.tell() > FILE_BYTES:
            self.close()
            name = 'crawl-%05d.warc.gz' % self.files
            self.file, self.files = open(os.path.join(self.folder, name), 'wb'), self.files + 1
            fields = b'software: real-crawl/fetch.py\r\nformat: WARC File Format 1.1\r\n'
            member = record('warcinfo', name, 'application/warc-fields', fields, named='WARC-Filename') + member
        self.bytes += self.file.write(member)
        self.truth.append(row)

    def add(self, built, room=sys.maxsize):
        """Writes the output of a builder, at most `room` pages of each collection. Returns the
        number of pages written."""
        before, (found, missing) = len(self.truth), built
        self.missing += missing
        for host, title, records in found:
            for member, row in records[:room]:
                self.write(member, row)
            first = min((row for _, row in records[:room]), key=lambda row: entry_order(row[3]))
            self.hosts[host].append((title, first[0]))
        return len(self.truth) - before

    def close(self):
        if self.file:
            self.file.close()


def read_table(name):
    with open(os.path.join(HERE, name), encoding='utf-8', newline='') as f:
        return list(csv.DictReader(f, delimiter='\t', quoting=csv.QUOTE_NONE))


def write_table(folder, name, header, rows):
    with open(os.path.join(folder, name), 'w', encoding='utf-8', newline='\n') as f:
        f.writelines('\t'.join(map(str, row)) + '\n' for row in [header.split(), *rows])


def build(o, targets, folder):
    """Fetches and builds everything: targets first, then unrelated packages until their pages
    suffice."""
    crawl, start = Crawl(o.out), time.time()
    singles = read_table('singles.tsv') if o.singles else []
    suites = list(dict.fromkeys(x['suite'] for x in [*targets, *singles] if x['kind'] == 'deb'))
    packages, by_target, pages = Packages(os.path.abspath(folder), o.jobs, suites), collections.defaultdict(list), 0
    with multiprocessing.Pool(o.jobs) as pool:
        for fetched in packages.fetch(targets):
            by_target[fetched[0]['target']].append(fetched)
        for target, built in zip(by_target, pool.imap(build_target, [(o.seed, *x) for x in by_target.items()])):
            print('%-20s %6d pages  %4.0f s' % (target, crawl.add(built), time.time() - start), flush=True)
        while singles and pages < o.singles:
            some = min(50, (o.singles - pages) // PAGES_A_SINGLE + 4)   # no package fetched for nothing, but for a few
            fetched, singles = packages.fetch(singles[:some]), singles[some:]
            for built in pool.imap(build_single, [(o.seed, x) for x in fetched]):
                pages += crawl.add(built, o.singles - pages) if pages < o.singles else 0
        print('%-20s %6d pages  %4.0f s' % ('unrelated', pages, time.time() - start), flush=True)
    for host, page in home_pages(o.seed, crawl.hosts):
        url = 'http://%s/' % host
        crawl.write(response(url, page), (url, 'hub:' + host, '-', '', 'hub', int(is_linked(o.seed, host)), 'made'))
    crawl.close()
    return crawl


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--out', required=True, help='folder of the crawl; must not contain a crawl')
    p.add_argument('--cache', help='folder that keeps the packages (1.3 GB for all); without it they are deleted')
    p.add_argument('--targets', default='targets.tsv', help='table next to this file (default %(default)s)')
    p.add_argument('--only', help='only these targets: T1,T2')
    p.add_argument('--singles', type=int, default=15000, help='number of unrelated pages (default %(default)s)')
    p.add_argument('--seed', default='1', help='seed of all random choices (default %(default)s)')
    p.add_argument('--jobs', type=int, default=os.cpu_count(), help='processes (default %(default)s, one per core)')
    o = p.parse_args()
    targets, names = read_table(o.targets), o.only.split(',') if o.only else None
    unknown = set(names or []) - {x['target'] for x in targets}
    if unknown:
        p.error('%s has no target ' % o.targets + ', '.join(sorted(unknown)))
    for folder in filter(None, (o.out, o.cache)):
        os.makedirs(folder, exist_ok=True)
    if glob.glob(glob.escape(o.out) + '/crawl-*.warc.gz'):
        p.error('%s holds a crawl; name an empty folder, or remove it' % o.out)
    start = time.time()
    try:
        with tempfile.TemporaryDirectory(dir=o.out) as dropped:
            crawl = build(o, [x for x in targets if not names or x['target'] in names], o.cache or dropped)
    except Absent as e:
        for file in glob.glob(glob.escape(o.out) + '/crawl-*.warc.gz'):
            os.remove(file)
        print('real-crawl: %s' % e, file=sys.stderr)
        sys.exit(3)
    hosts = [(x, kind_of(x), int(is_linked(o.seed, x)), len(crawl.hosts[x])) for x in sorted(crawl.hosts)]
    columns = HEADER.split()
    truth, counts = mended(o.out, [dict(zip(columns, row)) for row in crawl.truth])
    tell(counts)
    write_table(o.out, 'truth.tsv', HEADER, [[row[x] for x in columns] for row in truth])
    write_table(o.out, 'hosts.tsv', 'host kind linked collections', hosts)
    write_table(o.out, 'missing.tsv', 'target package version reason', crawl.missing)
    variants = collections.Counter(row[4] for row in crawl.truth)
    print('%d records (%s), %d hosts, %d missing, %.1f MB, %.0f s' % (
        len(crawl.truth), ', '.join('%s %d' % x for x in sorted(variants.items())), len(hosts), len(crawl.missing),
        crawl.bytes / 1e6, time.time() - start))


if __name__ == '__main__':
    main()
