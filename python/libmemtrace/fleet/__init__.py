"""memtrace fleet: the traces of a job with thousands of ranks, reduced where they lie (`memtrace reduce`), as tables, and what follows from them.

    work       reduces one trace; the standard library alone, so that any worker can run it
    engines    who does that for many: this machine, Dask, Ray, Slurm
    store      the folder of a fleet: which traces are in it, their tables as Parquet, DuckDB over these
    members    which of the runs are the job's ranks, and who is whose peer
    verdicts   rules: what is wrong with the fleet, with evidence
    screen, page, compare    how it is told
"""
