#!/usr/bin/env python3
"""Selects manuals for a crawl by a fixed rule, so that the selection does not depend on taste.

    usage: choose.py --cache DIR > third-targets.tsv

1. Candidates are Debian packages named `*-doc` that each of SUITES has, each in a different
version.
2. Packages whose source package gave a manual or an unrelated page to an earlier crawl (USED) are
left out.
3. The others are taken in the order of the SHA-256 of their names. A package is a target if every
version has HTML pages, the version of the suite MEASURED has PAGES of them, and fewer than
OF_A_GENERATOR manuals of the same generator have been taken. The generator is the one that most
pages of MEASURED name (`generator_of`); pages that name none count as one generator.
4. The selection ends with TARGETS manuals.

The doc_root of a version is the deepest folder that contains nine tenths of its pages. Each
examined candidate and its outcome are printed to standard error.
"""
import argparse, collections, os, re, subprocess, sys

from fetch import read_table
from mirrors import draw
from packages import Packages, call, read_pages

SUITES = ['bullseye', 'bookworm', 'trixie', 'forky']
MEASURED = 'trixie'
USED = ['targets.tsv', 'second-targets.tsv', 'singles.tsv']
PAGES = range(60, 901)
OF_A_GENERATOR = 3
TARGETS = 14
AT_ONCE = 25            # candidates fetched together
META = re.compile(rb'<meta[^>]*name="?generator"?[^>]*content="([\w.-]+)|'
                  rb'<meta[^>]*content="([\w.-]+)[^>]*name="?generator', re.I)
WORDS = re.compile(rb'(?:generated|created|produced) (?:automatically )?(?:by|with|using)\s+'
                   rb'(?:<[^>]*>|the )*\s*([\w.-]+)', re.I)


def sources(apt, packages):
    """Returns package -> source package."""
    found = {}
    for stanza in call(['apt-cache', *apt.options, 'show', *packages])[0].split('\n\n'):
        fields = dict(re.findall(r'(?m)^(Package|Source): (\S+)', stanza))
        if fields:
            found.setdefault(fields['Package'], fields.get('Source', fields['Package']))
    return found


def candidates(apt):
    """Returns (package, [(suite, version)] in the order of SUITES) by rules 1 and 2, in the order
    of rule 3."""
    listed = call(['apt-cache', *apt.options, 'search', '--names-only', '--', '-doc$'])[0]
    names = [line.split()[0] for line in listed.splitlines()]
    used = [row['package'] for table in USED for row in read_table(table) if row['kind'] == 'deb']
    taken = {source for source in sources(apt, sorted(set(used))).values()} | set(used)
    source, versions = sources(apt, names), apt.versions(names)
    for name in sorted(names, key=lambda name: draw(name)):
        newest = {}
        for suite, version in versions[name]:
            newest.setdefault(suite, version)
        rows = [(suite, newest[suite]) for suite in SUITES if suite in newest]
        if len({version for _, version in rows}) == len(SUITES) and source.get(name, name) not in taken:
            yield name, rows


def root_of(pages):
    """Returns the deepest folder that contains nine tenths of the pages."""
    root = ''
    while True:
        parts = [x[len(root):].partition('/') for x in pages if x.startswith(root)]
        below = collections.Counter(folder + '/' for folder, slash, _ in parts if slash)
        folder, count = below.most_common(1)[0] if below else ('', 0)
        if count < 0.9 * len(pages):
            return root
        root += folder


def generator_of(pages):
    """Returns the first word of the generator that most pages name, in a <meta> or in their text,
    in their first or last 4 KiB."""
    said = collections.Counter()
    for data in pages.values():
        ends = data[:4096] + data[-4096:]
        meta, words = META.search(ends), WORDS.search(ends)
        name = next((x for found in (meta, words) if found for x in found.groups() if x), b'')
        said[name.decode('utf-8', 'replace').lower()] += 1
    return said.most_common(1)[0][0] or 'none said'


def licence_of(file):
    """Returns the licence that the package's copyright file names most often."""
    tar = subprocess.Popen(['dpkg-deb', '--fsys-tarfile', file], stdout=subprocess.PIPE)
    text = subprocess.run(['tar', '-xO', '--wildcards', '*/copyright'], stdin=tar.stdout, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout.decode('utf-8', 'replace')
    tar.stdout.close()
    tar.wait()
    named = collections.Counter(re.findall(r'(?m)^License:\s*(\S+)', text)).most_common(1)
    return named[0][0] if named else 'see package'


def row_of(package, suite, version, root=''):
    return dict(target=package, kind='deb', suite=suite, package=package, version=version, doc_root=root)


def judged(packages, name, versions):
    """Returns (generator, rows of the table) of a candidate, or (reason, None). Its measured
    version has been fetched already."""
    measured = next(row_of(name, *x) for x in versions if x[0] == MEASURED)
    pages, reason = read_pages(*packages.fetch([measured])[0])
    if len(pages) not in PAGES:
        return reason or '%d pages' % len(pages), None
    rows = []
    for row, file, reason in packages.fetch([row_of(name, *x) for x in versions]):
        of_version, reason = read_pages(row, file, reason)
        if not of_version:
            return '%s: %s' % (row['suite'], reason), None
        rows.append([name, 'deb', row['suite'], name, row['version'], licence_of(file), root_of(of_version)])
    return generator_of(pages), rows


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--cache', required=True, help='folder that keeps the packages')
    packages = Packages(os.path.abspath(p.parse_args().cache), 2, SUITES)
    packages.apt.update()
    left, chosen, by_generator = list(candidates(packages.apt)), 0, collections.Counter()
    print('%d candidates' % len(left), file=sys.stderr)
    print('target kind suite package version licence doc_root'.replace(' ', '\t'))
    while left and chosen < TARGETS:
        some, left = left[:AT_ONCE], left[AT_ONCE:]
        packages.fetch([row_of(name, *x) for name, versions in some for x in versions if x[0] == MEASURED])
        for name, versions in some:
            generator, rows = judged(packages, name, versions) if chosen < TARGETS else ('enough', None)
            if rows and by_generator[generator] == OF_A_GENERATOR:
                generator, rows = 'one %s too many' % generator, None
            if rows:
                by_generator[generator] += 1
                chosen += 1
                sys.stdout.writelines('\t'.join(row) + '\n' for row in rows)
            print('%-40s %s%s' % (name, 'TAKEN, ' if rows else '', generator), file=sys.stderr)


if __name__ == '__main__':
    main()
