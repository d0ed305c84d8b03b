"""Packages from their registries, fetched through the ordinary clients only, and their HTML
pages."""
import collections, glob, importlib.util, os, re, shutil, subprocess, sys, tarfile, tempfile, zlib
from multiprocessing.pool import ThreadPool

CLIENTS = {'deb': ['apt-get', 'apt-cache', 'dpkg-deb'], 'npm': ['npm'], 'pypi': []}
KEPT_AS = {'deb': '%s_%s_*.deb', 'npm': 'npm-%s-%s.tgz', 'pypi': 'pypi-%s-%s.tar.gz'}
DEBIAN = 'bullseye|bookworm|trixie|forky|duke|sid|oldstable|stable|testing|unstable'   # what a Debian machine may be


class Absent(Exception):
    """This machine lacks a client or a registry."""


def call(command, folder=None):
    """Runs a client. Returns its output, and its error message as one line for a cell of
    missing.tsv."""
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lines = done.stderr.decode('utf-8', 'replace').split('\n')
    worst_first = sorted((x for x in lines if re.match(r'[EW]:|(npm )?err', x, re.I)), key=lambda x: x.startswith('W:'))
    return done.stdout.decode('utf-8', 'replace'), ' '.join((worst_first + ['no reason given'])[0].split())


class Apt:
    """apt with a state folder of its own, which leaves the machine's state unchanged. It uses the
    machine's archive and proxies."""

    def __init__(self, folder, suites):
        self.folder, self.suites = folder, suites
        settings = {'Dir::State': folder, 'Dir::State::status': folder + '/status', 'Dir::Cache': folder + '/cache',
                    'Dir::Etc::sourcelist': folder + '/sources.list', 'Dir::Etc::sourceparts': '/dev/null',
                    'Acquire::Languages': 'none', 'Acquire::Retries': '2', 'APT::Sandbox::User': 'root'}
        self.options = ['-qq'] + ['-o%s=%s' % x for x in settings.items()]

    def has_lists(self):
        return glob.glob(glob.escape(self.folder) + '/lists/*Packages*')

    def update(self):
        listed, _ = call(['apt-get', 'indextargets', '--no-release-info', '--format',
                          '$(COMPONENT) $(RELEASE) $(REPO_URI)', 'Created-By: Packages'])
        archives = re.findall(r'(?m)^main (?:%s) (\S+)' % DEBIAN, listed)
        if not archives:
            raise Absent('apt is set up for no Debian archive on this machine')
        archive = min(archives, key=lambda x: not x.endswith('/debian/'))   # others borrow Debian's suite names
        keys = ['[signed-by=%s]' % x for x in glob.glob('/usr/share/keyrings/debian-archive-keyring.*')[:1]]
        os.makedirs(self.folder + '/lists/partial', exist_ok=True)
        open(self.folder + '/status', 'a').close()
        with open(self.folder + '/sources.list', 'w') as f:
            f.writelines(' '.join(['deb', *keys, archive, suite, 'main']) + '\n' for suite in self.suites)
        _, complaint = call(['apt-get', *self.options, 'update'])
        if not self.has_lists():
            raise Absent('apt-get update brought no package list: ' + complaint)

    def versions(self, packages):
        """Returns package -> [(suite, version)], newest first."""
        found = collections.defaultdict(list)
        for line in call(['apt-cache', *self.options, 'madison', *packages])[0].splitlines():
            package, version, where = (x.strip() for x in line.split('|'))
            if where.endswith(' Packages'):
                found[package].append((where.split()[1].split('/')[0], version))
        return found


class Packages:
    """The clients, and the folder with the fetched packages."""

    def __init__(self, folder, jobs, suites):
        self.folder, self.jobs, self.apt, self.came = folder, jobs, Apt(folder + '/apt', suites), set()

    def file(self, row):
        name = glob.escape(row['package'].replace('/', '+')), row['version'].replace(':', '%3a')
        return next(iter(glob.glob(glob.escape(self.folder) + '/' + KEPT_AS[row['kind']] % name)), None)

    def fetch(self, rows):
        """Returns (row, file or None, reason for None) for every row, in order. Suites drop old
        versions: such a row then has the current version of its suite."""
        rows = [dict(x) for x in rows]
        kinds = sorted({x['kind'] for x in rows})
        lacking = [x for kind in kinds for x in CLIENTS[kind] if not shutil.which(x)]
        lacking += ['pip'] if 'pypi' in kinds and not importlib.util.find_spec('pip') else []
        if lacking:
            raise Absent('not on this machine: ' + ', '.join(lacking))
        debs = [x for x in rows if x['kind'] == 'deb' and not self.file(x)]
        if debs:
            if not self.apt.has_lists():
                self.apt.update()
            versions = self.apt.versions(sorted({x['package'] for x in debs}))
            for x in debs:
                here = versions[x['package']]
                if x['version'] not in [v for _, v in here]:
                    x['version'] = next((v for suite, v in here if suite == x['suite']), x['version'])
            # A version that no suite has would make apt refuse the whole batch.
            debs = [x for x in debs if x['version'] in [v for _, v in versions[x['package']]] and not self.file(x)]
        loads = [debs[i:i + 25] for i in range(0, len(debs), 25)]
        loads += [[x] for x in rows if x['kind'] != 'deb' and not self.file(x)]
        with ThreadPool(self.jobs) as threads:
            complaints = threads.map(self.bring, loads)
        reason = {id(x): complaint for load, complaint in zip(loads, complaints) for x in load}
        fetched = [(x, self.file(x), reason.get(id(x), 'in none of the suites')) for x in rows]
        self.came.update(x['kind'] for x, file, _ in fetched if file)
        for x, _, why in fetched:
            if x['kind'] not in self.came:
                raise Absent('no %s package came at all; %s: %s' % (x['kind'], x['package'], why))
        return fetched

    def bring(self, load):
        """Fetches a batch of packages by one client. Each package appears in the folder completely
        or not at all."""
        kind, package, version = load[0]['kind'], load[0]['package'], load[0]['version']
        command = {
            'deb': ['apt-get', *self.apt.options, 'download', *[x['package'] + '=' + x['version'] for x in load]],
            'npm': ['npm', 'pack', '--loglevel=error', '--fetch-retries=1', '--fetch-retry-mintimeout=1000',
                    package + '@' + version],
            'pypi': [sys.executable, '-m', 'pip', '--disable-pip-version-check', 'download', '--quiet', '--no-deps',
                     '--no-binary', package, package + '==' + version]}[kind]
        with tempfile.TemporaryDirectory(dir=self.folder) as tmp:
            _, complaint = call(command, tmp)
            for name in os.listdir(tmp):
                kept = name if kind == 'deb' else KEPT_AS[kind] % (package.replace('/', '+'), version)
                os.replace(tmp + '/' + name, self.folder + '/' + kept)
        return complaint


def read_pages(row, file, reason):
    """Returns page -> bytes of the HTML files below the row's doc_root (* is any one folder), and
    the reason if there are none. The archive is read as a stream and not unpacked to disk."""
    if not file:
        return {}, reason
    pages, below = {}, re.compile(re.escape(row.get('doc_root', '')).replace(r'\*', '[^/]*'))
    unpack = file.endswith('.deb') and subprocess.Popen(['dpkg-deb', '--fsys-tarfile', file], stdout=subprocess.PIPE)
    try:
        with (unpack.stdout if unpack else open(file, 'rb')) as stream, tarfile.open(fileobj=stream, mode='r|*') as tar:
            for member in tar:
                name = member.name[2:] if member.name.startswith('./') else member.name
                start = below.match(name)
                if start and member.isfile() and member.size and re.search(r'\.x?html?$', name, re.I):
                    page = name[start.end():].encode('utf-8', 'surrogateescape').decode('utf-8', 'replace')
                    pages[page] = tar.extractfile(member).read()
    except (tarfile.TarError, EOFError, OSError, zlib.error) as e:
        return {}, 'the package does not unpack: %s' % e
    finally:
        if unpack:
            unpack.wait()
    return pages, '' if pages else 'no page below the doc root'
