"""What runs inside Spark workers: Arrow batches in, Arrow batches out.

Files in reading order: `worker` (worker start-up and read-ahead), `bundles` (rows that Spark moves as bytes), `files`,
`file_counts` and `divide` (Parquet files read, counted, and divided by query), `score` (the metrics of lists), `place`
(documents at their scored ranks), `pool`, `prior` and `evidence` (the posterior of every document), `systems` (the
metrics of whole systems), `crawlers` and `gamma` (column functions of the labels).
"""
