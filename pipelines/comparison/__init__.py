"""The comparison: which system is better, where, and how certain that is.

In: `query_metrics`, labels and the scorer. Out: `segment_metrics`, `comparisons`, `query_changes`, `sensitivity`, and
the verdicts and readings of the manifest. Entry: `conclude.conclude`; `two_runs.compare_runs` for two published runs.
Read settings.py, conclude.py, segments.py, estimate.py, compare.py, conditions/, gate.py and verdicts.py, headline.py,
answers.py, movers.py, sensitivity.py, readings/, judging/; then counting.py, comparable.py and two_runs.py.
"""
