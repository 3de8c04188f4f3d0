"""One release from rows on many machines: sealed exact sums, merged, released once.

Whatever runs tasks can run a `Job` (`docs/howto/shards.md` shows it with Ray and Spark);
`discreet.shards.processes` does so on this machine, `discreet.shards.dask` on a cluster of Dask.
"""

from discreet.shards.job import Job

__all__ = ["Job"]
