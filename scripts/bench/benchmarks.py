"""The benchmarks of the ledger: commands of the program, with the input that they need."""
import glob, json, os, shutil, subprocess, sys, tempfile

import made_crawl

FETCH = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'real-crawl', 'fetch.py')
WORKERS = '2'


class Absent(Exception):
    """The benchmark cannot run here or with this build; the message has the reason."""


class Failed(Exception):
    """The program failed; the message has its output."""


def run(command):
    """Runs a command. Returns its output, its processor seconds, and its peak memory in bytes as
    the system counts them."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        process = subprocess.Popen(command, stdout=out, stderr=error)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        printed, said = [file.seek(0) or file.read().decode(errors='replace') for file in (out, error)]
    if process.returncode == 2:
        raise Absent('not in this build: ' + said.split('\n')[0])
    if process.returncode:
        raise Failed('%s: exit code %d: %s' % (' '.join(command), process.returncode, said.strip()[-500:]))
    return printed, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def lab_of(webtwin):
    """Returns the path of the laboratory of a build, which is next to its program. In earlier
    builds one program is both."""
    lab = os.path.join(os.path.dirname(webtwin), 'webtwin-lab')
    if not os.path.exists(lab):
        return webtwin
    versions = [run([program, '--version'])[0].split(' ', 1)[1] for program in (webtwin, lab)]
    if versions[0] != versions[1]:
        raise Absent('webtwin-lab belongs to another build: ' + versions[1].strip())
    return lab


class Reproduced:
    """An entry of `webtwin-lab reproduce`. `seconds` computes the seconds from the rows by name;
    without it, those of the whole process count."""

    def __init__(self, name, entry, yardstick, times, scale, seconds=None):
        self.name, self.entry, self.yardstick, self.times, self.scale, self.of_rows = name, entry, yardstick, times, scale, seconds
        self.about = 'webtwin-lab reproduce %s --scale %d' % (entry, scale)
        self.has = {}

    def prepare(self, work):
        pass

    def measure(self, webtwin, work):
        lab = lab_of(webtwin)
        if webtwin not in self.has:
            listed = run([lab, 'reproduce', '--list'])[0]
            self.has[webtwin] = any(line.split()[:1] == [self.entry] for line in listed.splitlines())
        if not self.has[webtwin]:
            raise Absent('this build does not reproduce ' + self.entry)
        command = ['reproduce', self.entry, '--scale', str(self.scale), '--workers', WORKERS, '--work', work, '--json']
        printed, seconds, peak = run([lab, *command])
        rows = {row['what']: row for row in json.loads(printed)['rows']}
        # Entries that reset the peak report it for the measured part only.
        units = {'MB': 1e6, 'GB': 1e9}
        peaks = [row['ours'] * units[row['unit']] for what, row in rows.items() if what == 'peak memory']
        if self.of_rows:
            seconds = self.of_rows({what: row['ours'] for what, row in rows.items()})
        return seconds, max([peak, *peaks])


class Run:
    """`webtwin run` over a crawl."""

    def __init__(self, name, about, times, crawl, *settings):
        self.name, self.about, self.yardstick, self.times = name, about, 'gzip', times
        self.crawl, self.settings = crawl, settings

    def prepare(self, work):
        self.files = self.crawl(work)

    def measure(self, webtwin, work):
        output = os.path.join(work, 'out')
        shutil.rmtree(output, ignore_errors=True)
        _, seconds, peak = run([webtwin, 'run', '--workers', WORKERS, *self.files, '--output', output, *self.settings])
        shutil.rmtree(output)
        return seconds, peak


class Recrawl(Run):
    """A scheduled run after one file of the crawl has changed since the previous run."""

    def measure(self, webtwin, work):
        live, state, first, output = (os.path.join(work, name) for name in ('live', 'state', 'first', 'out'))
        for folder in live, state, first:
            shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(live)
        crawl = made_crawl.made(work)
        files = sorted(os.listdir(os.path.join(crawl, 'first')))
        lay = lambda of, name: os.link(os.path.join(crawl, of, name), os.path.join(live, name))
        for name in files:
            lay('first', name)
        self.files = ['--input', live, '--state', state]
        run([webtwin, 'run', '--workers', WORKERS, *self.files, '--output', first])
        changed = files[len(files) // 2]
        os.remove(os.path.join(live, changed))
        lay('changed', changed)
        measured = super().measure(webtwin, work)
        for folder in live, state, first:
            shutil.rmtree(folder)
        return measured


def made(work):
    """20,000 synthetic pages."""
    return ['--input', os.path.join(made_crawl.made(work), 'first')]


def real(work):
    """The slice of the real crawl from scripts/real-slice, fetched once."""
    crawl = os.path.join(work, 'slice')
    if not os.path.exists(crawl):
        half = crawl + '.half'
        shutil.rmtree(half, ignore_errors=True)
        fetched = subprocess.run([sys.executable, FETCH, '--only', 'postfix-doc,npm-cli-docs', '--singles', '50', '--out', half],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if fetched.returncode:
            raise Absent('the slice of the real crawl cannot be fetched: ' + fetched.stderr.strip()[-200:])
        os.rename(half, crawl)
    return [word for path in sorted(glob.glob(os.path.join(crawl, '*.warc.gz'))) for word in ('--input', path)]


def of_all(rows):
    """Returns the processor seconds of the measured part of an entry, without the generation of its
    input."""
    return rows['processor time of all this, by worker'] * int(WORKERS)


def at_rate(count, what):
    return lambda rows: count / 1e6 / rows[what]


BENCHMARKS = [
    Run('read-parse-20k', 'made-up pages are read and parsed, and exact copies found', 3, made, '--set', 'preset=document'),
    Run('run-20k', 'the default job on the same', 3, made),
    Recrawl('recrawl-20k', 'the same on schedule, one file of forty replaced', 3, made),
    Run('real-slice', 'the default job on the slice of the real crawl', 5, real),
    Reproduced('overlap-two-line-6m', 'bench-overlap-two-line', 'sort', 2, 6_000_000, of_all),
    Reproduced('components-6m', 'bench-components', 'sort', 3, 6_000_000, of_all),
    Reproduced('growth-3m', 'bench-growth', 'sort', 3, 3_000_000, of_all),
    Reproduced('tolerant-growth-3m', 'bench-tolerant-growth', 'sort', 3, 3_000_000, of_all),
    Reproduced('hamming-build-16m', 'bench-hamming-build', 'sort', 3, 1 << 24, at_rate(1 << 24, 'one worker, by processor time')),
    Reproduced('hamming-batch-8m', 'bench-hamming-chunk', 'gzip', 3, 1 << 23, at_rate(1 << 23, 'one core: read, join, write')),
    Reproduced('hamming-selfjoin-10m', 'bench-hamming-selfjoin', 'scan', 3, 10_000_000, lambda rows: rows['one core']),
    # A million queries, estimated from the median one.
    Reproduced('hamming-online-10m', 'bench-hamming-online', 'scan', 3, 10_000_000, lambda rows: rows['p50']),
    Reproduced('minhash-dedup-200k', 'bench-dedup', 'gzip', 2, 200_000,
               lambda rows: rows['  dedup against that, by processor time'] * rows['text'] / rows['files decoded and compressed, one core']),
    Reproduced('diff-1500k', 'bench-diff', 'sort', 3, 1_500_000, lambda rows: rows['processor time']),
]
