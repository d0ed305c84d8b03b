#!/usr/bin/env python3
"""Determines which pages of a crawl are one page in several versions: the rules for `page`,
`perhaps` and `origin` of truth.tsv.

usage: names.py CRAWL > truth.tsv

CRAWL is a folder written by fetch.py. Its truth.tsv may have been written before or after these
rules. The rules do not name any manual: each one applies to all manuals, and uses the pages of the
packages before mirrors were made.

A page is identified by its *path* below the root of its version. Its *title* is that of the page,
or its first heading, without a section number at the beginning, and without the parts that more
than PART_OF_A_FRAME of the version's pages have. A title is *telling* if exactly one page of the
version has it. For two versions of a manual:

1. A path is *contradicted* if its page's telling title is, in the other version, the telling title of another path.
2. Paths that differ in numbers or hashes only (`ch01s02.html`, `a01426.html`) are a *series*. Its
names are *renumbered* if at least ANEW of the common paths that titles decide are contradicted.
3. Pages with the same path are one page unless the path is contradicted or renumbered.
4. All other pages, including those without such a path in the other version, are one page if both
have the same telling title,
5. or else if they have the same bytes, and no second page of either version has these bytes.
6. A folder has *moved* to another if most of its pages that only one version has, and at least
FOLDER pages, have a counterpart of the other version in the other folder, with the same title and
the same path from there. Then equal paths from there are one page.
7. A page that rules 1 and 2 have separated, and rules 4 to 6 have not joined again, is open: it may
be the page of its path, or not.
8. Two folders of one version, or of two manuals in one package, are *twins* if most pages of one
folder, and at least FOLDER pages, have a counterpart in the other with the same title and the same
path from there. Such pages may be one page or two, unless they name different languages.

`page` is the name of a page in all versions: its path in the newest version that has it. Versions
are named from the newest on, each by the nearest newer one that has the page. `perhaps` has words
for the open cases of rules 7 and 8: two pages with a common word are neither copies nor different
pages. `origin` identifies the bytes from which the page was made, before a mirror changed them:
pages of one origin are not a false pair, nor is a page with a copy of one. `path` is the path in
the version.

Printed to standard error: the number of pages of real versions that each rule names, by manual,
unless the name is their path; `renumbered` counts those that only have their path, which is another
page's name. Then the numbers of `open` pages and of those with a `twin`.
"""
import collections, csv, glob, gzip, hashlib, html, itertools, multiprocessing, os, posixpath, re, sys, urllib.parse

PART_OF_A_FRAME = 0.3
ANEW = 0.1
FOLDER = 3
TITLE = re.compile(rb'<title[^>]*>(.*?)</title', re.I | re.S)
HEADING = re.compile(rb'<h1[^>]*>(.*?)</h1', re.I | re.S)
SECTION = re.compile(r'^\d+(\.\d+)*\.?\s+')
BETWEEN_PARTS = re.compile(r'\s+[-–—|»«·•:]+\s+|:\s+')
NUMBER = re.compile(r'[0-9a-f]{8,}|\d+')
LANGUAGE = re.compile(rb'<html[^>]*?\blang\s*=\s*["\']?([a-z]+)', re.I)
Page = collections.namedtuple('Page', 'origin title language')
HEADER = 'url target version page variant linked source path origin perhaps'


def responses(file):
    """Yields (URL, body) of each response of a WARC file of fetch.py."""
    with gzip.open(file, 'rb') as stream:
        for line in stream:
            if not line.startswith(b'WARC/'):
                continue
            head = dict(x.rstrip(b'\r\n').split(b': ', 1) for x in iter(stream.readline, b'\r\n'))
            block = stream.read(int(head[b'Content-Length']))
            if head[b'WARC-Type'] == b'response':
                yield head[b'WARC-Target-URI'].decode(), block.split(b'\r\n\r\n', 1)[1]


def page_of(data):
    """The properties of a page: a digest of its bytes, its title with all its parts, and the
    language that it names."""
    for pattern in TITLE, HEADING:
        found = pattern.search(data)
        words = html.unescape(re.sub('<[^>]*>', '', found[1].decode('utf-8', 'replace'))).split() if found else []
        if words:
            break
    language = LANGUAGE.search(data)
    return Page(hashlib.sha256(data).hexdigest()[:16], SECTION.sub('', ' '.join(words)),
                language[1].decode().lower() if language else '')


def pages_of(file):
    return {url: page_of(data) for url, data in responses(file)}


def without_frame(pages):
    """Returns path -> page of one version. Titles lose the parts that many of its pages have."""
    parts = {path: BETWEEN_PARTS.split(page.title) for path, page in pages.items()}
    having = collections.Counter(part for of_page in parts.values() for part in set(of_page))
    most = max(1, PART_OF_A_FRAME * len(pages))
    return {path: pages[path]._replace(title=' | '.join(x for x in of_page if having[x] <= most))
            for path, of_page in parts.items()}


def telling(pages, what):
    """Returns property -> path for properties that only one page has; `what` is 'title' or
    'origin'."""
    paths = collections.defaultdict(list)
    for path, page in pages.items():
        paths[getattr(page, what)].append(path)
    return {key: found[0] for key, found in paths.items() if key and len(found) == 1}


def series_of(path):
    return NUMBER.sub('#', path)


def elsewhere(old, new, titles_old, titles_new):
    """Returns the paths of both versions that are contradicted (rule 1)."""
    def gone(path, page, titles, others):
        return titles.get(page.title) == path and others.get(page.title, path) != path
    return {path for path in old.keys() & new.keys() if gone(path, old[path], titles_old, titles_new)
            or gone(path, new[path], titles_new, titles_old)}


def numbered_anew(old, new, titles_old, contradicted):
    """Returns the series whose names are renumbered (rule 2)."""
    for_it, against = collections.Counter(), collections.Counter()
    for path in old.keys() & new.keys():
        if path in contradicted:
            against[series_of(path)] += 1
        elif old[path].title == new[path].title and titles_old.get(old[path].title) == path:
            for_it[series_of(path)] += 1
    return {x for x, n in against.items() if '#' in x and n >= ANEW * (n + for_it[x])}


def folders_above(path):
    """Yields the folders that contain a page, from its own to the root, which is ''; each but the
    root ends with a slash."""
    return [path[:n + 1] for n in range(len(path) - 1, -1, -1) if path[n] == '/'] + ['']


def like_folders(old, new):
    """Returns folder of old -> the folders of new in which most of its pages have a counterpart
    with the same title and the same path from there, the most similar first. Pages with the same
    path do not count."""
    places = collections.defaultdict(list)
    for path, page in new.items():
        places[posixpath.basename(path), page.title].append(path)
    within, votes = collections.Counter(), collections.defaultdict(collections.Counter)
    for path, page in old.items():
        above = folders_above(path)
        within.update(above)
        for to in places[posixpath.basename(path), page.title] if page.title else []:
            for x in above if to != path else []:
                if ('/' + to).endswith('/' + path[len(x):]):
                    votes[x][to[:len(to) - len(path) + len(x)]] += 1
    # Among folders with equally many pages, such as editions with equal titles, the more similar
    # path comes first.
    ranked = {folder: sorted(to.items(), key=lambda x: (-x[1], -len(os.path.commonprefix([folder, x[0]])), x[0]))
              for folder, to in votes.items()}
    return {folder: [x for x, n in to if n >= FOLDER and 2 * n > within[folder]] for folder, to in ranked.items()}


def in_like_folders(folders, pages):
    """Yields (path, its path in a similar folder) for each folder above it that has one."""
    return [(path, to + path[len(x):]) for path in sorted(pages) for x in folders_above(path) for to in folders.get(x, [])]


def twins(one, other):
    """Yields pairs of paths that may be one page (rule 8). one and other may be the same
    version."""
    found = {(a, b) for a, b in in_like_folders(like_folders(one, other), one) if b in other}
    found |= {(a, b) for b, a in in_like_folders(like_folders(other, one), other) if a in one}
    for a, b in found:
        languages = {one[a].language, other[b].language} - {''}
        if one[a].title == other[b].title and len(languages) < 2:
            yield a, b


def same_pages(old, new):
    """Returns (path in old -> (path in new, rule), the open paths of both)."""
    titles_old, titles_new = telling(old, 'title'), telling(new, 'title')
    contradicted = elsewhere(old, new, titles_old, titles_new)
    anew = numbered_anew(old, new, titles_old, contradicted)
    both = old.keys() & new.keys()
    open_paths = contradicted | {path for path in both if series_of(path) in anew}
    same = {path: (path, 'path') for path in both - open_paths}
    free_old = {path: page for path, page in old.items() if path not in same}
    free_new = {path: page for path, page in new.items() if path not in same}

    def give(pairs, rule):
        for path, to in pairs:
            if path in free_old and to in free_new:
                same[path] = to, rule
                del free_old[path], free_new[to]

    give(((path, titles_new.get(title)) for title, path in titles_old.items()), 'title')
    bytes_new = telling(new, 'origin')
    give(((path, bytes_new.get(origin)) for origin, path in telling(old, 'origin').items()), 'bytes')
    folders = like_folders({p: old[p] for p in old.keys() - new.keys()}, {p: new[p] for p in new.keys() - old.keys()})
    give(in_like_folders({folder: to[:1] for folder, to in folders.items()}, free_old), 'folder')
    return same, open_paths & free_old.keys() | open_paths & free_new.keys()


def named(versions):
    """From a manual's versions, newest first (each path -> page), returns for each path -> (name,
    rule), and the open paths of all."""
    names, open_paths, used = [], set(), set()
    for number, pages in enumerate(versions):
        found, taken = {}, set()
        for newer in reversed(range(number)):
            if len(found) == len(pages):
                break
            same, doubtful = same_pages(pages, versions[newer])
            for path, (to, rule) in same.items():
                name = names[newer][to][0]
                if path not in found and name not in taken and not (rule == 'path' and path in open_paths):
                    found[path] = name, rule
                    taken.add(name)
            open_paths |= {path for path in doubtful if path not in found}
        for path in sorted(pages.keys() - found.keys()):
            name = path if path not in used | taken else '%s (%d)' % (path, number + 1)
            found[path] = name, 'renumbered'
            taken.add(name)
        used |= taken
        names.append(found)
    return names, open_paths


def of_manual(versions):
    """Returns version -> path -> (name, rule), and the open paths of a manual given as version ->
    path -> page, newest first."""
    names, open_paths = named(list(versions.values()))
    return dict(zip(versions, names)), open_paths


def all_twins(manuals, names, package):
    """Returns (manual, name) -> a common word of all pages that may be one page by rule 8."""
    like = {}

    def first(name):
        while like.get(name, name) != name:
            name = like[name]
        return name

    for one, other in itertools.combinations_with_replacement(manuals, 2):
        if one != other and package[one] != package[other]:
            continue
        for v, w in itertools.product(manuals[one], manuals[other]):
            for a, b in twins(manuals[one][v], manuals[other][w]) if one != other or v == w else ():
                a, b = sorted((first((one, names[one][0][v][a][0])), first((other, names[other][0][w][b][0]))))
                like[b] = a
                like.setdefault(a, a)
    return {name: word('twin', *first(name)) for name in like}


def version_of(row):
    """Returns the manual and version of a row's page. A manual may be in one package for each
    processor, all of one version."""
    return row['version'], row['source']


def word(*parts):
    """Returns one word without blanks for some names."""
    return urllib.parse.quote(':'.join(parts))


def mended(folder, rows):
    """Returns the rows of truth.tsv (dicts) with `page`, `path`, `origin` and `perhaps` by the
    rules, in order; and the number of pages of real versions by (target, rule)."""
    pages = {}
    with multiprocessing.Pool() as pool:
        for found in pool.imap(pages_of, sorted(glob.glob(glob.escape(folder) + '/crawl-*.warc.gz'))):
            pages.update(found)
        manuals, package = collections.defaultdict(dict), {}
        for row in rows:
            row.setdefault('path', row['page'])
            if row['variant'] == 'real':
                manuals[row['target']].setdefault(version_of(row), {})[row['path']] = pages[row['url']]
                package[row['target']] = row['source'].split(':')[::2]
        manuals = {target: {version: without_frame(x) for version, x in versions.items()}
                   for target, versions in manuals.items()}
        names = dict(zip(manuals, pool.imap(of_manual, manuals.values())))
    twin, counts = all_twins(manuals, names, package), collections.Counter()
    for row in rows:
        row['origin'], row['perhaps'] = pages[row['url']].origin, ''
        target, version, path = row['target'], version_of(row), row['path']
        if target not in names:
            continue
        of_version, open_paths = names[target]
        row['origin'] = manuals[target][version][path].origin
        row['page'], rule = of_version[version][path]
        open_words = [word('path', target, path)] if path in open_paths else []
        twin_words = [twin[target, row['page']]] if (target, row['page']) in twin else []
        row['perhaps'] = ' '.join(open_words + twin_words)
        if row['variant'] == 'real':
            counts[target, rule if row['page'] != path else 'path'] += 1
            counts[target, 'open'] += len(open_words)
            counts[target, 'twin'] += len(twin_words)
    return rows, counts


def main():
    with open(os.path.join(sys.argv[1], 'truth.tsv'), encoding='utf-8', newline='') as file:
        rows = list(csv.DictReader(file, delimiter='\t', quoting=csv.QUOTE_NONE))
    rows, counts = mended(sys.argv[1], rows)
    columns = HEADER.split()
    sys.stdout.writelines('\t'.join(x) + '\n' for x in [columns, *([str(row[c]) for c in columns] for row in rows)])
    tell(counts)


def tell(counts):
    """Prints the number of pages of real versions that each rule names, by manual."""
    rules = ['title', 'bytes', 'folder', 'renumbered', 'open', 'twin']
    for target in dict.fromkeys(target for target, _ in counts):
        if any(counts[target, rule] for rule in rules):
            print(target, *('%s %d' % (rule, counts[target, rule]) for rule in rules), file=sys.stderr)
    total = {rule: sum(n for (_, of), n in counts.items() if of == rule) for rule in ['path', *rules]}
    print('all', *('%s %d' % x for x in total.items()), file=sys.stderr)


if __name__ == '__main__':
    main()
