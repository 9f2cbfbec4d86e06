"""Report: a self-contained HTML page of one run, of two runs, or of a metric over time.

Tables in: all published tables of a run, and its manifest. Tables out: none; pages in `reports/` of the warehouse.
Entry: `render.write_report`. Reading order: render (the order of the sections), data (what they read), sections,
histograms and pairs (counts by query), two_runs, trend; markup, tables, charts and page are the building blocks.
"""
