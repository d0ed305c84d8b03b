#!/usr/bin/env python3
"""Opens every table of a result in pandas, polars, DuckDB and PyArrow, and its JSON in jq and
Node.js, and checks that they agree.

    scripts/formats/readers.py RUN [WEBTWIN]        needs pandas, pyarrow, polars, duckdb; uses jq, node and pyspark if installed

Each reader gets the folder of a table as its documentation describes, and must return the number of
rows, the number of empty values, and the sums of all ids modulo 2^64, which shows lost digits. Exit
codes: 0 all agree, 1 they differ, 77 a package is missing.
"""

import json
import os
import shutil
import subprocess
import sys

try:
    import duckdb
    import pandas
    import polars
    import pyarrow.parquet as parquet
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

WRAP = 1 << 64


def tables(run):
    """Returns name and row count of each table from the manifest."""
    with open(os.path.join(run, "manifest.json")) as file:
        files = json.load(file)["files"]
    found = {}
    for file in files:
        name, _, rest = file["path"].partition("/part-")
        if rest:
            found[name] = found.get(name, 0) + file["rows"]
    return found


def by_pyarrow(folder):
    """Returns the true columns, and the ids among them with their sums."""
    table = parquet.read_table(folder)
    ids = [field.name for field in table.schema if str(field.type) == "uint64"]
    empty = sum(column.null_count for column in table.columns)
    return table.num_rows, empty, {name: sum(table[name].to_pylist()) % WRAP for name in ids}


def by_pandas(folder, ids):
    frame = pandas.read_parquet(folder)
    wrong = [name for name in ids if str(frame[name].dtype) != "uint64"]
    assert not wrong, f"pandas: {wrong} are {[str(frame[name].dtype) for name in wrong]}"
    return len(frame), int(frame.isna().sum().sum()), {name: sum(map(int, frame[name])) % WRAP for name in ids}


def by_polars(folder, ids):
    frame = polars.read_parquet(folder)
    assert all(frame[name].dtype == polars.UInt64 for name in ids), f"polars: {frame.schema}"
    empty = sum(frame.null_count().row(0)) if frame.width else 0
    return frame.height, empty, {name: sum(frame[name].to_list()) % WRAP for name in ids}


def by_duckdb(views, table, ids):
    columns = [column[0] for column in views.execute(f"DESCRIBE {table}").fetchall()]
    empty = " + ".join(f'count(*) - count("{column}")' for column in columns)
    sums = "".join(f', coalesce(sum("{name}"::HUGEINT), 0)' for name in ids)
    rows, empty, *sums = views.execute(f"SELECT count(*), {empty}{sums} FROM {table}").fetchall()[0]
    return rows, empty, {name: int(total) % WRAP for name, total in zip(ids, sums)}


def by_json(webtwin, run, table, ids, reader):
    """Returns the ids as a JSON reader sees them: printed again by jq or Node.js, and summed
    here."""
    shown = subprocess.run([webtwin, "show", run, table, "--json", "--limit", "0"], check=True, capture_output=True)
    if reader == "jq":
        command = ["jq", "-c", "."]
    else:
        again = "require('fs').readFileSync(0,'utf8').split('\\n').filter(x=>x)"
        command = ["node", "-e", f"for(const line of {again})console.log(JSON.stringify(JSON.parse(line)))"]
    printed = subprocess.run(command, input=shown.stdout, check=True, capture_output=True).stdout
    rows = [json.loads(line) for line in printed.splitlines()]
    empty = sum(value is None for row in rows for value in row.values())
    assert all(isinstance(row[name], str) for row in rows for name in ids), f"{reader}: an id is not a string"
    return len(rows), empty, {name: sum(int(row[name]) for row in rows) % WRAP for name in ids}


def by_spark(spark, folder, ids):
    from pyspark.sql import functions

    frame = spark.read.parquet("file://" + os.path.abspath(folder))
    sums = [functions.sum(functions.col(name).cast("decimal(38,0)")) for name in ids]
    empty = sum(frame.filter(functions.col(name).isNull()).count() for name in frame.columns)
    row = frame.agg(functions.count("*"), *sums).first()
    return row[0], empty, {name: int(total or 0) % WRAP for name, total in zip(ids, row[1:])}


def session():
    """Returns a Spark session, or None."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        return None
    return SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()


def main(run, webtwin):
    # Uses a folder that neither the result nor its views refer to.
    views = duckdb.connect()
    sql = subprocess.run([webtwin, "show", run, "--sql"], check=True, capture_output=True, text=True).stdout
    views.execute(sql)
    with open(os.path.join(run, "views.sql")) as file:
        in_folder = file.read()
    searched = duckdb.connect()
    searched.execute(f"SET file_search_path = '{os.path.abspath(run)}'")
    searched.execute(in_folder)
    spark = session()
    for name in [name for name in ("jq", "node") if not shutil.which(name)] + ([] if spark else ["pyspark"]):
        print(f"skipped: {name} is not installed")
    wrong = 0
    for table, rows in sorted(tables(run).items()):
        folder = os.path.join(run, table)
        truth = by_pyarrow(folder)
        ids = list(truth[2])
        readers = {
            "manifest": lambda: (rows, 0, truth[2]),
            "pandas": lambda: by_pandas(folder, ids),
            "polars": lambda: by_polars(folder, ids),
            "duckdb": lambda: by_duckdb(views, table, ids),
            "views.sql": lambda: by_duckdb(searched, table, ids),
        }
        for reader in filter(shutil.which, ("jq", "node")):
            readers[reader] = lambda reader=reader: by_json(webtwin, run, table, ids, reader)
        if spark:
            readers["spark"] = lambda: by_spark(spark, folder, ids)
        for reader, read in readers.items():
            try:
                seen = read()
            except Exception as error:  # Whatever a reader does not like is what this is about.
                seen = error
            if seen != truth:
                wrong += 1
                print(f"{table}: {reader} sees {seen}, PyArrow {truth}")
        print(f"{table}: {truth[0]} rows, {len(ids)} columns of ids, {truth[1]} empty values; {', '.join(readers)}")
        wrong += truth[1] > 0
    for (view,) in views.execute("SELECT view_name FROM duckdb_views() WHERE view_name LIKE '%\\_urls' ESCAPE '\\'").fetchall():
        counts = [views.execute(f"SELECT count(*) FROM {name}").fetchall() for name in (view, view.removesuffix("_urls"))]
        if counts[0] != counts[1]:
            wrong += 1
            print(f"{view} has different rows from its table: {counts}")
    return 1 if wrong else 0


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else "webtwin"))
