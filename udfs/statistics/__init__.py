"""Statistics: estimates with their errors from sums that merge, resampling, corrections and power.

In: rows of `query_metrics`. Out: estimates, one row per system or pair, segment, value and metric. Entry functions:
`partial.partial_sums`, `partial.merge_partials` and `finish.finish_estimates`, which run inside Spark workers. Read
counting.py (which queries count), plan.py, frame.py, features.py, label_draws.py, partial.py, ratio.py, finish.py;
then resample.py, rubin.py, correct.py, power.py and mix.py.
"""
