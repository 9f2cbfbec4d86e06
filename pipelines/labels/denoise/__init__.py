"""Denoise: drop what is not a person reading, and count every dropped row by rule.

In: impressions and interactions. Out: counts by query, document and position; denoise_funnel, quarantine.
Reading order: settings, registry, rules/, apply, nameless, users, pages and page_arrays, pairs (`tally_rows`) and
pair_arrays, funnel; cells and cell_arrays for days that are kept.
"""
