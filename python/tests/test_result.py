"""Tests of the Python package: python3 -m unittest discover python/tests

PYTHONPATH is the folder of the package, unless it is installed. WEBTWIN is the program, by default
`webtwin`. Tests that need a missing program, pandas, polars or pyarrow are skipped with a message.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import webtwin

PROGRAM = os.environ.get("WEBTWIN") or shutil.which("webtwin")


def needs(*modules):
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


class OfTheProgram(unittest.TestCase):
    """A run of the program, read back. Expected values come from the program's own `show`."""

    @classmethod
    def setUpClass(cls):
        if PROGRAM is None:
            raise unittest.SkipTest("no webtwin on the PATH, and WEBTWIN is not set")
        # A folder name that a reader could interpret as a pattern and as a partition.
        cls.folder = tempfile.TemporaryDirectory(prefix="a=1[b]")
        cls.addClassCleanup(cls.folder.cleanup)
        out = Path(cls.folder.name) / "out"
        arguments = ["run", "--input", "synth://?pages=400&seed=5", "--output", out]
        subprocess.run([PROGRAM, *arguments], check=True, capture_output=True)
        cls.run_ = webtwin.open(out)

    def shown(self, table):
        command = [PROGRAM, "show", self.run_.folder, table, "--json", "--limit", "0"]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        return [json.loads(line) for line in lines]

    def test_all_tables_are_there_by_name_and_as_attributes(self):
        names = {"pages", "links", "pairs", "clusters", "collections", "members", "avoid", "hosts", "rejected"}
        self.assertLessEqual(names, set(self.run_.tables))
        for name, table in self.run_.tables.items():
            self.assertIs(getattr(self.run_, name), table)
            self.assertIs(self.run_[name], table)
            self.assertIn(name, dir(self.run_))
            self.assertEqual(len(table), len(self.shown(name)), name)
        self.assertEqual(self.run_.summary, json.loads((self.run_.folder / "summary.json").read_text()))

    @needs("pandas", "pyarrow")
    def test_pandas_sees_what_show_prints(self):
        for name, table in self.run_.tables.items():
            self.same(name, table.to_pandas().to_dict("records"))
        self.assertEqual(list(self.run_.pages.to_pandas(["url", "host"]).columns), ["url", "host"])
        self.assertEqual(str(self.run_.pages.to_pandas().doc_id.dtype), "uint64")

    @needs("polars")
    def test_polars_sees_what_show_prints(self):
        for name, table in self.run_.tables.items():
            self.same(name, table.to_polars().to_dicts())
        self.assertEqual(self.run_.pages.to_polars(["url", "host"]).columns, ["url", "host"])

    @needs("pyarrow")
    def test_arrow_sees_what_show_prints(self):
        for name, table in self.run_.tables.items():
            self.same(name, table.to_arrow().to_pylist())
        self.assertEqual(self.run_.pages.to_arrow(["url", "host"]).column_names, ["url", "host"])

    def same(self, name, rows):
        """Rows equal those of `show --json` in order. Ids are strings there, and other values are
        equal."""
        shown = self.shown(name)
        self.assertEqual(len(rows), len(shown), name)
        for row, told in zip(rows, shown):
            self.assertLessEqual(set(row), set(told), name)
            for column, value in row.items():
                if isinstance(told[column], str) and not isinstance(value, str) and hasattr(value, "__index__"):
                    value = str(value)
                if not hasattr(value, "isoformat"):
                    self.assertEqual(value, told[column], (name, column))


class OfFolders(unittest.TestCase):
    """Folders made by hand, without the program."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def manifest(self, *files, **changes):
        entries = [{"path": path, "rows": rows, "bytes": size, "xxh3": ""} for path, rows, size in files]
        text = json.dumps({"format": 1, "files": entries, **changes})
        (self.folder / "manifest.json").write_text(text)

    def refused(self, word):
        with self.assertRaisesRegex(webtwin.ResultError, word):
            webtwin.open(self.folder)

    def test_a_folder_without_a_whole_manifest_of_this_format_is_refused(self):
        self.refused("did not finish")
        (self.folder / "manifest.json").write_text('{"format": 1, "fi')
        self.refused("not readable")
        (self.folder / "manifest.json").write_text("[]")
        self.refused("format None")
        self.manifest(format=2)
        self.refused("format 2")

    def test_a_manifest_that_names_files_elsewhere_is_refused(self):
        for path in ("/etc/passwd", "../pages/part-00000.parquet", "pages/../../x"):
            self.manifest((path, 1, 1))
            self.refused("outside")

    def test_files_that_are_gone_or_cut_are_told(self):
        self.manifest(("pages/part-00000.parquet", 3, 9), ("summary.json", None, 9))
        run = webtwin.open(self.folder)
        with self.assertRaisesRegex(webtwin.ResultError, "missing"):
            run.pages.files
        (self.folder / "summary.json").write_text("{}")
        with self.assertRaisesRegex(webtwin.ResultError, "has 2 bytes"):
            run.summary

    def test_parts_are_in_order_and_other_files_are_no_tables(self):
        parts = [("pages/part-00001.parquet", 2, 0), ("pages/part-00000.parquet", 3, 0)]
        self.manifest(*parts, ("exports/urls.txt", None, 0))
        (self.folder / "pages").mkdir()
        for path, _, _ in parts:
            (self.folder / path).touch()
        (self.folder / "pages/part-00002.parquet").touch()
        run = webtwin.open(self.folder)
        self.assertEqual([file.name for file in run.pages.files], ["part-00000.parquet", "part-00001.parquet"])
        self.assertEqual((list(run.tables), len(run.pages)), (["pages"], 5))
        with self.assertRaisesRegex(AttributeError, "no table 'links'; the tables are pages"):
            run.links
        with self.assertRaisesRegex(webtwin.ResultError, "no summary"):
            run.summary

    @needs("pandas", "polars", "pyarrow")
    def test_rows_of_all_parts_come_in_order(self):
        import pyarrow
        from pyarrow import parquet

        (self.folder / "pages").mkdir()
        parts = []
        for number, ids in enumerate([[1, 2], [3, 2**64 - 1]]):
            path = f"pages/part-{number:05}.parquet"
            parquet.write_table(pyarrow.table({"doc_id": pyarrow.array(ids, pyarrow.uint64())}), self.folder / path)
            parts.append((path, len(ids), (self.folder / path).stat().st_size))
        self.manifest(*parts)
        pages = webtwin.open(self.folder).pages
        for table in (pages.to_pandas(), pages.to_polars(), pages.to_arrow()):
            self.assertEqual([int(str(one)) for one in table["doc_id"]], [1, 2, 3, 2**64 - 1])


if __name__ == "__main__":
    unittest.main()
