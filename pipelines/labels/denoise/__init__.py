"""Denoise: drop what is not a person reading, and count every dropped row by rule.

In: impressions and interactions. Out: counts by query, document and position; denoise_funnel, quarantine.
Reading order: settings, registry, rules/, apply, kinds; columns and row_hash (Arrow as NumPy), pack (the log as
bundles), nameless, users and user_arrays, pages and page_arrays, pairs (`tally_pairs`) and pair_arrays, funnel; for
days that are kept, days, cells, compact_places, window_users and window_pages.
"""
