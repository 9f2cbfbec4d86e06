"""The posterior of every document's relevance: a prior from ranks, evidence from clicks, and draws of both.

In: arrays of query-document pairs with clicks due x, examinations E, the mean log position a of the examinations, the
query's rate m_q, and ranks in every serving and every compared system. Out: a small `Prior`, drawn grades, posterior
means. Entry functions: `fit.tabulate_pairs` and `fit.fit_prior`, `draw.draw_grades`, `draw.describe_posterior`.
Files in reading order: factors.py (ranks to bins), opinions.py (values to levels), fit.py (the prior), gamma.py (random
numbers), draw.py.
"""
