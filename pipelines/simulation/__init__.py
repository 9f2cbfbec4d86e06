"""A simulated search log with known truth, to check labels and estimators against.

In: settings alone. Out: impressions, interactions, rankings and queries as inputs, and the truth: grades, propensities
and planted noise. Entry: `simulate` in simulate.py.
Reading order: settings, randomness, catalogue, pages, behaviour, simulate.
"""
