"""The denoise rules, one file per level; each reads only the features that the stage of its level puts into the row.

Reading order: users, results, events, pages, pairs. A new rule is a function here and a field in denoise/settings.py.
"""
