#!/usr/bin/env python3
"""Removes duplicates from files of many writers and encodings, and reads the results with other
programs.

    scripts/formats/corpus.py WEBTWIN   needs pyarrow; uses pandas, polars, duckdb, datasets and pyspark if installed

Each Parquet file of the result must contain the rows that are not copies, in the original types and
encodings, in every reader that opens the original. A folder with a result must be read as the
corpus only. Exit codes: 0 success, 1 differences, 77 pyarrow is missing.
"""

import json
import os
import subprocess
import sys
import tempfile

try:
    import pyarrow
    import pyarrow.dataset
    import pyarrow.parquet as parquet
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


def optional(name):
    try:
        return __import__(name)
    except ImportError:
        print(f"skipped: {name} is not installed")
        return None


pandas, polars, duckdb, datasets = map(optional, ["pandas", "polars", "duckdb", "datasets"])
ROWS = 1500


def text(number):
    """Returns a kilobyte of words that are unique to a number. Every tenth row is a copy of the
    previous one."""
    number -= number % 10 == 9
    return " ".join(f"w{number * 7919 % 1000003:06d}x{at}" for at in range(100))


def columns():
    rows = range(ROWS)
    return pyarrow.table(
        {
            "id": pyarrow.array(rows, pyarrow.int64()),
            "text": [text(row) for row in rows],
            "source": [f"site {row % 3}" for row in rows],
            "score": pyarrow.array([row / 7 for row in rows], pyarrow.float64()),
            "good": [row % 4 == 0 for row in rows],
            "day": pyarrow.array([row * 86_400_000_000 for row in rows], pyarrow.timestamp("us", "UTC")),
            "tags": [[str(row), None][: row % 3] if row % 5 else None for row in rows],
            "meta": [{"lang": "en", "n": row} if row % 6 else None for row in rows],
        }
    )


def write_all(folder):
    """Writes a file of each kind and returns their names."""
    rows = columns()
    in_dictionary = rows
    for name in ["text", "source"]:
        at = rows.schema.get_field_index(name)
        in_dictionary = in_dictionary.set_column(at, name, rows[name].dictionary_encode())
    plain = {"use_dictionary": False}
    delta = {"id": "DELTA_BINARY_PACKED", "text": "DELTA_BYTE_ARRAY", "source": "DELTA_LENGTH_BYTE_ARRAY"}
    kinds = {
        "plain-strings": (rows, {}),
        "dictionary-type": (in_dictionary, {}),
        "dictionary-type-large": (in_dictionary, {"dictionary_pagesize_limit": 64 << 20}),
        "no-dictionary": (rows, plain),
        "delta": (rows, plain | {"column_encoding": delta | {"score": "BYTE_STREAM_SPLIT"}}),
        "pages-of-version-2": (in_dictionary, {"data_page_version": "2.0"}),
        "version-1": (rows, {"version": "1.0", "compression": "gzip"}),
        "small-groups": (in_dictionary, {"row_group_size": 200, "compression": "zstd"}),
    }
    for name, (table, options) in kinds.items():
        parquet.write_table(table, f"{folder}/{name}.parquet", **options)
    if polars:
        categories = polars.from_arrow(rows).with_columns(polars.col("text", "source").cast(polars.Categorical))
        categories.write_parquet(f"{folder}/polars-categories.parquet")
        kinds["polars-categories"] = None
    if duckdb:
        for version in ["V1", "V2"]:
            duckdb.sql(f"COPY (FROM rows) TO '{folder}/duckdb-{version}.parquet' (PARQUET_VERSION {version})")
            kinds[f"duckdb-{version}"] = None
    return list(kinds)


def encodings(path):
    """Returns the encodings of the values of each column, without the version-dependent names of
    dictionaries."""
    file = parquet.ParquetFile(path).metadata
    found = []
    for leaf in range(file.num_columns):
        groups = [file.row_group(group).column(leaf) for group in range(file.num_row_groups)]
        of_leaf = {name for column in groups for name in column.encodings}
        has_dictionary = bool(of_leaf & {"PLAIN_DICTIONARY", "RLE_DICTIONARY"})
        of_leaf -= {"PLAIN_DICTIONARY", "RLE_DICTIONARY", "RLE"}
        # The page of a dictionary itself has the encoding PLAIN.
        found.append((has_dictionary, of_leaf - {"PLAIN"}))
    return found


def readers(spark):
    """Returns functions that read a file into rows, each a list of values as PyArrow returns
    them."""
    yield "pyarrow", lambda path: parquet.read_table(path)
    if pandas:
        yield "pandas", lambda path: pyarrow.Table.from_pandas(pandas.read_parquet(path), preserve_index=False)
    if polars:
        yield "polars", lambda path: polars.read_parquet(path).to_arrow()
    if duckdb:
        yield "duckdb", lambda path: duckdb.sql(f"FROM read_parquet('{path}')").to_arrow_table()
    if datasets:
        load = datasets.load_dataset
        yield "datasets", lambda path: load("parquet", data_files=path, cache_dir=path + ".cache")["train"].data.table
    if spark:
        yield "spark", lambda path: spark.read.parquet("file://" + path).toArrow()


def plain(table):
    """Returns ids and texts, and the other values as text, since readers name types differently."""
    ids = table["id"].to_pylist()
    texts = table["text"].cast(pyarrow.string()).to_pylist()
    return sorted(zip(ids, texts, table["source"].cast(pyarrow.string()).to_pylist()))


def session():
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        print("skipped: pyspark is not installed")
        return None
    return SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()


def dedup(webtwin, before, after):
    """Runs the program. Returns its messages if it failed."""
    run = subprocess.run([webtwin, "dedup", before, "--output", after], capture_output=True, text=True)
    return [run.stderr] if run.returncode else []


def of_file(webtwin, folder, name, all_readers):
    """Returns the faults of the copy of a file."""
    before, after = f"{folder}/in/{name}.parquet", f"{folder}/{name}/{name}.parquet"
    if faults := dedup(webtwin, before, f"{folder}/{name}"):
        return faults
    wanted = [row for row in range(ROWS) if row % 10 != 9]
    for reader, read in all_readers:
        try:
            original = read(before)
        except Exception:
            # A reader that fails on the original is not required to read the copy.
            continue
        try:
            copy = read(after)
            if copy.schema.remove_metadata() != original.schema.remove_metadata():
                faults.append(f"{reader}: {copy.schema} instead of {original.schema}")
            if plain(copy) != plain(original.take(wanted)):
                faults.append(f"{reader}: other rows")
        except Exception as error:
            faults.append(f"{reader}: {error}")
    if encodings(after) != encodings(before):
        faults.append(f"encodings {encodings(after)} instead of {encodings(before)}")
    return faults


def folder_readers(spark, kind):
    """Returns functions that count the rows of a folder as the readers' documentation describes,
    for Parquet or JSONL."""
    parquet_files = kind == "parquet"
    yield "pyarrow", lambda at: pyarrow.dataset.dataset(at, format="parquet" if parquet_files else "json").count_rows()
    if pandas and parquet_files:
        yield "pandas", lambda at: len(pandas.read_parquet(at))
    if polars:
        read = polars.read_parquet if parquet_files else polars.read_ndjson
        yield "polars", lambda at: read(f"{at}/**/*.{kind}").height
    if duckdb:
        yield "duckdb", lambda at: duckdb.sql(f"SELECT count(*) FROM '{at}/**/*.{kind}'").fetchall()[0][0]
    if datasets:
        yield "datasets", lambda at: datasets.load_dataset(at, cache_dir=at + ".cache")["train"].num_rows
    if spark:
        reader = spark.read.option("recursiveFileLookup", True)
        yield "spark", lambda at: (reader.parquet if parquet_files else reader.json)("file://" + at).count()


def of_folder(webtwin, folder, kind, spark):
    """Returns the faults of a corpus of several files that is read as a folder."""
    before, after = f"{folder}/{kind}-corpus", f"{folder}/{kind}-clean"
    rows = columns().select(["id", "text"])
    parts = {"a": rows.slice(0, 700), "sub/b": rows.slice(700)}
    if kind == "parquet":
        # A file of lines that loses all of them is empty, and PyArrow's JSON reader rejects empty
        # files.
        parts["sub/only-copies"] = rows.slice(0, 300)
    for name, part in parts.items():
        path = f"{before}/{name}.{kind}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if kind == "parquet":
            parquet.write_table(part, path)
        else:
            with open(path, "w") as out:
                out.writelines(json.dumps(row) + "\n" for row in part.to_pylist())
    faults = dedup(webtwin, before, after)
    wanted = ROWS * 9 // 10
    for reader, count in folder_readers(spark, kind) if not faults else []:
        try:
            if count(after) != wanted:
                faults.append(f"{reader}: {count(after)} rows instead of {wanted}")
        except Exception as error:
            faults.append(f"{reader}: {error}")
    return faults


def main(webtwin):
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        spark = session()
        all_readers = list(readers(spark))
        os.mkdir(f"{folder}/in")
        faults = {name: of_file(webtwin, folder, name, all_readers) for name in write_all(f"{folder}/in")}
        faults |= {f"a folder of {kind}": of_folder(webtwin, folder, kind, spark) for kind in ["parquet", "jsonl"]}
        for name, of_name in faults.items():
            print(f"{name}: {'; '.join(of_name) or 'unchanged'}")
            failed += bool(of_name)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
