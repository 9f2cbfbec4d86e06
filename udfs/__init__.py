"""Metrics and statistics on NumPy arrays; nothing here reads or writes tables of a run.

Files in reading order: `registry` (metrics and their grammar), `shown_metrics`, `conventions`, `ragged`, `graded` and
`block` (the arrays that kernels work on), `metrics/` (one file per metric), `draws` and `drawn` (labels drawn several
times, and blocks with them), `compute` (runs kernels); `order`, `lists`, `match`, `tables` and `collect` (from tables
to blocks), `tabulate`, `xxhash` (that of Spark); `evaluator`, `multi_list` and `functions` (the public entry points);
`describe` (documentation).
`spark/` has what runs inside workers, `statistics/` the estimates of means and differences, `posterior/` the relevance
of documents that few people or nobody saw.
"""
