"""Readings: what the numbers mean, in sentences; each rule is one registered function.

In: the rows of `comparisons`, `query_changes` and `sensitivity` that the rules read. Out: the readings in the manifest.
Entry: `registry.collect_readings`. Read registry.py (the context, a pair, the registry), then the rules: ranking.py,
spread.py, trust.py, opinions.py, judging.py. A new rule is a decorated function in one of these files or in a new one:

    @reading
    def low_power(pair: ComparedPair) -> str | None:
        \"\"\"When it fires, and why that matters.\"\"\"
"""
