"""Position bias: the probability that a position is examined, relative to position 1.

In: counts by query, document and position. Out: records of curves (`propensities`) and diagnostics.
Entry: `estimate_propensities`. Reading order: settings, statistics, evidence, information, registry, edges, measure,
estimators/, power, intervals, diagnostics, held_out, estimate.
"""
