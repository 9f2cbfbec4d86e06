"""Judged queries: a few queries whose results people grade correct what the log alone says.

In: `query_metrics` of a run and its rankings; later the graded sheet, as the input `judgments` with a column `chance`.
Out: a sheet for judges, and the columns `delta_corrected`, `corrected_low`, `corrected_high` and `judged_queries` of
`comparisons`. Entry: `select.plan_sample` and `select.build_sheet` draw, `apply.correct_estimates` corrects. Read
sample.py, difference.py, sheet.py, select.py, rescore.py, apply.py, correction.py and kappa.py.
"""
