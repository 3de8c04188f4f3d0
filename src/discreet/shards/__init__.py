"""One memory from rows on many machines: sealed exact sums, merged, released once.

`job` has the public settings and one key; `exchange` sends the rows of a record to one place,
sealed. Whatever runs tasks can run these (`docs/howto/shards.md` shows it with Ray and Spark);
`processes` does it on this machine, `dask` on a cluster of Dask.
"""

from discreet.shards.job import Job

__all__ = ["Job"]
