"""Workloads that are independent of the program, in processor seconds. They measure the current
speed of the machine."""
import os, random, resource, subprocess, sys, zlib

LINES = 1_000_000   # of what is sorted

# A process of its own runs each workload, because the peak memory of a child is at least that of
# its parent.
SCAN = '''
import time
held = bytearray(256 << 20)
held[::4096] = held[::4096]
before = time.process_time()
for _ in range(24):
    assert held.find(b"\\1") < 0
print(time.process_time() - before)
'''


def processor_seconds(command, **options):
    """Returns the processor seconds of a command, including the processes that it waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Yardsticks:
    """`gzip` decompresses a file, which is arithmetic and branches. `sort` sorts unordered lines
    with one thread, which is comparisons and random memory accesses. `scan` reads bytes
    sequentially."""

    def __init__(self, work, deadline):
        self.work, self.deadline = work, deadline

    def seconds(self, name):
        return getattr(self, name)()

    def gzip(self):
        return processor_seconds(['gzip', '-dc', self.file('words.gz', self.words)])

    def sort(self):
        environment = dict(os.environ, LC_ALL='C')
        return processor_seconds(['sort', '--parallel=1', '-S', '1G', self.file('lines.txt', self.lines)], env=environment)

    def scan(self):
        return float(subprocess.run([sys.executable, '-c', SCAN], check=True, capture_output=True, text=True).stdout)

    def file(self, name, make):
        path = os.path.join(self.work, name)
        if not os.path.exists(path):
            make(path + '.half')
            os.rename(path + '.half', path)
        return path

    def words(self, path):
        draw = random.Random(1)
        words = [''.join(draw.choices('etaoinshrdlu', k=draw.randint(2, 9))) for _ in range(5000)]
        packer = zlib.compressobj(6, zlib.DEFLATED, 31)
        with open(path, 'wb') as file:
            for _ in range(600):
                file.write(packer.compress(' '.join(draw.choices(words, k=20_000)).encode()))
            file.write(packer.flush())

    def lines(self, path):
        draw = random.Random(2)
        with open(path, 'w') as file:
            file.writelines('%016x\n' % draw.getrandbits(64) for _ in range(LINES))
