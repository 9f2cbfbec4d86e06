"""What runs inside Spark workers: Arrow batches in, Arrow batches out.

Files in reading order: `worker` (worker start-up and read-ahead), `score` (the metrics of lists), `place` (documents at
their scored ranks), `systems` (the metrics of whole systems), `crawlers` and `gamma` (column functions of the labels).
"""
