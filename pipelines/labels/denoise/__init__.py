"""Denoise: drop what is not a person reading, and count every dropped row by rule.

In: impressions and interactions. Out: counts by query, document and position; denoise_funnel, quarantine.
Reading order: settings, registry, rules/, apply, kinds; pack (the log as bundles), nameless, users and user_arrays,
pages and page_arrays, pairs (`tally_pairs`) and pair_arrays, funnel; days for days that are kept.
"""
