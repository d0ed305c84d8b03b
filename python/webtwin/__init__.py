"""Reads results of webtwin, the finder of near-replica pages and mirrored collections.

    import webtwin

    run = webtwin.open("out")
    run.tables                  # {"avoid": <avoid: 1080 rows>, "clusters": ...}
    run.pages.to_pandas()       # also to_polars() and to_arrow()
    run.summary["pages"]        # totals, as in summary.json

Opening a result and its `summary` need only Python. Tables need the package of the requested
format: `pip install 'webtwin[pandas]'`, `'webtwin[polars]'` or `'webtwin[pyarrow]'`.
"""

from .result import Result, ResultError, Table
from .result import open_result as open  # As `gzip.open`: meant to be called as `webtwin.open`.

__all__ = ["Result", "ResultError", "Table", "open"]
