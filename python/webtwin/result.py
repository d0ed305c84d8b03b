"""A finished run: its manifest, its summary, and its tables."""

import json
import os
from pathlib import Path, PurePosixPath

#: Format of `manifest.json` that this module reads.
FORMAT = 1


class ResultError(ValueError):
    """A folder is not a result, or its files differ from those that the run wrote."""


def open_result(folder):
    """Opens the result in a local folder.

    Reads `manifest.json`, but no table. Raises `ResultError` if there is no manifest, as before the
    end of a run, or if its format is not supported.
    """
    return Result(folder)


class Result:
    """A finished run.

    folder the location as a `pathlib.Path`
    manifest contents of `manifest.json`: the job, the build, counts, seconds, and every file
    tables the tables by name, sorted; each of them is also an attribute: `run.pages`
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        self.manifest = _manifest(self.folder)
        parts = {}
        for entry in self.manifest["files"]:
            name, slash, _ = entry["path"].removeprefix("_webtwin/").partition("/part-")
            if slash and entry["rows"] is not None:
                parts.setdefault(name, []).append(entry)
        self.tables = {name: Table(name, self.folder, parts[name]) for name in sorted(parts)}

    @property
    def summary(self):
        """Contents of `summary.json` as a new dictionary; `ResultError` if the run wrote none."""
        for entry in self.manifest["files"]:
            if entry["path"] in ("summary.json", "_webtwin/summary"):
                return json.loads(_checked(self.folder, entry).read_text("utf-8"))
        raise ResultError(f"{self.folder}: this result has no summary.json")

    def __getitem__(self, name):
        return self.tables[name]

    def __getattr__(self, name):
        # Called only for names that are not attributes otherwise; not while the tables are still
        # unknown.
        tables = self.__dict__.get("tables", {})
        if name in tables:
            return tables[name]
        raise AttributeError(f"no table {name!r}; the tables are {', '.join(tables) or 'none'}")

    def __dir__(self):
        return [*super().__dir__(), *self.tables]

    def __repr__(self):
        return f"<webtwin result {os.fspath(self.folder)!r}: {', '.join(self.tables)}>"


class Table:
    """A table of a result: Parquet files in order, whose rows are sorted across all files.

    name name as in docs/tables.md
    rows number of rows
    files the Parquet files in order, each a `pathlib.Path`

    Each reader takes a list of columns, or none for all, and loads the whole table into memory. Ids
    remain unsigned 64-bit numbers. A file that is missing or has another length than the run wrote
    is a `ResultError`.
    """

    def __init__(self, name, folder, entries):
        self.name = name
        self.rows = sum(entry["rows"] for entry in entries)
        self._folder = folder
        self._entries = sorted(entries, key=lambda entry: entry["path"])

    @property
    def files(self):
        return [_checked(self._folder, entry) for entry in self._entries]

    def to_arrow(self, columns=None):
        """Returns the table as a `pyarrow.Table`."""
        pyarrow = _needs("pyarrow", "pyarrow")
        parquet = _needs("pyarrow.parquet", "pyarrow")
        # Reads file by file and without partitions, because the name of a folder must not be
        # interpreted as a partition.
        read = [parquet.ParquetFile(file).read(columns=columns) for file in self.files]
        return pyarrow.concat_tables(read)

    def to_pandas(self, columns=None):
        """Returns the table as a `pandas.DataFrame`."""
        _needs("pandas", "pandas")
        return self.to_arrow(columns).to_pandas()

    def to_polars(self, columns=None):
        """Returns the table as a `polars.DataFrame`."""
        polars = _needs("polars", "polars")
        read = [polars.read_parquet(file, columns=columns, glob=False, hive_partitioning=False) for file in self.files]
        return polars.concat(read)

    def __len__(self):
        return self.rows

    def __repr__(self):
        return f"<{self.name}: {self.rows} rows>"


def _manifest(folder):
    path = folder / "manifest.json"
    of_corpus = folder / "_webtwin" / "manifest"
    if of_corpus.exists():
        path = of_corpus
    try:
        manifest = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ResultError(
            f"{folder}: no manifest.json: this is not a result, or the run that wrote it did not finish; "
            "name the folder of a finished result"
        ) from None
    except ValueError as cause:
        raise ResultError(f"{path}: not readable: {cause}") from cause
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        found = manifest.get("format") if isinstance(manifest, dict) else None
        raise ResultError(f"{path}: written in format {found}, but this package reads format {FORMAT}")
    for entry in manifest["files"]:
        inner = PurePosixPath(entry["path"])
        if inner.is_absolute() or ".." in inner.parts:
            raise ResultError(f"{path}: names {entry['path']}, which is outside of its folder")
    return manifest


def _checked(folder, entry):
    """Returns the path of a file of the manifest, which must exist with its length."""
    path = folder / entry["path"]
    try:
        found = path.stat().st_size
    except FileNotFoundError:
        raise ResultError(f"{path}: missing, though manifest.json names it") from None
    if found != entry["bytes"]:
        raise ResultError(f"{path}: has {found} bytes, manifest.json says {entry['bytes']}")
    return path


def _needs(module, extra):
    try:
        return __import__(module, fromlist=["_"])
    except ImportError as cause:
        raise ImportError(f"{cause}: pip install 'webtwin[{extra}]'") from cause
