#!/usr/bin/env python3
"""All-pairs overlap as a self-join in DuckDB, for comparison with webtwin on the same table.

    pip install duckdb numpy
    duckdb_overlap.py TUPLES.bin THRESHOLD [THREADS]

TUPLES.bin has 8 bytes per row: fingerprint and document with 4 bytes each, little endian. It is
first converted to Parquet, which is not part of the time. Prints one JSON object: seconds, peak
memory, pairs, and the checksum that webtwin also prints.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time


def to_parquet(tuples, parquet):
    """Converts in a process of its own, so that its memory is not counted."""
    import duckdb
    import numpy

    rows = numpy.fromfile(tuples, dtype=[("fp", "<u4"), ("doc", "<u4")])
    columns = {"fp": numpy.ascontiguousarray(rows["fp"]), "doc": numpy.ascontiguousarray(rows["doc"])}
    duckdb.sql(f"copy (select * from columns) to '{parquet}' (format parquet, compression zstd)")


def self_join(parquet, threshold, threads, folder):
    import duckdb

    began = time.time()
    db = duckdb.connect()
    db.execute(f"set threads={threads}; set memory_limit='14GB'; set temp_directory='{folder}/spill'")
    db.execute("set preserve_insertion_order=false")
    db.execute(f"""
        create table overlap as
        select a.doc a, b.doc b, count(*)::ubigint n from '{parquet}' a join '{parquet}' b on a.fp = b.fp
        where a.doc < b.doc group by 1, 2 having count(*) >= {threshold} order by 1, 2
    """)
    seconds = time.time() - began
    pairs, checksum = db.execute(
        "select count(*), sum(a::hugeint * 1000003 + b::hugeint * 10007 + n) % 18446744073709551616::hugeint from overlap"
    ).fetchone()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({
        "program": f"duckdb {duckdb.__version__}", "threads": threads, "seconds": round(seconds, 2),
        "peak_memory_bytes": peak, "similar": pairs, "checksum": int(checksum or 0),
    }))


def main():
    if sys.argv[1] == "--to-parquet":
        return to_parquet(sys.argv[2], sys.argv[3])
    tuples, threshold = sys.argv[1], int(sys.argv[2])
    threads = int(sys.argv[3]) if len(sys.argv) > 3 else os.cpu_count()
    with tempfile.TemporaryDirectory() as folder:
        parquet = f"{folder}/tuples.parquet"
        subprocess.run([sys.executable, __file__, "--to-parquet", tuples, parquet], check=True)
        self_join(parquet, threshold, threads, folder)


if __name__ == "__main__":
    main()
