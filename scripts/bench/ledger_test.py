"""Tests of the ledger's comparisons, and of benchmarks that a build lacks: python3 -m unittest
ledger_test.py"""
import importlib.machinery, importlib.util, os, tempfile, unittest
from unittest import mock

from benchmarks import Absent, Failed

loader = importlib.machinery.SourceFileLoader('ledger', os.path.join(os.path.dirname(os.path.abspath(__file__)), 'ledger'))
ledger = importlib.util.module_from_spec(importlib.util.spec_from_loader('ledger', loader))
loader.exec_module(ledger)


def row(ratio, peak, benchmark='x', machine='here', build='old'):
    return dict(dict.fromkeys(ledger.COLUMNS, '1'), benchmark=benchmark, machine=machine, build=build, ratio=str(ratio), peak_mb=str(peak))


class Yardsticks:
    deadline = float('inf')

    def __init__(self, seconds=(1.0,)):
        self.of = list(seconds)

    def seconds(self, name):
        return self.of.pop(0) if len(self.of) > 1 else self.of[0]


class Made:
    """A benchmark whose runs return these figures for each build, or raise them."""

    name, yardstick, times = 'x', 'sort', 2

    def __init__(self, **of):
        self.of = {build: list(figures) for build, figures in of.items()}

    def measure(self, webtwin, work):
        figure = self.of[webtwin].pop(0)
        if isinstance(figure, Exception):
            raise figure
        return figure


class LedgerTest(unittest.TestCase):
    def setUp(self):
        mock.patch.object(ledger, 'machine', lambda: 'here').start()
        mock.patch.object(ledger, 'tell', lambda *words: None).start()
        self.addCleanup(mock.patch.stopall)

    def measured(self, benchmark, before, yardsticks=None, builds=('new',)):
        return ledger.measured(benchmark, {build: build for build in builds}, '', yardsticks or Yardsticks(), before)

    def test_the_best_row_is_the_least_of_this_machine_and_of_others_only_without_such(self):
        rows = [row(3, 50), row(2, 70), row(1, 10, machine='there'), row(0.5, 1, benchmark='y')]
        self.assertEqual(ledger.best(rows, 'x', 'here'), {'ratio': 2, 'peak_mb': 50})
        self.assertEqual(ledger.best(rows, 'x', 'elsewhere'), {'ratio': 1, 'peak_mb': 10})
        self.assertIsNone(ledger.best(rows, 'z', 'here'))

    def test_a_tenth_more_of_time_or_memory_is_worse(self):
        best = {'ratio': 2.0, 'peak_mb': 100.0}
        self.assertEqual(ledger.worse(row(2.19, 109), best), [])
        self.assertEqual(len(ledger.worse(row(2.21, 109), best)), 1)
        self.assertEqual(len(ledger.worse(row(2.21, 111), best)), 2)
        self.assertEqual(ledger.worse(row(9, 9), None), [])

    def test_the_least_of_the_runs_counts_against_the_least_of_the_yardstick(self):
        benchmark = Made(new=[(8.0, 3e6), (6.0, 4e6)])
        rows, found, failed = self.measured(benchmark, [], Yardsticks([3.0, 4.0, 2.0, 5.0]))
        self.assertEqual([(of['ratio'], of['seconds'], of['yardstick_seconds'], of['peak_mb'], of['runs']) for of in rows],
                         [('3', '6', '2', '3', 2)])
        self.assertEqual((found, failed), ([], False))

    def test_what_is_worse_is_measured_again_and_only_then_told(self):
        before = [row(5, 10)]
        once = Made(new=[(7.0, 1e6), (7.0, 1e6), (5.2, 1e6), (7.0, 1e6)])
        rows, found, _ = self.measured(once, before)
        self.assertEqual((found, rows[0]['runs']), ([], 4))
        always = Made(new=[(7.0, 1e6)] * 6)
        rows, found, _ = self.measured(always, before)
        self.assertEqual((found, rows[0]['runs']), (['its time is 7 where the best is 5.0'], 6))

    def test_the_first_of_two_builds_is_judged_by_the_other_too(self):
        benchmark = Made(new=[(7.0, 1e6)] * 6, old=[(5.0, 1e6)] * 6)
        rows, found, _ = self.measured(benchmark, [], builds=('new', 'old'))
        self.assertEqual((len(rows), len(found)), (2, 1))

    def test_a_build_that_lacks_a_benchmark_is_passed_over_and_one_that_fails_is_not(self):
        for error, has_failed in (Absent(''), False), (Failed(''), True):
            benchmark = Made(new=[(7.0, 1e6)] * 2, old=[error])
            rows, found, failed = self.measured(benchmark, [], builds=('new', 'old'))
            self.assertEqual(([of['build'] for of in rows], found, failed), (['new'], [], has_failed))

    def test_rows_that_are_appended_are_read_again_but_for_those_commented_out(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'ledger.tsv')
            self.assertEqual(ledger.rows_of(path), [])
            for ratio in 1, 2:
                ledger.append(path, row(ratio, 3))
            self.assertEqual(ledger.rows_of(path), [row(1, 3), row(2, 3)])
            with open(path) as file:
                lines = file.read().splitlines()
            with open(path, 'w') as file:
                file.write('\n'.join([lines[0], '# ' + lines[1], lines[2]]) + '\n')
            self.assertEqual(ledger.rows_of(path), [row(2, 3)])


if __name__ == '__main__':
    unittest.main()
