"""What runs inside Spark workers: Arrow batches in, Arrow batches out.

Files in reading order: `worker` (worker start-up and read-ahead), `bundles` (rows moved as Arrow batches), `score` (the
metrics of lists), `place` (documents at their scored ranks), `pool`, `prior` and `evidence` (the posterior of every
document), `systems` (the metrics of whole systems), `crawlers` and `gamma` (of the labels).
"""
