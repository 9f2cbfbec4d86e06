"""The warehouse: where runs are published and read from.

A run exists when its manifest does. An attempt writes its tables into folders that no manifest names yet, then writes
the manifest in one atomic step; readers look at manifests only, so they never see part of a run.

In: the tables of a run. Out: `<table>/dt=.../run=.../*.parquet` and `runs/<date>/<run>.json`.
Entry: `Attempt` to publish a run, `read_table` to read one.

Read in this order: `storage` (files on a disk or an object store), `conditional_put` (commit on S3), `literal_paths`
(paths for Spark), `owner` (which process owns a file), `runs` (manifests), `run_key` and `code_version` (when two runs
are the same work), `leftovers` (what killed attempts leave), `attempt` (write and commit), `checkpoint` (intermediate
tables), `concurrent` (steps at once), `day_records` and `label_days` (days of a log for later runs), `tables` (read),
`damage` (errors while reading), `views` (SQL for other readers), `vacuum` (remove what is no longer needed), `fsck`
(check manifests against files), `catalog/` (copies of runs in Delta or Iceberg tables).
"""
